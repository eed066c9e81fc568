#include "formats/onnx/adapters/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/half.h"
#include "ir/op.h"

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
    {"", "SimplifiedLayerNormalization", adapt_simplified_layer_norm},
    {"com.microsoft", "SimplifiedLayerNormalization", adapt_simplified_layer_norm},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", adapt_skip_simplified_layer_norm},
});

Adapter find_adapter(const ir::Node& node) {
  const auto it = std::find_if(kEntries.begin(), kEntries.end(), [&](const Entry& e) {
    return e.op == node.op() && e.domain == node.domain();
  });
  return it == kEntries.end() ? nullptr : it->adapt;
}

/// Adapters of these ask for their input's type.
bool needs_types(const ir::Node& node, int64_t opset) {
  if (node.op() == "FlexAttention" && node.domain() == "ai.onnx.preview") return true;
  if (opset < 7 && (node.is("PRelu") || node.attribute<int64_t>("axis"))) return true;
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
      Adaptation adaptation(graph, *node, opset_of(node), graphs);
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
