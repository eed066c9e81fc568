#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/precision.h"
#include "base/status.h"
#include "passes/quantize_weights.h"

namespace decant::app {

/// Options beside a precision that packs weights.
struct QuantizationOptions {
  int64_t block_size = 32;                ///< a power of two, 16 to 256
  std::optional<double> bits_per_weight;  ///< codes of 4 or 8 bits for each tensor, by this budget
  int accuracy_level = 0;                 ///< of MatMulNBits; 4: runtimes may round activations to 8 bits
  int threads = 0;                        ///< 0: the machine's physical cores, within the process's limits
};

/// A weight of an export that has few bits.
struct PackedWeight {
  std::string name;
  int64_t rows = 0, columns = 0;  ///< outputs and inputs of the product
  int bits = 0;
  int64_t block = 0;
  bool zero_points = false;
  bool kept = false;                          ///< the codes are the source's
  bool shared = false;                        ///< an embedding table that is also the head
  int64_t bytes_before = 0, bytes_after = 0;  ///< before: dense, in the export's dtype
  /// Root of the squared differences over the squares of the weights; 0 when kept.
  double relative_error = 0;
};

/// What a precision made of a graph; errors of rounding are known once it is written.
using Quantized = std::vector<passes::QuantizedWeight>;

/// Packs the weights of a typed graph as the precision says, and rewrites products with them as operators of
/// com.microsoft; nothing for a precision that packs none.
Result<Quantized> quantize(ir::Graph& graph, const Precision& precision, const QuantizationOptions& options);

/// Call after the graph was written.
std::vector<PackedWeight> report_of(const Quantized& quantized);

/// All weights together.
struct PackingTotals {
  int64_t bytes_before = 0, bytes_after = 0;
  double bits_per_weight = 0;
  double relative_error = 0;  ///< of the tensors that were rounded here, their mean square's root
  std::vector<const PackedWeight*> worst;  ///< largest relative error first, at most five
};
PackingTotals totals_of(const std::vector<PackedWeight>& weights);

}  // namespace decant::app
