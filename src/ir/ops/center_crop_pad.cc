#include <algorithm>
#include <cstring>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// `axes`, or all of them.
Result<std::vector<size_t>> axes_to_change(const Node& node, size_t rank) {
  std::vector<int64_t> axes;
  if (const auto* given = node.attribute<std::vector<int64_t>>("axes")) {
    axes = *given;
  } else {
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  return resolve_axes(node, axes, rank);
}

Status infer_center_crop_pad(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an integer tensor"));
  if (!context.shape(0)) {
    context.set_output(0, context.dtype(0), std::nullopt);
    return ok_status();
  }
  Shape shape = *context.shape(0);
  DECANT_ASSIGN(const auto axes, axes_to_change(context.node(), shape.size()));
  const auto sizes = context.elements(1);
  if (sizes && sizes->size() != axes.size()) return context.error("shape and axes have different lengths");
  for (size_t i = 0; i < axes.size(); ++i) {
    shape[axes[i]] = sizes ? (*sizes)[i] : context.fresh_symbol("crop");
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

EvalResult eval_center_crop_pad(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const auto axes, axes_to_change(node, x.rank()));
  DECANT_ASSIGN(const auto sizes, read_int_list(node, *inputs[1], "shape"));
  if (sizes.size() != axes.size()) return node_error(node, "shape and axes have different lengths");
  Dims dims = x.dims(), window = x.dims();
  Dims from(x.rank(), 0), to(x.rank(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t a = axes[i];
    if (sizes[i] < 0) return node_error(node, "a size is negative");
    dims[a] = sizes[i];
    window[a] = std::min(sizes[i], x.dims()[a]);
    from[a] = (x.dims()[a] - window[a]) / 2;
    to[a] = (sizes[i] - window[a]) / 2;
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), dims));
  if (out.bytes() != 0) std::memset(out.mutable_data(), 0, out.bytes());
  if (out.elements() == 0 || x.elements() == 0) return single(std::move(out));
  const Dims in_strides = strides_of(x.dims()), out_strides = strides_of(dims);
  int64_t in_base = 0, out_base = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    in_base += from[i] * in_strides[i];
    out_base += to[i] * out_strides[i];
  }
  DECANT_ASSIGN(const Tensor part, strided_copy(x, window, in_strides, in_base));
  strided_write(out, out_strides, out_base, part);
  return single(std::move(out));
}

}  // namespace

DECANT_OP(CenterCropPad) {
  return {.name = "CenterCropPad",
          .doc = "Cut or padded with zeros around the centre to `shape`",
          .min_inputs = 2,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = infer_center_crop_pad,
          .eval = eval_center_crop_pad};
}

}  // namespace decant::ir
