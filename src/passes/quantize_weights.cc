#include "passes/quantize_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "ir/row_blocks.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::ConstantPtr;
using ir::Node;
using ir::Value;

/// Rows of a matrix that a choice is made from.
constexpr int64_t kSampleRows = 64;

/// How a product or a look-up reads a matrix.
enum class Use { kNone, kRows, kColumns, kTable };

/// Whether `value` is the token ids that the graph is given, in any shape.
bool is_token_ids(const Value* value) {
  for (int depth = 0; depth < 8 && value && value->producer; ++depth) {
    const Node& from = *value->producer;
    if (!from.is("Cast") && !from.is("Identity") && !from.is("Reshape") && !from.is("Unsqueeze") &&
        !from.is("Squeeze"))
      return false;
    value = from.input(0);
  }
  return value && !value->producer && !value->constant && value->name.ends_with("input_ids");
}

bool is_product_with(const Node& node, const Value* matrix) {
  return node.is("MatMul") && node.input(1) == matrix && node.input(0) != matrix;
}

/// kRows: outputs of the product are rows of `v`; kColumns: they are columns.
Use use_of(const Node& node, const Value* v) {
  if (is_product_with(node, v)) return Use::kColumns;
  if (node.op() == "FusedMatMul" && node.domain() == "com.microsoft") {
    if (node.input(1) != v || node.input(0) == v || node.float_attribute("alpha", 1.0f) != 1.0f)
      return Use::kNone;
    for (const char* other : {"transA", "transBatchA", "transBatchB"}) {
      if (node.int_attribute(other, 0) != 0) return Use::kNone;
    }
    return node.int_attribute("transB", 0) != 0 ? Use::kRows : Use::kColumns;
  }
  if (node.is("Transpose")) {
    const Value* transposed = node.output(0);
    const auto& users = transposed->users();
    const bool products = std::all_of(users.begin(), users.end(),
                                      [&](const Node* user) { return is_product_with(*user, transposed); });
    const auto* perm = node.attribute<std::vector<int64_t>>("perm");
    const bool exchanges = !perm || *perm == std::vector<int64_t>{1, 0};
    return products && exchanges && !users.empty() && !transposed->is_listed() ? Use::kRows : Use::kNone;
  }
  if (node.is("Gather") && node.input(0) == v && node.input(1) != v && node.int_attribute("axis", 0) == 0)
    return Use::kTable;
  return Use::kNone;
}

/// A matrix of the graph and the values that hold it.
struct Weight {
  ConstantPtr matrix;  ///< outputs of the product along its rows
  bool product = false, table = false;
  std::vector<std::pair<Value*, Use>> values = {};
};

/// The matrices that all their users read as weights, in the order of their first use.
class Collector {
 public:
  void collect(const ir::Graph& graph) {
    for (const auto& node : graph.nodes()) {
      if (!node) continue;
      for (Value* v : node->inputs()) offer(v);
      for (const auto& [key, attribute] : node->attributes) {
        if (const auto* sub = std::get_if<std::shared_ptr<ir::Graph>>(&attribute)) collect(**sub);
      }
    }
  }
  std::vector<Weight> take() { return std::move(weights_); }

 private:
  void offer(Value* v) {
    if (!v || !v->constant || !seen_.emplace(v, true).second) return;
    const DType dtype = v->constant->dtype();
    if (v->constant->dims().size() != 2 || v->constant->elements() == 0 || v->is_listed() ||
        (dtype != DType::kFloat32 && dtype != DType::kFloat16 && dtype != DType::kBFloat16))
      return;
    Use use = Use::kNone;
    bool table = false, ids = false;
    for (const Node* user : v->users()) {
      const Use one = use_of(*user, v);
      if (one == Use::kTable) {
        table = true;
        ids = ids || is_token_ids(user->input(1));
      } else if (one == Use::kNone || (use != Use::kNone && one != use)) {
        return;
      } else {
        use = one;
      }
    }
    if (table && (use == Use::kColumns || (use == Use::kNone && !ids))) return;
    if (!table && use == Use::kNone) return;
    const ConstantPtr matrix = use == Use::kColumns ? ir::transpose_constant(v->constant) : v->constant;
    // A view made just now is another one each time.
    const bool across = use == Use::kColumns && ir::transpose_constant(v->constant) != matrix;
    const auto [at, fresh] =
        index_.emplace(std::pair(across ? v->constant.get() : matrix.get(), across), weights_.size());
    if (fresh) weights_.push_back({.matrix = matrix});
    Weight& w = weights_[at->second];
    w.table = w.table || table;
    w.product = w.product || use != Use::kNone;
    w.values.emplace_back(v, use);
  }

  std::unordered_map<const Value*, bool> seen_;
  std::map<std::pair<const ir::Constant*, bool>, size_t> index_;
  std::vector<Weight> weights_;
};

/// What a matrix loses in a form, from a sample.
struct Choice {
  ir::Quantization how;
  double relative = 0;  ///< squared error over the squares of the matrix
  int64_t bytes = 0;
};

Result<Choice> choose(const Weight& w, int bits, int64_t block, const std::string& name) {
  const int64_t rows = w.matrix->dims()[0], columns = w.matrix->dims()[1];
  Choice plain{{.bits = bits, .block = block, .scale_dtype = w.matrix->dtype()}};
  Choice zeros = plain;
  zeros.how.zero_points = true;
  for (Choice* c : {&plain, &zeros}) {
    DECANT_ASSIGN(const ir::QuantizationError lost,
                  ir::sample_quantization(*w.matrix, c->how, name, kSampleRows));
    c->relative = lost.signal > 0 ? lost.error / lost.signal : 0;
    c->bytes = c->how.bytes(rows, columns);
  }
  const double worth = std::pow(4.0, -static_cast<double>(bits) / static_cast<double>(block));
  return zeros.relative < worth * plain.relative ? zeros : plain;
}

/// One matrix on its way from dense to packed.
struct Plan {
  const Weight* weight = nullptr;
  std::string name = {};
  std::optional<ir::RowBlocks> kept = {};
  Choice narrow = {}, wide = {};  ///< with a budget: 4 and 8 bits; otherwise `narrow` alone
  bool widened = false;

  const Choice& chosen() const { return widened ? wide : narrow; }
  int64_t elements() const { return weight->matrix->elements(); }
};

int64_t bytes_of_kept(const ir::RowBlocks& b) {
  return static_cast<int64_t>(b.codes->bytes() + b.scales->bytes() + (b.zeros ? b.zeros->bytes() : 0));
}

/// Widens tensors while they fit, those first whose relative error falls most for a byte.
Status spend(std::vector<Plan>& plans, double bits_per_weight) {
  double weights = 0, bytes = 0;
  std::vector<Plan*> open;
  for (Plan& p : plans) {
    weights += static_cast<double>(p.elements());
    bytes += static_cast<double>(p.kept ? bytes_of_kept(*p.kept) : p.narrow.bytes);
    if (!p.kept) open.push_back(&p);
  }
  const double budget = bits_per_weight * weights / 8;
  if (bytes > budget) {
    return invalid_argument(
        fmt::format("{} bits a weight are too few: with 4-bit codes and their scales the weights take {:.3f}",
                    bits_per_weight, bytes * 8 / weights));
  }
  const auto gain = [](const Plan* p) {
    return (p->narrow.relative - p->wide.relative) / static_cast<double>(p->wide.bytes - p->narrow.bytes);
  };
  std::stable_sort(open.begin(), open.end(), [&](const Plan* a, const Plan* b) { return gain(a) > gain(b); });
  for (Plan* p : open) {
    const double more = static_cast<double>(p->wide.bytes - p->narrow.bytes);
    if (bytes + more > budget) continue;
    bytes += more;
    p->widened = true;
  }
  return ok_status();
}

void put(const Weight& w, const ConstantPtr& packed) {
  const ConstantPtr across = ir::transpose_constant(packed);
  for (const auto& [value, use] : w.values) value->constant = use == Use::kColumns ? across : packed;
}

}  // namespace

Result<std::vector<QuantizedWeight>> quantize_weights(ir::Graph& graph, const WeightQuantization& options) {
  DECANT_RETURN_IF_ERROR(split_gemm(graph).status());
  Collector collector;
  collector.collect(graph);
  const std::vector<Weight> weights = collector.take();
  const int most = options.bits_per_weight ? 8 : options.bits;
  std::vector<Plan> plans;
  for (const Weight& w : weights) {
    Plan plan{.weight = &w, .name = w.values.front().first->name};
    auto blocks = ir::row_blocks(w.matrix, w.matrix->dtype());
    // A table cannot be looked up with zero points that are numbers.
    if (blocks && !(w.table && blocks->zero_numbers()) && (most == 0 || blocks->bits <= most)) {
      plan.kept = std::move(blocks);
    } else if (most == 0) {
      continue;
    } else {
      DECANT_ASSIGN(plan.narrow,
                    choose(w, options.bits_per_weight ? 4 : options.bits, options.block, plan.name));
      if (plan.narrow.bytes >= static_cast<int64_t>(w.matrix->bytes())) continue;
      if (options.bits_per_weight) {
        DECANT_ASSIGN(plan.wide, choose(w, 8, options.block, plan.name));
      }
    }
    plans.push_back(std::move(plan));
  }
  if (options.bits_per_weight) DECANT_RETURN_IF_ERROR(spend(plans, *options.bits_per_weight));

  std::vector<QuantizedWeight> done;
  for (const Plan& p : plans) {
    const Weight& w = *p.weight;
    QuantizedWeight out{.name = p.name, .rows = w.matrix->dims()[0], .columns = w.matrix->dims()[1]};
    out.shared = w.table && w.product;
    out.bytes_before = static_cast<int64_t>(w.matrix->bytes());
    if (p.kept) {
      out.kept = true;
      out.bits = p.kept->bits;
      out.block = p.kept->block;
      out.zero_points = p.kept->zeros != nullptr;
      out.bytes_after = bytes_of_kept(*p.kept);
    } else {
      const Choice& c = p.chosen();
      ir::QuantizedConstant rounded = ir::quantized_constant(w.matrix, c.how, p.name, options.pool);
      out.bits = c.how.bits;
      out.block = c.how.block;
      out.zero_points = c.how.zero_points;
      out.bytes_after = c.bytes;
      out.matrix = rounded.matrix;
      put(w, rounded.constant);
    }
    done.push_back(std::move(out));
  }
  return done;
}

}  // namespace decant::passes
