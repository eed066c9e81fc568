#include <algorithm>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "ir/ops/common.h"
#include "ir/ops/joined_types.h"

namespace decant::ir {
namespace {

/// How often the types of carried values are made more general before nothing but their dtype is assumed.
constexpr int kMaxRounds = 4;
/// Bodies nested deeper than this are typed in one round, without shapes: rounds multiply with the depth.
constexpr int kMaxShapedDepth = 3;

struct Type {
  ValueKind kind = ValueKind::kTensor;
  DType dtype = DType::kUndefined;
  std::optional<Shape> shape;
};

Type type_of(const Value& v) { return {v.kind, v.dtype, v.shape}; }

bool same_type(const Type& a, const Type& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.shape == b.shape;
}

Status set_body_input(InferContext& context, Value& input, const Type& type) {
  if (input.dtype != DType::kUndefined && input.dtype != type.dtype) {
    return context.error(fmt::format("body input '{}' is declared as {}, it gets {}", input.name,
                                     to_string(input.dtype), to_string(type.dtype)));
  }
  input.kind = type.kind;
  input.dtype = type.dtype;
  input.shape = type.shape;
  input.elements.reset();
  return ok_status();
}

/// Types a body whose inputs [first, first + types.size()) are fed by its outputs [from, ...) in the next
/// round: starts from the types before the loop and widens them until a round changes nothing. `types` are
/// the inputs' types afterwards.
Status infer_carried(InferContext& context, Graph& body, size_t first, size_t from,
                     std::vector<Type>& types) {
  const bool deep = context.graph().depth() >= kMaxShapedDepth;
  for (int round = 0;; ++round) {
    for (size_t i = 0; i < types.size(); ++i) {
      if (deep || round >= kMaxRounds) types[i].shape.reset();
      DECANT_RETURN_IF_ERROR(set_body_input(context, *body.inputs()[first + i], types[i]));
    }
    DECANT_RETURN_IF_ERROR(infer_subgraph(context.graph(), body));
    bool stable = true;
    for (size_t i = 0; i < types.size(); ++i) {
      const Value& out = *body.outputs()[from + i];
      if (out.dtype != types[i].dtype) {
        return context.error(fmt::format("carried value {} is {} before and {} after an iteration", i,
                                         to_string(types[i].dtype), to_string(out.dtype)));
      }
      const auto kind = joined_kind(types[i].kind, out.kind);
      if (!kind) return context.error(fmt::format("carried value {} changes its kind", i));
      Type wider{*kind, types[i].dtype, types[i].shape};
      if (types[i].shape) {
        // A dim that is a symbol of the body's own input already stands for any size.
        if (!out.shape || out.shape->size() != types[i].shape->size() ||
            (is_sequence(*kind) && out.shape != types[i].shape)) {
          wider.shape.reset();
        } else {
          for (size_t d = 0; d < out.shape->size(); ++d) {
            Dim& dim = (*wider.shape)[d];
            if ((*out.shape)[d] != dim && !dim.symbol_name().starts_with("?carried"))
              dim = context.fresh_symbol("carried");
          }
        }
      }
      stable = stable && same_type(wider, types[i]);
      types[i] = std::move(wider);
    }
    if (stable || round > kMaxRounds) return ok_status();
  }
}

/// The type of a carried value after the loop: what it is before and after each iteration, without the body's
/// own symbols.
Type after_loop(InferContext& context, const Type& carried, const Value& out, int64_t mark) {
  Type type{out.kind, out.dtype, carried.shape};
  if (!type.shape) return type;
  for (Dim& d : *type.shape) {
    if (Graph::made_since(d, mark)) d = context.fresh_symbol("after_loop");
  }
  if (is_sequence(type.kind) && type.shape != carried.shape) type.shape.reset();
  return type;
}

std::optional<Shape> scanned_shape(InferContext& context, const Value& out, int64_t mark, const Dim& length,
                                   int64_t axis) {
  if (!out.shape) return std::nullopt;
  Shape shape = *out.shape;
  for (Dim& d : shape) {
    if (Graph::made_since(d, mark)) d = context.fresh_symbol("scanned");
  }
  const auto rank = static_cast<int64_t>(shape.size()) + 1;
  if (axis < -rank || axis >= rank) return std::nullopt;
  shape.insert(shape.begin() + (axis < 0 ? axis + rank : axis), length);
  return shape;
}

/// Whether the body leaves the loop only when the trip count is reached.
bool always_goes_on(const Node& node, const Graph& body) {
  const auto is_true = [](const Value* v) {
    return v->constant && v->constant->in_memory() && v->constant->elements() == 1 &&
           v->constant->tensor().int_at(0) != 0;
  };
  if (node.input(1) && !is_true(node.input(1))) return false;
  const Value* go_on = body.outputs()[0];
  while (go_on->producer && go_on->producer->is("Identity") && go_on->producer->input(0))
    go_on = go_on->producer->input(0);
  return go_on == body.inputs()[1] || is_true(go_on);
}

Status infer_loop(InferContext& context) {
  const Node& node = context.node();
  Graph* body = subgraph(node, "body");
  if (!body) return context.error("attribute 'body' is missing");
  const size_t carried = node.inputs().size() > 2 ? node.inputs().size() - 2 : 0;
  if (body->inputs().size() != carried + 2 || body->outputs().size() < carried + 1) {
    return context.error(fmt::format("the body has {} inputs and {} outputs, the node carries {} values",
                                     body->inputs().size(), body->outputs().size(), carried));
  }
  if (node.outputs().size() > body->outputs().size() - 1)
    return context.error("has more outputs than its body");
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_index, "one int64"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_bool, "one bool"));
  std::vector<Type> types;
  for (size_t i = 0; i < carried; ++i) {
    if (!node.input(i + 2)) return context.error("a carried value is left out");
    types.push_back(type_of(*node.input(i + 2)));
  }
  const int64_t mark = context.graph().symbol_mark();
  DECANT_RETURN_IF_ERROR(
      set_body_input(context, *body->inputs()[0], {ValueKind::kTensor, DType::kInt64, Shape{}}));
  DECANT_RETURN_IF_ERROR(
      set_body_input(context, *body->inputs()[1], {ValueKind::kTensor, DType::kBool, Shape{}}));
  DECANT_RETURN_IF_ERROR(infer_carried(context, *body, 2, 1, types));
  if (body->outputs()[0]->dtype != DType::kBool) return context.error("the body's condition is no bool");
  Dim trips = context.fresh_symbol("trips");
  if (const auto count = context.elements(0); count && count->size() == 1 && always_goes_on(node, *body))
    trips = clamp_to_zero(context.graph(), (*count)[0]);
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const Value& out = *body->outputs()[i + 1];
    if (i < carried) {
      Type type = after_loop(context, types[i], out, mark);
      context.set_output(i, type.dtype, std::move(type.shape), type.kind);
      continue;
    }
    if (out.kind != ValueKind::kTensor) return context.error("a scan output is no tensor");
    context.set_output(i, out.dtype, scanned_shape(context, out, mark, trips, 0));
  }
  return ok_status();
}

int64_t entry(const Node& node, std::string_view attribute, size_t i) {
  const auto* list = node.attribute<std::vector<int64_t>>(attribute);
  return list && i < list->size() ? (*list)[i] : 0;
}

Status infer_scan(InferContext& context) {
  const Node& node = context.node();
  Graph* body = subgraph(node, "body");
  if (!body) return context.error("attribute 'body' is missing");
  const int64_t declared = node.int_attribute("num_scan_inputs", 0);
  const size_t count = node.inputs().size();
  if (declared < 1 || declared > static_cast<int64_t>(count) || body->inputs().size() != count) {
    return context.error(fmt::format("num_scan_inputs {} does not fit {} inputs and a body of {}", declared,
                                     count, body->inputs().size()));
  }
  const size_t states = count - static_cast<size_t>(declared);
  if (body->outputs().size() < states || node.outputs().size() > body->outputs().size()) {
    return context.error(fmt::format("the body has {} outputs", body->outputs().size()));
  }
  std::vector<Type> types;
  Dim length = context.fresh_symbol("scan_length");
  bool known = false;
  const int64_t mark = context.graph().symbol_mark();
  for (size_t i = 0; i < count; ++i) {
    if (!node.input(i)) return context.error(fmt::format("input {} is left out", i));
    Type type = type_of(*node.input(i));
    if (type.kind != ValueKind::kTensor) return context.error(fmt::format("input {} is no tensor", i));
    if (i < states) {
      types.push_back(std::move(type));
      continue;
    }
    if (type.shape) {
      DECANT_ASSIGN(const size_t axis,
                    resolve_axis(node, entry(node, "scan_input_axes", i - states), type.shape->size()));
      if (!known || (*type.shape)[axis].is_constant()) length = (*type.shape)[axis];
      known = true;
      type.shape->erase(type.shape->begin() + static_cast<std::ptrdiff_t>(axis));
    }
    DECANT_RETURN_IF_ERROR(set_body_input(context, *body->inputs()[i], type));
  }
  DECANT_RETURN_IF_ERROR(infer_carried(context, *body, 0, 0, types));
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const Value& out = *body->outputs()[i];
    if (i < states) {
      Type type = after_loop(context, types[i], out, mark);
      context.set_output(i, type.dtype, std::move(type.shape));
      continue;
    }
    if (out.kind != ValueKind::kTensor) return context.error("a scan output is no tensor");
    context.set_output(
        i, out.dtype, scanned_shape(context, out, mark, length, entry(node, "scan_output_axes", i - states)));
  }
  return ok_status();
}

/// Items of the sequences differ in shape, so that the body knows their dtypes only.
Status infer_sequence_map(InferContext& context) {
  const Node& node = context.node();
  Graph* body = subgraph(node, "body");
  if (!body) return context.error("attribute 'body' is missing");
  if (body->inputs().size() != node.inputs().size() || body->outputs().size() < node.outputs().size()) {
    return context.error(
        fmt::format("the body has {} inputs and {} outputs", body->inputs().size(), body->outputs().size()));
  }
  if (context.kind(0) != ValueKind::kSequence) return context.error("input 0 must be a sequence");
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (!node.input(i)) return context.error(fmt::format("input {} is left out", i));
    Type type = type_of(*node.input(i));
    if (type.kind == ValueKind::kSequence) {
      type.kind = ValueKind::kTensor;
    } else if (type.kind != ValueKind::kTensor) {
      return context.error(fmt::format("input {} is an {}", i, to_string(type.kind)));
    }
    DECANT_RETURN_IF_ERROR(set_body_input(context, *body->inputs()[i], type));
  }
  const int64_t mark = context.graph().symbol_mark();
  DECANT_RETURN_IF_ERROR(infer_subgraph(context.graph(), *body));
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const Value& out = *body->outputs()[i];
    if (out.kind != ValueKind::kTensor) return context.error(fmt::format("body output {} is no tensor", i));
    std::optional<Shape> shape = out.shape;
    for (const Dim& d : out.shape.value_or(Shape())) {
      if (Graph::made_since(d, mark)) shape.reset();
    }
    context.set_output(i, out.dtype, std::move(shape), ValueKind::kSequence);
  }
  return ok_status();
}

}  // namespace

DECANT_OP(Loop) {
  return {.name = "Loop",
          .doc = "Runs a sub-graph while a condition holds, up to a number of trips",
          .min_inputs = 0,
          .max_inputs = -1,
          .max_outputs = -1,
          .any_dtype = true,
          .infer = infer_loop,
          .eval = nullptr};
}

DECANT_OP(Scan) {
  return {.name = "Scan",
          .doc = "Runs a sub-graph over the slices of its inputs",
          .min_inputs = 1,
          .max_inputs = -1,
          .max_outputs = -1,
          .any_dtype = true,
          .infer = infer_scan,
          .eval = nullptr};
}

DECANT_OP(SequenceMap) {
  return {.name = "SequenceMap",
          .doc = "Runs a sub-graph on the tensors of sequences",
          .min_inputs = 1,
          .max_inputs = -1,
          .max_outputs = -1,
          .any_dtype = true,
          .infer = infer_sequence_map,
          .eval = nullptr};
}

}  // namespace decant::ir
