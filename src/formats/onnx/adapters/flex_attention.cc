#include <map>

#include <fmt/format.h>

#include "formats/onnx/adapters/adapters.h"
#include "ir/ops/elements.h"

namespace decant::onnx {
namespace {

/// Adds nodes named after the one that is expanded.
class Expansion {
 public:
  explicit Expansion(Adaptation& a) : a_(a) {}

  ir::Value* add(std::string_view op, std::vector<ir::Value*> inputs, std::string_view role) {
    return node(op, std::move(inputs), role)->output(0);
  }
  ir::Node* node(std::string_view op, std::vector<ir::Value*> inputs, std::string_view role) {
    return a_.graph.add_node(std::string(op), std::move(inputs), 1, fmt::format("{}_{}", a_.node.name, role));
  }
  /// Dims [begin, end) of the shape of x.
  ir::Value* dims(ir::Value* x, int64_t begin, int64_t end) {
    ir::Node* shape = node("Shape", {x}, "dims");
    shape->attributes["start"] = begin;
    shape->attributes["end"] = end;
    return shape->output(0);
  }
  ir::Value* concat(std::vector<ir::Value*> parts) {
    ir::Node* joined = node("Concat", std::move(parts), "shape");
    joined->attributes["axis"] = int64_t{0};
    return joined->output(0);
  }
  ir::Value* cast(ir::Value* x, DType dtype) {
    ir::Node* cast = node("Cast", {x}, "cast");
    cast->attributes["to"] = ir::onnx_code(dtype);
    return cast->output(0);
  }
  /// Each head of [batch, heads, length, size] `times` (a list of one) times.
  ir::Value* repeat_heads(ir::Value* x, ir::Value* times) {
    ir::Value* one = a_.ints("ones", {1, 1});
    ir::Value* split = add("Unsqueeze", {x, a_.ints("axis", {2})}, "split_heads");
    ir::Value* repeated = add("Expand", {split, concat({one, times, one})}, "repeat_heads");
    return add("Reshape", {repeated, concat({dims(x, 0, 1), a_.ints("heads", {-1}), dims(x, 2, 4)})},
               "join_heads");
  }
  /// The nodes of a modifier with one input and one output, for the input x.
  Result<ir::Value*> modify(const ir::Graph& body, ir::Value* x) {
    if (body.inputs().size() != 1 || body.outputs().size() != 1) {
      return invalid_model(a_.node.describe() + ": a modifier must have one input and one output");
    }
    std::map<const ir::Value*, ir::Value*> values = {{body.inputs()[0], x}};
    for (const auto& value : body.values()) {
      if (value->constant)
        values[value.get()] = a_.graph.add_constant(a_.graph.unique_name(value->name), value->constant);
    }
    const auto mapped = [&](ir::Value* v) {
      const auto it = values.find(v);
      return it == values.end() ? v : it->second;  // a value of the graph around
    };
    for (const auto& inner : body.nodes()) {
      if (!inner) continue;
      std::vector<ir::Value*> inputs;
      for (ir::Value* v : inner->inputs()) inputs.push_back(v ? mapped(v) : nullptr);
      for (const auto& [key, attribute] : inner->attributes) {
        if (std::holds_alternative<std::shared_ptr<ir::Graph>>(attribute)) {
          return unsupported(a_.node.describe() + ": sub-graphs inside a modifier are not supported");
        }
      }
      ir::Node* copy = a_.graph.add_node(inner->op(), std::move(inputs), inner->outputs().size(),
                                         fmt::format("{}_{}", a_.node.name, inner->name), inner->domain());
      copy->attributes = inner->attributes;
      for (size_t i = 0; i < inner->outputs().size(); ++i) {
        if (inner->outputs()[i]) {
          values[inner->outputs()[i]] = copy->output(i);
        } else {
          a_.graph.drop_node_output(copy, i);
        }
      }
    }
    return mapped(body.outputs()[0]);
  }

 private:
  Adaptation& a_;
};

/// Takes the nodes of a graph that goes away off their inputs, some of which are values of the graph around
/// it.
void release(ir::Graph& body) {
  for (const auto& node : body.nodes()) {
    for (size_t i = 0; node && i < node->inputs().size(); ++i) node->set_input(i, nullptr);
  }
}

}  // namespace

/// FlexAttention of ai.onnx.preview becomes the operators of its definition, with the modifiers' nodes
/// between them: softmax(score_mod(q kᵀ scale)) v, computed in softmax_precision.
Status adapt_flex_attention(Adaptation& a) {
  ir::Value *q = a.node.input(0), *k = a.node.input(1), *v = a.node.input(2);
  if (!q || !k || !v) return invalid_model(a.node.describe() + ": an input is left out");
  if (!is_float(q->dtype)) return unsupported(a.node.describe() + ": the type of its inputs is not known");
  const DType usual = q->dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const int64_t* precision = a.node.attribute<int64_t>("softmax_precision");
  const DType softmax_type = precision ? ir::dtype_from_onnx_code(*precision) : usual;
  if (!is_float(softmax_type))
    return unsupported(a.node.describe() + ": this softmax_precision is not supported");

  Expansion e(a);
  ir::Value* times = e.add("Div", {e.dims(q, 1, 2), e.dims(k, 1, 2)}, "group");
  k = e.repeat_heads(k, times);
  ir::Value* values = e.cast(e.repeat_heads(v, times), softmax_type);
  ir::Value* root = nullptr;  // of the scale: half of it goes to each side of the product
  if (const float* scale = a.node.attribute<float>("scale")) {
    root = e.add("Sqrt", {a.scalar("scale", DType::kFloat32, *scale)}, "root_scale");
  } else {
    ir::Value* size = e.cast(e.dims(q, 3, 4), DType::kFloat32);
    root = e.add("Reciprocal", {e.add("Sqrt", {e.add("Sqrt", {size}, "root")}, "root")}, "root_scale");
  }
  root = e.cast(root, q->dtype);
  ir::Node* turned = e.node("Transpose", {e.add("Mul", {k, root}, "scaled_key")}, "key");
  turned->attributes["perm"] = std::vector<int64_t>{0, 1, 3, 2};
  ir::Value* scores = e.add("MatMul", {e.add("Mul", {q, root}, "scaled_query"), turned->output(0)}, "scores");
  scores = e.cast(scores, softmax_type);
  if (const auto* body = a.node.attribute<std::shared_ptr<ir::Graph>>("score_mod"); body && *body) {
    DECANT_ASSIGN(scores, e.modify(**body, scores));
  }
  ir::Node* softmax = e.node("Softmax", {scores}, "softmax");
  softmax->attributes["axis"] = int64_t{-1};
  ir::Value* probabilities = softmax->output(0);
  if (const auto* body = a.node.attribute<std::shared_ptr<ir::Graph>>("prob_mod"); body && *body) {
    DECANT_ASSIGN(probabilities, e.modify(**body, probabilities));
  }
  a.replace_output(0, e.cast(e.add("MatMul", {probabilities, values}, "output"), q->dtype));
  for (const char* key : {"score_mod", "prob_mod"}) {
    const auto* body = a.node.attribute<std::shared_ptr<ir::Graph>>(key);
    if (!body || !*body) continue;
    release(**body);
    a.forget(body->get());
  }
  a.remove();
  return ok_status();
}

}  // namespace decant::onnx
