#include "formats/onnx/lower/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/onnx/lower/lowering.h"
#include "formats/onnx/lower/needed_opset.h"

namespace decant::onnx {
namespace {

struct Rule {
  std::string_view op;
  Status (*lower)(Lowering&, ir::Node&);
  bool in_place;  ///< the node itself is changed and stays
};

constexpr auto kRules = std::to_array<Rule>({
    {"Attention", lower_attention, false},
    {"Gelu", lower_gelu, false},
    {"RMSNormalization", lower_rms_normalization, false},
    {"RotaryEmbedding", lower_rotary_embedding, false},
    {"Split", lower_split, true},
    {"SwiGLU", lower_swiglu, false},
    {"Swish", lower_swish, false},
    {"TensorScatter", lower_tensor_scatter, false},
});

Status lower_scope(ir::Graph& graph, int opset) {
  Lowering lowering(graph, opset);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {  // emitted nodes are visited too: Swish from SwiGLU
    ir::Node* node = graph.nodes()[i].get();
    if (!node) continue;
    for (auto& [key, attribute] : node->attributes) {
      if (auto* sub = std::get_if<std::shared_ptr<ir::Graph>>(&attribute)) {
        DECANT_RETURN_IF_ERROR(lower_scope(**sub, opset));
      }
    }
    if (node->domain() == "com.microsoft" && node->op() == "FusedMatMul") {
      lowering.begin(*node);
      DECANT_RETURN_IF_ERROR(lower_fused_matmul(lowering, *node));
      DECANT_RETURN_IF_ERROR(Status(lowering.status()).with_context(node->describe()));
      graph.remove_node(node);
      continue;
    }
    if (!node->domain().empty() || needed_opset(*node) <= opset) continue;
    if (node->op().starts_with("Reduce")) {
      DECANT_RETURN_IF_ERROR(lower_reduce(lowering, *node));
      continue;
    }
    const auto rule =
        std::find_if(kRules.begin(), kRules.end(), [&](const Rule& r) { return r.op == node->op(); });
    if (rule == kRules.end()) {
      return lowering.unsupported_node(
          *node, fmt::format("it came with opset {} and has no rule", needed_opset(*node)));
    }
    lowering.begin(*node);
    DECANT_RETURN_IF_ERROR(rule->lower(lowering, *node));
    DECANT_RETURN_IF_ERROR(Status(lowering.status()).with_context(node->describe()));
    if (!rule->in_place) graph.remove_node(node);
  }
  DECANT_RETURN_IF_ERROR(graph.sort());
  graph.remove_dead();
  return ok_status();
}

}  // namespace

Status lower_to_opset(ir::Graph& graph, int opset) {
  if (opset < 13 || opset > 28) {
    return invalid_argument(fmt::format("opset {}; models are written for 13 to 28", opset));
  }
  return lower_scope(graph, opset);
}

}  // namespace decant::onnx
