#include <algorithm>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

using DataInputs = std::span<const Datum* const>;
using DataResult = Result<std::vector<Datum>>;

DataResult one(Datum datum) {
  std::vector<Datum> out;
  out.push_back(std::move(datum));
  return out;
}

Status require_sequence(InferContext& context, size_t i) {
  if (context.kind(i) == ValueKind::kSequence) return ok_status();
  return context.error(fmt::format("input {} must be a sequence, not a {}", i, to_string(context.kind(i))));
}

Status require_tensor(InferContext& context, size_t i) {
  if (!context.has_input(i) || context.kind(i) == ValueKind::kTensor) return ok_status();
  return context.error(fmt::format("input {} must be a tensor, not a {}", i, to_string(context.kind(i))));
}

Result<const Datum::Sequence*> items_of(const Node& node, const Datum* datum) {
  if (datum == nullptr || !datum->is_sequence()) {
    return node_error(node, "needs a sequence" + (datum ? ", not " + describe(*datum) : std::string()));
  }
  return &datum->items();
}

Result<const Tensor*> tensor_of(const Node& node, const Datum* datum) {
  if (datum == nullptr || !datum->is_tensor()) {
    return node_error(node, "needs a tensor" + (datum ? ", not " + describe(*datum) : std::string()));
  }
  return &datum->tensor();
}

/// A position in [-length, length) counted from the front; the default when it is left out.
Result<int64_t> position_of(const Node& node, const Datum* datum, int64_t length, int64_t fallback) {
  if (datum == nullptr) return fallback;
  DECANT_ASSIGN(const Tensor* tensor, tensor_of(node, datum));
  if (tensor->elements() != 1 || !is_index(tensor->dtype()))
    return node_error(node, "the position must be one integer");
  const int64_t at = tensor->int_at(0);
  if (at < -length || at >= length) {
    return node_error(node, fmt::format("position {} is outside a sequence of {}", at, length));
  }
  return at < 0 ? at + length : at;
}

/// A tensor for a sequence: the sequence may outlive what the tensor views.
Result<Tensor> kept(const Tensor& tensor) {
  if (tensor.owner()) return tensor;
  return clone(tensor);
}

Status infer_construct(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, context.input_count()));
  bool same = true;
  for (size_t i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) return context.error(fmt::format("input {} is left out", i));
    DECANT_RETURN_IF_ERROR(require_tensor(context, i));
    same = same && context.shape(i) == context.shape(0);
  }
  context.set_output(0, context.dtype(0), same ? context.shape(0) : std::nullopt, ValueKind::kSequence);
  return ok_status();
}

DataResult eval_construct(const Node& node, DataInputs inputs) {
  Datum::Sequence items;
  for (const Datum* d : inputs) {
    DECANT_ASSIGN(const Tensor* tensor, tensor_of(node, d));
    if (!items.empty() && tensor->dtype() != items[0].dtype())
      return node_error(node, "tensors of different types");
    DECANT_ASSIGN(Tensor item, kept(*tensor));
    items.push_back(std::move(item));
  }
  return one(Datum::sequence(std::move(items)));
}

Status infer_insert(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_sequence(context, 0));
  DECANT_RETURN_IF_ERROR(require_tensor(context, 1));
  DECANT_RETURN_IF_ERROR(require_tensor(context, 2));
  if (context.dtype(0) != context.dtype(1)) {
    return context.error(fmt::format("a {} tensor for a sequence of {}", to_string(context.dtype(1)),
                                     to_string(context.dtype(0))));
  }
  const bool same = context.shape(0) && context.shape(0) == context.shape(1);
  context.set_output(0, context.dtype(0), same ? context.shape(0) : std::nullopt, ValueKind::kSequence);
  return ok_status();
}

DataResult eval_insert(const Node& node, DataInputs inputs) {
  DECANT_ASSIGN(const Datum::Sequence* items, items_of(node, inputs[0]));
  DECANT_ASSIGN(const Tensor* tensor, tensor_of(node, inputs[1]));
  if (!items->empty() && (*items)[0].dtype() != tensor->dtype())
    return node_error(node, "tensors of different types");
  const auto length = static_cast<int64_t>(items->size());
  int64_t at = length;
  if (inputs.size() > 2 && inputs[2] != nullptr) {
    // One more place than for reading: behind the last.
    DECANT_ASSIGN(const Tensor* position, tensor_of(node, inputs[2]));
    if (position->elements() != 1 || !is_index(position->dtype()))
      return node_error(node, "the position must be one integer");
    at = position->int_at(0);
    if (at < -length || at > length) {
      return node_error(node, fmt::format("position {} is outside a sequence of {}", at, length));
    }
    if (at < 0) at += length;
  }
  DECANT_ASSIGN(Tensor item, kept(*tensor));
  Datum::Sequence longer = *items;
  longer.insert(longer.begin() + at, std::move(item));
  return one(Datum::sequence(std::move(longer)));
}

DataResult eval_erase(const Node& node, DataInputs inputs) {
  DECANT_ASSIGN(const Datum::Sequence* items, items_of(node, inputs[0]));
  if (items->empty()) return node_error(node, "the sequence is empty");
  const auto length = static_cast<int64_t>(items->size());
  DECANT_ASSIGN(const int64_t at,
                position_of(node, inputs.size() > 1 ? inputs[1] : nullptr, length, length - 1));
  Datum::Sequence shorter = *items;
  shorter.erase(shorter.begin() + at);
  return one(Datum::sequence(std::move(shorter)));
}

DataResult eval_at(const Node& node, DataInputs inputs) {
  DECANT_ASSIGN(const Datum::Sequence* items, items_of(node, inputs[0]));
  if (inputs[1] == nullptr) return node_error(node, "the position is left out");
  DECANT_ASSIGN(const int64_t at, position_of(node, inputs[1], static_cast<int64_t>(items->size()), 0));
  return one((*items)[static_cast<size_t>(at)]);
}

Status infer_sequence_and_position(InferContext& context, ValueKind result) {
  DECANT_RETURN_IF_ERROR(require_sequence(context, 0));
  DECANT_RETURN_IF_ERROR(require_tensor(context, 1));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an int32 or int64 scalar"));
  context.set_output(0, context.dtype(0), context.shape(0), result);
  return ok_status();
}

Status infer_split_to_sequence(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_tensor(context, 0));
  DECANT_RETURN_IF_ERROR(require_tensor(context, 1));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an int32 or int64 tensor"));
  std::optional<Shape> shape;
  if (!context.has_input(1) && context.shape(0)) {
    shape = context.shape(0);
    DECANT_ASSIGN(const size_t axis,
                  resolve_axis(context.node(), context.node().int_attribute("axis", 0), shape->size()));
    if (context.node().int_attribute("keepdims", 1) != 0) {
      (*shape)[axis] = Dim(1);
    } else {
      shape->erase(shape->begin() + static_cast<std::ptrdiff_t>(axis));
    }
  }
  context.set_output(0, context.dtype(0), std::move(shape), ValueKind::kSequence);
  return ok_status();
}

/// Sizes of the parts along an axis: ones, chunks of one size (the last may be shorter), or a list.
Result<Dims> part_sizes(const Node& node, const Datum* split, int64_t length) {
  if (split == nullptr) return Dims(static_cast<size_t>(length), 1);
  DECANT_ASSIGN(const Tensor* tensor, tensor_of(node, split));
  if (!is_index(tensor->dtype()) || tensor->rank() > 1)
    return node_error(node, "split must be an integer or a list");
  if (tensor->rank() == 0) {
    const int64_t size = tensor->int_at(0);
    if (size < 1) return node_error(node, fmt::format("split {} is not positive", size));
    Dims sizes(static_cast<size_t>(length / size), size);
    if (length % size != 0) sizes.push_back(length % size);
    return sizes;
  }
  Dims sizes = tensor->to_ints();
  int64_t left = length;
  for (int64_t size : sizes) {
    if (size < 0 || size > left) return node_error(node, "split does not fit the axis");
    left -= size;
  }
  if (left != 0) return node_error(node, "split does not cover the axis");
  return sizes;
}

DataResult eval_split_to_sequence(const Node& node, DataInputs inputs) {
  DECANT_ASSIGN(const Tensor* x, tensor_of(node, inputs[0]));
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", 0), x->rank()));
  const Datum* split = inputs.size() > 1 ? inputs[1] : nullptr;
  DECANT_ASSIGN(const Dims sizes, part_sizes(node, split, x->dims()[axis]));
  const bool drop = split == nullptr && node.int_attribute("keepdims", 1) == 0;
  const Dims strides = strides_of(x->dims());
  Datum::Sequence items;
  int64_t at = 0;
  for (int64_t size : sizes) {
    Dims dims = x->dims();
    dims[axis] = size;
    DECANT_ASSIGN(Tensor part, strided_copy(*x, dims, strides, at * strides[axis]));
    if (drop) {
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
      part = part.reshaped(std::move(dims));
    }
    items.push_back(std::move(part));
    at += size;
  }
  return one(Datum::sequence(std::move(items)));
}

Status infer_concat_from_sequence(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_sequence(context, 0));
  std::optional<Shape> shape = context.shape(0);
  if (context.node().attribute<int64_t>("axis") == nullptr)
    return context.error("attribute 'axis' is missing");
  if (shape) {
    const bool stacked = context.node().int_attribute("new_axis", 0) != 0;
    const size_t rank = shape->size() + (stacked ? 1 : 0);
    DECANT_ASSIGN(const size_t axis,
                  resolve_axis(context.node(), context.node().int_attribute("axis", 0), rank));
    if (stacked) shape->insert(shape->begin() + static_cast<std::ptrdiff_t>(axis), Dim(0));
    (*shape)[axis] = context.fresh_symbol("concat");
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

DataResult eval_concat_from_sequence(const Node& node, DataInputs inputs) {
  DECANT_ASSIGN(const Datum::Sequence* items, items_of(node, inputs[0]));
  if (items->empty()) return node_error(node, "the sequence is empty");
  const Tensor& first = items->front();
  const bool stacked = node.int_attribute("new_axis", 0) != 0;
  DECANT_ASSIGN(const size_t axis,
                resolve_axis(node, node.int_attribute("axis", 0), first.rank() + (stacked ? 1 : 0)));
  std::vector<Tensor> parts;
  Dims dims;
  int64_t length = 0;
  for (const Tensor& item : *items) {
    Dims own = item.dims();
    if (stacked) own.insert(own.begin() + static_cast<std::ptrdiff_t>(std::min(axis, own.size())), 1);
    if (own.size() <= axis || item.dtype() != first.dtype())
      return node_error(node, "tensors of different types");
    length += own[axis];
    Dims others = own;
    others[axis] = 0;
    if (parts.empty()) dims = others;
    if (others != dims) {
      return node_error(node, fmt::format("{} and {} do not join", describe(first), describe(item)));
    }
    parts.push_back(item.reshaped(std::move(own)));
  }
  dims[axis] = length;
  DECANT_ASSIGN(Tensor out, Tensor::allocate(first.dtype(), dims));
  const int64_t outer = product(dims, 0, axis), inner = product(dims, axis + 1, dims.size());
  int64_t at = 0;
  for (const Tensor& part : parts) {
    const int64_t run = part.dims()[axis] * inner;
    for (int64_t o = 0; o < outer && run > 0; ++o)
      copy_elements(out, (o * length + at) * inner, part, o * run, run);
    at += part.dims()[axis];
  }
  return one(std::move(out));
}

}  // namespace

DECANT_OP(SequenceConstruct) {
  return {.name = "SequenceConstruct",
          .doc = "The inputs as a sequence",
          .min_inputs = 1,
          .max_inputs = -1,
          .any_dtype = true,
          .infer = infer_construct,
          .eval_data = eval_construct};
}

DECANT_OP(SequenceEmpty) {
  return {.name = "SequenceEmpty",
          .doc = "A sequence without tensors, of the type of attribute `dtype`",
          .min_inputs = 0,
          .max_inputs = 0,
          .infer = [](InferContext& context) -> Status {
            const DType dtype = dtype_from_onnx_code(context.node().int_attribute("dtype", 1));
            if (dtype == DType::kUndefined) return context.error("attribute 'dtype' is no known type");
            context.set_output(0, dtype, std::nullopt, ValueKind::kSequence);
            return ok_status();
          },
          .eval_data = [](const Node&, DataInputs) -> DataResult { return one(Datum::sequence({})); }};
}

DECANT_OP(SequenceAt) {
  return {
      .name = "SequenceAt",
      .doc = "The tensor at a position",
      .min_inputs = 2,
      .max_inputs = 2,
      .any_dtype = true,
      .infer = [](InferContext& c) -> Status { return infer_sequence_and_position(c, ValueKind::kTensor); },
      .eval_data = eval_at};
}

DECANT_OP(SequenceInsert) {
  return {.name = "SequenceInsert",
          .doc = "The sequence with a tensor before a position, by default at its end",
          .min_inputs = 2,
          .max_inputs = 3,
          .any_dtype = true,
          .infer = infer_insert,
          .eval_data = eval_insert};
}

DECANT_OP(SequenceErase) {
  return {
      .name = "SequenceErase",
      .doc = "The sequence without the tensor at a position, by default the last",
      .min_inputs = 1,
      .max_inputs = 2,
      .any_dtype = true,
      .infer = [](InferContext& c) -> Status { return infer_sequence_and_position(c, ValueKind::kSequence); },
      .eval_data = eval_erase};
}

DECANT_OP(SequenceLength) {
  return {.name = "SequenceLength",
          .doc = "Number of tensors",
          .min_inputs = 1,
          .max_inputs = 1,
          .any_dtype = true,
          .infer = [](InferContext& context) -> Status {
            DECANT_RETURN_IF_ERROR(require_sequence(context, 0));
            context.set_output(0, DType::kInt64, Shape{});
            return ok_status();
          },
          .eval_data = [](const Node& node, DataInputs inputs) -> DataResult {
            DECANT_ASSIGN(const Datum::Sequence* items, items_of(node, inputs[0]));
            return one(Tensor::scalar(static_cast<int64_t>(items->size())));
          }};
}

DECANT_OP(SplitToSequence) {
  return {.name = "SplitToSequence",
          .doc = "Cuts x along `axis` into a sequence",
          .min_inputs = 1,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = infer_split_to_sequence,
          .eval_data = eval_split_to_sequence};
}

DECANT_OP(ConcatFromSequence) {
  return {.name = "ConcatFromSequence",
          .doc = "Joins the tensors of a sequence along an axis, or a new one",
          .min_inputs = 1,
          .max_inputs = 1,
          .any_dtype = true,
          .infer = infer_concat_from_sequence,
          .eval_data = eval_concat_from_sequence};
}

}  // namespace decant::ir
