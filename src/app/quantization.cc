#include "app/quantization.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/cpu.h"
#include "formats/onnx/lower/lower.h"

namespace decant::app {

Result<Quantized> quantize(ir::Graph& graph, const Precision& precision, const QuantizationOptions& options) {
  if (!precision.packs()) {
    if (options.bits_per_weight || options.accuracy_level > 0)
      return invalid_argument("precision " + precision.name + " packs no weights");
    return Quantized();
  }
  passes::WeightQuantization how;
  how.bits = precision.bits;
  how.block = options.block_size;
  how.bits_per_weight = options.bits_per_weight;
  how.pool = std::make_shared<ir::SharedPool>(options.threads > 0 ? options.threads : default_thread_count());
  DECANT_ASSIGN(Quantized quantized, passes::quantize_weights(graph, how));
  DECANT_RETURN_IF_ERROR(onnx::lower_packed_weights(graph, options.accuracy_level));
  return quantized;
}

std::vector<PackedWeight> report_of(const Quantized& quantized) {
  std::vector<PackedWeight> out;
  for (const passes::QuantizedWeight& q : quantized) {
    out.push_back({.name = q.name,
                   .rows = q.rows,
                   .columns = q.columns,
                   .bits = q.bits,
                   .block = q.block,
                   .zero_points = q.zero_points,
                   .kept = q.kept,
                   .shared = q.shared,
                   .bytes_before = q.bytes_before,
                   .bytes_after = q.bytes_after,
                   .relative_error = q.matrix ? ir::error_of(*q.matrix).relative() : 0});
  }
  return out;
}

PackingTotals totals_of(const std::vector<PackedWeight>& weights) {
  PackingTotals t;
  double elements = 0, squares = 0, rounded = 0;
  for (const PackedWeight& w : weights) {
    t.bytes_before += w.bytes_before;
    t.bytes_after += w.bytes_after;
    elements += static_cast<double>(w.rows) * static_cast<double>(w.columns);
    if (w.kept) continue;
    squares += w.relative_error * w.relative_error;
    rounded += 1;
    t.worst.push_back(&w);
  }
  if (elements > 0) t.bits_per_weight = static_cast<double>(t.bytes_after) * 8 / elements;
  if (rounded > 0) t.relative_error = std::sqrt(squares / rounded);
  std::stable_sort(t.worst.begin(), t.worst.end(), [](const PackedWeight* a, const PackedWeight* b) {
    return a->relative_error > b->relative_error;
  });
  t.worst.resize(std::min<size_t>(t.worst.size(), 5));
  return t;
}

}  // namespace decant::app
