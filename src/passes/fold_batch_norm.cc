#include <cmath>

#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Tensor;
using ir::Value;

/// Weights above this stay as they are mapped.
constexpr size_t kMaxWeightBytes = size_t{64} << 20;

/// A float32 constant in memory of `elements` (any number when negative), or an empty tensor.
Tensor f32(const Value* v, int64_t elements) {
  if (!v || !v->constant || !v->constant->in_memory() || v->constant->dtype() != DType::kFloat32) return {};
  if (elements >= 0 && v->constant->elements() != elements) return {};
  return v->constant->tensor();
}

}  // namespace

Result<bool> fold_batch_norm(Graph& graph) {
  return rewrite(graph, [&](Node& node) -> Result<Value*> {
    if (!node.is("BatchNormalization") || node.int_attribute("training_mode", 0) != 0) return nullptr;
    Node* conv = producer(node.input(0), "Conv");
    if (!conv || node.input(0)->users().size() != 1 || graph.is_output(node.input(0))) return nullptr;
    const Tensor weights = f32(conv->input(1), -1);
    if (weights.rank() < 3 || weights.elements() == 0 || weights.bytes() > kMaxWeightBytes) return nullptr;
    const int64_t filters = weights.dims()[0], each = weights.elements() / filters;
    Tensor parameters[4];
    for (size_t i = 0; i < 4; ++i) {
      parameters[i] = f32(node.input(i + 1), filters);
      if (parameters[i].rank() != 1) return nullptr;
    }
    const Tensor old_bias = f32(conv->input(2), filters);
    if (conv->input(2) && old_bias.rank() != 1) return nullptr;
    DECANT_ASSIGN(Tensor scaled, Tensor::allocate(DType::kFloat32, weights.dims()));
    DECANT_ASSIGN(Tensor bias, Tensor::allocate(DType::kFloat32, {filters}));
    const double epsilon = node.float_attribute("epsilon", 1e-5f);
    for (int64_t m = 0; m < filters; ++m) {
      const double factor = parameters[0].double_at(m) / std::sqrt(parameters[3].double_at(m) + epsilon);
      const double start = old_bias.rank() == 1 ? old_bias.double_at(m) : 0.0;
      bias.mutable_data_as<float>()[m] =
          static_cast<float>((start - parameters[2].double_at(m)) * factor + parameters[1].double_at(m));
      for (int64_t i = m * each; i < (m + 1) * each; ++i) {
        scaled.mutable_data_as<float>()[i] = static_cast<float>(weights.double_at(i) * factor);
      }
    }
    const auto constant = [&](const Tensor& t, const char* role) {
      return graph.add_constant(graph.unique_name(conv->name + role), ir::Constant::from_tensor(t));
    };
    return add_typed(graph, "Conv", {conv->input(0), constant(scaled, "_scaled"), constant(bias, "_shifted")},
                     conv->attributes);
  });
}

}  // namespace decant::passes
