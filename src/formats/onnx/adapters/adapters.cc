#include "formats/onnx/adapters/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.h"
#include "base/half.h"
#include "ir/op.h"
#include "ir/ops/elements.h"

namespace decant::onnx {
namespace {

using Adapter = Status (*)(Adaptation&);

struct Entry {
  std::string_view domain, op;
  Adapter adapt;
};

Status axes13(Adaptation& a) { return adapt_axes(a, 13); }
Status axes18(Adaptation& a) { return adapt_axes(a, 18); }

constexpr auto kEntries = std::to_array<Entry>({
    {"", "Squeeze", axes13},
    {"", "Unsqueeze", axes13},
    {"", "ReduceSum", axes13},
    {"", "ReduceMean", axes18},
    {"", "ReduceMax", axes18},
    {"", "ReduceMin", axes18},
    {"", "ReduceProd", axes18},
    {"", "ReduceL1", axes18},
    {"", "ReduceL2", axes18},
    {"", "ReduceLogSum", axes18},
    {"", "ReduceLogSumExp", axes18},
    {"", "ReduceSumSquare", axes18},
    {"", "Softmax", adapt_softmax},
    {"", "LogSoftmax", adapt_softmax},
    {"", "Hardmax", adapt_softmax},
    {"", "Clip", adapt_clip},
    {"", "Slice", adapt_slice},
    {"", "Pad", adapt_pad},
    {"", "Split", adapt_split},
    {"", "Dropout", adapt_dropout},
    {"", "Add", adapt_broadcast},
    {"", "Sub", adapt_broadcast},
    {"", "Mul", adapt_broadcast},
    {"", "Div", adapt_broadcast},
    {"", "Pow", adapt_broadcast},
    {"", "And", adapt_broadcast},
    {"", "Or", adapt_broadcast},
    {"", "Xor", adapt_broadcast},
    {"", "Equal", adapt_broadcast},
    {"", "Greater", adapt_broadcast},
    {"", "Less", adapt_broadcast},
    {"", "Gemm", adapt_broadcast},
    {"", "PRelu", adapt_prelu},
    {"", "GroupNormalization", adapt_group_norm},
    {"", "TopK", adapt_topk},
    {"", "Scatter", adapt_scatter},
    {"ai.onnx.preview", "FlexAttention", adapt_flex_attention},
    {"", "Resize", adapt_resize},
    {"", "Upsample", adapt_upsample},
    {"", "GridSample", adapt_grid_sample},
    {"", "RoiAlign", adapt_roi_align},
    {"", "BatchNormalization", adapt_batch_normalization},
    {"", "DFT", adapt_dft},
    {"", "Scan", adapt_scan},
    {"", "DequantizeLinear", adapt_dequantize},
    {"", "SimplifiedLayerNormalization", adapt_simplified_layer_norm},
    {"com.microsoft", "SimplifiedLayerNormalization", adapt_simplified_layer_norm},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", adapt_skip_simplified_layer_norm},
    {"com.microsoft", "MatMulNBits", adapt_matmul_nbits},
    {"com.microsoft", "GatherBlockQuantized", adapt_gather_block_quantized},
    {"com.microsoft", "MatMulBnb4", adapt_matmul_bnb4},
    {"com.microsoft", "GroupQueryAttention", adapt_group_query_attention},
    {"com.microsoft", "MoE", adapt_moe},
    {"com.microsoft", "QMoE", adapt_qmoe},
    {"com.microsoft", "MultiHeadAttention", adapt_multi_head_attention},
    {"com.microsoft", "DecoderMaskedMultiHeadAttention", adapt_decoder_masked_attention},
    {"com.microsoft", "Attention", adapt_packed_attention},
    {"com.microsoft", "QAttention", adapt_quantized_attention},
    {"com.microsoft", "SkipLayerNormalization", adapt_skip_layer_norm},
    {"com.microsoft", "EmbedLayerNormalization", adapt_embed_layer_norm},
    {"com.microsoft", "RotaryEmbedding", adapt_ms_rotary_embedding},
    {"com.microsoft", "Gelu", adapt_ms_gelu},
    {"com.microsoft", "BiasGelu", adapt_ms_gelu},
    {"com.microsoft", "FastGelu", adapt_ms_gelu},
    {"com.microsoft", "QuickGelu", adapt_ms_gelu},
    {"com.microsoft", "BiasSplitGelu", adapt_ms_gelu},
    {"com.microsoft", "FusedMatMul", adapt_fused_matmul},
    {"com.microsoft", "TransposeMatMul", adapt_fused_matmul},
    {"com.microsoft", "FusedGemm", adapt_fused_gemm},
    {"com.microsoft", "FusedConv", adapt_fused_conv},
    {"com.microsoft", "NhwcConv", adapt_fused_conv},
    {"com.microsoft", "GatherND", adapt_taken_over},
    {"com.microsoft", "Trilu", adapt_taken_over},
    {"com.microsoft", "QuantizeLinear", adapt_taken_over},
    {"com.microsoft", "DequantizeLinear", adapt_taken_over},
    {"com.microsoft", "ExpandDims", adapt_expand_dims},
    {"com.microsoft", "Range", adapt_ms_range},
    {"com.microsoft", "Unique", adapt_ms_unique},
    {"com.microsoft", "DynamicQuantizeMatMul", adapt_dynamic_quantize_matmul},
    {"com.microsoft", "MatMulIntegerToFloat", adapt_matmul_integer_to_float},
    {"com.microsoft", "QGemm", adapt_qgemm},
    {"com.microsoft", "QLinearAdd", adapt_qlinear_binary},
    {"com.microsoft", "QLinearMul", adapt_qlinear_binary},
    {"com.microsoft", "QLinearSigmoid", adapt_qlinear_unary},
    {"com.microsoft", "QLinearLeakyRelu", adapt_qlinear_unary},
    {"com.microsoft", "QLinearReduceMean", adapt_qlinear_unary},
    {"com.microsoft", "QLinearSoftmax", adapt_qlinear_unary},
    {"com.microsoft", "QLinearGlobalAveragePool", adapt_qlinear_unary},
    {"com.microsoft", "QLinearAveragePool", adapt_qlinear_unary},
    {"com.microsoft", "QLinearConcat", adapt_qlinear_concat},
    {"com.microsoft", "QLinearWhere", adapt_qlinear_where},
});

Adapter find_adapter(const ir::Node& node) {
  const auto it = std::find_if(kEntries.begin(), kEntries.end(), [&](const Entry& e) {
    return e.op == node.op() && e.domain == node.domain();
  });
  return it == kEntries.end() ? nullptr : it->adapt;
}

/// Whether a node's adapter looks at the types of its inputs.
bool needs_types(const ir::Node& node, int64_t opset) {
  if (node.op() == "FlexAttention" && node.domain() == "ai.onnx.preview") return true;
  if (opset < 7 && (node.is("PRelu") || node.attribute<int64_t>("axis"))) return true;
  if (node.domain() == "com.microsoft") return true;
  return opset < 13 && (node.is("Softmax") || node.is("LogSoftmax") || node.is("Hardmax"));
}

/// Operators of opsets before 6 that have not changed since.
bool is_unchanged(const ir::Node& node) {
  constexpr std::string_view kUnchanged[] = {"Constant", "Identity", "Not", "Shape", "Size", "Transpose"};
  return std::find(std::begin(kUnchanged), std::end(kUnchanged), node.op()) != std::end(kUnchanged);
}

void collect(ir::Graph& graph, std::vector<ir::Graph*>& graphs) {
  graphs.push_back(&graph);
  for (const auto& node : graph.nodes()) {
    for (auto& [key, attribute] : node->attributes) {
      if (auto* sub = std::get_if<std::shared_ptr<ir::Graph>>(&attribute)) collect(**sub, graphs);
    }
  }
}

/// Types a node if everything it needs is typed; what cannot be typed here stays untyped.
void try_infer(ir::Graph& graph, ir::Node& node) {
  for (const ir::Value* v : node.inputs()) {
    if (v && v->dtype == DType::kUndefined) return;
  }
  if (!ir::find_op(node.domain(), node.op())) return;
  (void)ir::infer_node(graph, node);
}

Status adapt_scope(ir::Graph& graph, const std::function<int64_t(const ir::Node*)>& opset_of, bool typed,
                   std::vector<ir::Graph*>& graphs) {
  Adaptation::Shared shared;
  const size_t count = graph.nodes().size();
  for (size_t i = 0; i < count; ++i) {
    ir::Node* node = graph.nodes()[i].get();
    for (auto& [key, attribute] : node->attributes) {
      if (auto* sub = std::get_if<std::shared_ptr<ir::Graph>>(&attribute)) {
        DECANT_RETURN_IF_ERROR(adapt_scope(**sub, opset_of, typed, graphs));
      }
    }
    const size_t before = graph.nodes().size();
    if (const Adapter adapt = find_adapter(*node)) {
      Adaptation adaptation(graph, *node, opset_of(node), graphs, shared);
      DECANT_RETURN_IF_ERROR(adapt(adaptation));
    }
    if (!typed) continue;
    if (graph.nodes()[i]) try_infer(graph, *graph.nodes()[i]);
    for (size_t k = before; k < graph.nodes().size(); ++k) try_infer(graph, *graph.nodes()[k]);
  }
  DECANT_RETURN_IF_ERROR(graph.sort());
  return ok_status();
}

}  // namespace

void Adaptation::erase(std::string_view attribute) {
  if (auto it = node.attributes.find(attribute); it != node.attributes.end()) node.attributes.erase(it);
}

ir::Value* Adaptation::ints(std::string_view role, std::vector<int64_t> values) {
  return graph.add_constant(graph.unique_name(fmt::format("{}_{}", node.name, role)),
                            ir::Constant::from_tensor(ir::Tensor::vector(values)));
}

ir::Value* Adaptation::int_scalar(std::string_view role, int64_t value) {
  return graph.add_constant(graph.unique_name(fmt::format("{}_{}", node.name, role)),
                            ir::Constant::from_tensor(ir::Tensor::scalar(value)));
}

ir::Value* Adaptation::scalar(std::string_view role, DType dtype, double value) {
  ir::Tensor t = ir::Tensor::scalar(static_cast<float>(value));
  const auto narrow = static_cast<float>(value);
  auto owned = std::make_shared<std::array<std::byte, 8>>();
  switch (dtype) {
    case DType::kFloat64:
      std::memcpy(owned->data(), &value, 8);
      break;
    case DType::kFloat16:
    case DType::kBFloat16: {
      const uint16_t bits = dtype == DType::kFloat16 ? float_to_f16(narrow) : float_to_bf16(narrow);
      std::memcpy(owned->data(), &bits, 2);
      break;
    }
    default:
      dtype = DType::kFloat32;
      std::memcpy(owned->data(), &narrow, 4);
  }
  return graph.add_constant(graph.unique_name(fmt::format("{}_{}", node.name, role)),
                            ir::Constant::from_tensor(ir::Tensor::view(dtype, {}, owned->data(), owned)));
}

ir::Node* Adaptation::emit_node(std::string op, std::vector<ir::Value*> inputs, size_t outputs,
                                Attributes attributes, std::string domain) {
  const std::string name = graph.unique_name(node.name + "/" + op);
  ir::Node* made = graph.add_node(std::move(op), std::move(inputs), outputs, name, std::move(domain));
  for (auto& [key, value] : attributes) made->attributes[key] = std::move(value);
  try_infer(graph, *made);
  return made;
}

ir::Value* Adaptation::cast(ir::Value* x, DType dtype) {
  if (x->dtype == dtype) return x;
  return emit("Cast", {x}, {{"to", ir::onnx_code(dtype)}});
}

ir::Value* Adaptation::int_scalar(int64_t value) {
  return graph.add_constant(graph.unique_name(node.name + "_number"),
                            ir::Constant::from_tensor(ir::Tensor::scalar(value)));
}

Result<ir::ConstantPtr> Adaptation::constant_input(size_t i, std::string_view what) const {
  const ir::Value* value = node.input(i);
  if (!value) return bad_form(fmt::format("input {} ('{}') is left out", i, what));
  const std::optional<ir::Shape> shape = value->shape;
  bool reshaped = false;
  for (int depth = 0; depth < 8 && value && !value->constant && value->producer; ++depth) {
    const ir::Node& from = *value->producer;
    if (!from.is("Reshape") && !from.is("Identity")) break;
    reshaped = reshaped || from.is("Reshape");
    value = from.input(0);
  }
  if (!value || !value->constant) {
    return unsupported_form(fmt::format("a computed input {} ('{}')", i, what));
  }
  if (!reshaped) return value->constant;
  const auto dims = shape ? ir::constant_shape(*shape) : std::nullopt;
  if (!dims || !value->constant->in_memory() ||
      checked_elements(*dims) != static_cast<uint64_t>(value->constant->elements())) {
    return unsupported_form(fmt::format("input {} ('{}') of dims that are not known", i, what));
  }
  return ir::Constant::from_tensor(value->constant->tensor().reshaped(*dims));
}

Result<int64_t> Adaptation::required_int(std::string_view attribute, int64_t min) const {
  const auto* value = node.attribute<int64_t>(attribute);
  if (!value) return bad_form(fmt::format("attribute '{}' is missing", attribute));
  if (*value < min) return bad_form(fmt::format("attribute '{}' is {}", attribute, *value));
  return *value;
}

Status Adaptation::check_unused(size_t i, std::string_view what) const {
  const ir::Value* v = node.output(i);
  if (!v || (v->users().empty() && !graph.is_output(v))) return ok_status();
  return unsupported_form(fmt::format("output '{}'", what));
}

Status Adaptation::unsupported_form(std::string_view what) const {
  return unsupported(fmt::format("{}: {} is not supported", node.describe(), what));
}

Status Adaptation::bad_form(std::string_view what) const {
  return invalid_model(fmt::format("{}: {}", node.describe(), what));
}

Status Adaptation::mismatch(std::string_view rule) const {
  return invalid_model(
      fmt::format("{} does not fit its opset {}: {}; the model declares the wrong opset version",
                  node.describe(), opset, rule));
}

Status Adaptation::check_moved(std::string_view attribute, size_t input, int64_t since) const {
  if (opset >= since && has(attribute)) {
    return mismatch(
        fmt::format("'{}' is input {} since opset {}, here it is an attribute", attribute, input, since));
  }
  if (opset < since && node.input(input)) {
    return mismatch(
        fmt::format("'{}' is an attribute before opset {}, here it is input {}", attribute, since, input));
  }
  return ok_status();
}

Status Adaptation::attribute_to_input(std::string_view attribute, size_t input) {
  const auto* values = node.attribute<std::vector<int64_t>>(attribute);
  if (!values) return ok_status();
  node.set_input(input, ints(attribute, *values));
  erase(attribute);
  return ok_status();
}

void Adaptation::replace_output(size_t i, ir::Value* value) {
  ir::Value* old = node.output(i);
  if (!old) return;
  graph.replace_all_uses(old, value);
  for (ir::Graph* g : graphs_) {
    for (size_t k = 0; k < g->outputs().size(); ++k) {
      if (g->outputs()[k] == old) g->set_output(k, value);
    }
  }
  value->name = old->name;
}

bool Adaptation::is_graph_output(const ir::Value* value) const {
  return std::any_of(graphs_.begin(), graphs_.end(), [&](const ir::Graph* g) { return g->is_output(value); });
}

void Adaptation::forget(const ir::Graph* sub_graph) { std::erase(graphs_, sub_graph); }

void Adaptation::remove() { graph.remove_node(&node); }

Status adapt_graph(ir::Graph& graph, const std::function<int64_t(const ir::Node*)>& opset_of) {
  std::vector<ir::Graph*> graphs;
  collect(graph, graphs);
  bool typed = false;
  for (const ir::Graph* g : graphs) {
    for (const auto& node : g->nodes()) {
      const int64_t opset = opset_of(node.get());
      if (node->domain().empty() && ((opset < 6 && !is_unchanged(*node)) || opset > 28)) {
        return unsupported(fmt::format("{}: opset {}; supported are 6 to 28", node->describe(), opset));
      }
      typed = typed || needs_types(*node, opset);
    }
  }
  DECANT_RETURN_IF_ERROR(adapt_scope(graph, opset_of, typed, graphs));
  for (ir::Graph* g : graphs) g->remove_dead();
  return ok_status();
}

}  // namespace decant::onnx
