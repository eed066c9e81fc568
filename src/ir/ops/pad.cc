#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

enum class Mode { kConstant, kEdge, kReflect, kWrap };

Result<Mode> mode_of(const Node& node) {
  const std::string mode = node.string_attribute("mode", "constant");
  if (mode == "constant") return Mode::kConstant;
  if (mode == "edge") return Mode::kEdge;
  if (mode == "reflect") return Mode::kReflect;
  if (mode == "wrap") return Mode::kWrap;
  return node_error(node, fmt::format("unknown mode '{}'", mode));
}

/// Where element i of a padded line comes from, in the line of n elements that it is made of. Reflection
/// leaves the edge element out: 2 1 | 0 1 2 | 1 0.
int64_t source_of(Mode mode, int64_t i, int64_t n) {
  if (mode == Mode::kEdge) return std::clamp<int64_t>(i, 0, n - 1);
  const int64_t period = mode == Mode::kWrap ? n : std::max<int64_t>(1, 2 * (n - 1));
  const int64_t at = (i % period + period) % period;
  return at < n ? at : period - at;
}

/// Pads with elements of x itself. Negative pads cut first; `before` and `dims` are checked by the caller.
EvalResult pad_from_input(const Node& node, Mode mode, const Tensor& x, const Dims& before,
                          const Dims& dims) {
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), dims));
  if (out.elements() == 0) return single(std::move(out));
  const Dims strides = strides_of(x.dims());
  std::vector<Dims> offsets(x.rank());
  for (size_t d = 0; d < x.rank(); ++d) {
    const int64_t after = dims[d] - x.dims()[d] - before[d];
    const int64_t begin = std::max<int64_t>(0, -before[d]), end = x.dims()[d] - std::max<int64_t>(0, -after);
    if (end <= begin) return node_error(node, "nothing is left to pad with");
    for (int64_t i = 0; i < dims[d]; ++i) {
      offsets[d].push_back((begin + source_of(mode, i - std::max<int64_t>(0, before[d]), end - begin)) *
                           strides[d]);
    }
  }
  Dims index(x.rank(), 0);
  for (int64_t i = 0; i < out.elements(); ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < x.rank(); ++d) at += offsets[d][static_cast<size_t>(index[d])];
    copy_elements(out, i, x, at, 1);
    for (size_t d = x.rank(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
  return single(std::move(out));
}

Status infer_pad(InferContext& context) {
  DECANT_RETURN_IF_ERROR(mode_of(context.node()).status());
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an int64 tensor"));
  if (!context.shape(0)) return infer_same(context);
  Shape shape = *context.shape(0);
  const auto pads = context.elements(1);
  const auto axes = context.has_input(3) ? context.constant_ints(3) : std::optional<std::vector<int64_t>>();
  if (!pads || (context.has_input(3) && !axes)) {
    context.set_output(0, context.dtype(0), context.fresh_shape(shape.size(), "pad"));
    return ok_status();
  }
  std::vector<size_t> resolved;
  if (axes) {
    DECANT_ASSIGN(resolved, resolve_axes(context.node(), *axes, shape.size()));
  } else {
    for (size_t i = 0; i < shape.size(); ++i) resolved.push_back(i);
  }
  if (pads->size() != 2 * resolved.size()) return context.error("two pads for each axis are needed");
  for (size_t i = 0; i < resolved.size(); ++i) {
    Dim& d = shape[resolved[i]];
    d = d + (*pads)[i] + (*pads)[resolved.size() + i];
    if (d.is_constant() && d.constant() < 0) return context.error("pads leave a negative dim");
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// Negative pads cut.
EvalResult eval_pad(const Node& node, EvalInputs inputs) {
  DECANT_ASSIGN(const Mode mode, mode_of(node));
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const Dims pads, read_int_list(node, *inputs[1], "the pads"));
  std::vector<size_t> axes;
  if (const Tensor* t = optional_input(inputs, 3)) {
    DECANT_ASSIGN(const Dims list, read_int_list(node, *t, "the axes"));
    DECANT_ASSIGN(axes, resolve_axes(node, list, x.rank()));
  } else {
    for (size_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  if (pads.size() != 2 * axes.size()) return node_error(node, "two pads for each axis are needed");
  Dims before(x.rank(), 0), dims = x.dims();
  for (size_t i = 0; i < axes.size(); ++i) {
    before[axes[i]] = pads[i];
    if (__builtin_add_overflow(dims[axes[i]], pads[i], &dims[axes[i]]) ||
        __builtin_add_overflow(dims[axes[i]], pads[axes.size() + i], &dims[axes[i]]) || dims[axes[i]] < 0) {
      return node_error(node, "pads leave a negative or too large dim");
    }
  }
  if (mode != Mode::kConstant) return pad_from_input(node, mode, x, before, dims);
  const Tensor* value = optional_input(inputs, 2);
  if (value != nullptr && (value->elements() != 1 || value->dtype() != x.dtype())) {
    return node_error(node, "the fill value must be a scalar of the input's type");
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), dims));
  fill_elements(out, 0, value, out.elements());
  if (out.elements() == 0 || x.elements() == 0) return single(std::move(out));
  // The part of the source that remains, and where it goes.
  Dims kept = x.dims();
  const Dims from = strides_of(x.dims()), to = strides_of(dims);
  int64_t from_base = 0, to_base = 0;
  for (size_t d = 0; d < x.rank(); ++d) {
    const int64_t begin = std::max<int64_t>(0, -before[d]);
    const int64_t end = std::min(x.dims()[d], dims[d] - before[d]);
    kept[d] = std::max<int64_t>(0, end - begin);
    if (kept[d] == 0) return single(std::move(out));
    from_base += begin * from[d];
    to_base += (begin + before[d]) * to[d];
  }
  DECANT_ASSIGN(const Tensor part, strided_copy(x, kept, from, from_base));
  strided_write(out, to, to_base, part);
  return single(std::move(out));
}

}  // namespace

DECANT_OP(Pad) {
  return {.name = "Pad",
          .doc = "Adds a border; mode = constant | edge | reflect | wrap; negative pads cut",
          .min_inputs = 2,
          .max_inputs = 4,
          .any_dtype = true,
          .infer = infer_pad,
          .eval = eval_pad};
}

}  // namespace decant::ir
