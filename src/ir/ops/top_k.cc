#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_top_k(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an int64 tensor"));
  std::optional<Shape> shape = context.shape(0);
  if (shape) {
    DECANT_ASSIGN(const size_t axis,
                  resolve_axis(context.node(), context.node().int_attribute("axis", -1), shape->size()));
    const auto k = context.elements(1);
    (*shape)[axis] = k && k->size() == 1 ? (*k)[0] : context.fresh_symbol("k");
  }
  context.set_output(0, context.dtype(0), shape);
  context.set_output(1, DType::kInt64, shape);
  return ok_status();
}

/// Equal values keep the order of their indices; a NaN counts as the largest value.
EvalResult eval_top_k(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &k_tensor = *inputs[1];
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", -1), x.rank()));
  if (k_tensor.elements() != 1 || !is_index(k_tensor.dtype()))
    return node_error(node, "k must be one integer");
  const int64_t k = k_tensor.int_at(0), length = x.dims()[axis];
  if (k < 0 || k > length) return node_error(node, fmt::format("k = {} for an axis of {}", k, length));
  const bool largest = node.int_attribute("largest", 1) != 0;
  Dims dims = x.dims();
  dims[axis] = k;
  DECANT_ASSIGN(Tensor values, Tensor::allocate(x.dtype(), dims));
  DECANT_ASSIGN(Tensor indices, Tensor::allocate(DType::kInt64, dims));
  if (values.elements() > 0) {
    const int64_t outer = product(x.dims(), 0, axis), inner = product(x.dims(), axis + 1, x.rank());
    with_compute_type(x.dtype(), [&](auto tag) {
      using C = typename decltype(tag)::type;
      const std::vector<C> all = read<C>(x);
      const auto less = [](C a, C b) {
        if constexpr (std::is_same_v<C, double>) {
          if (std::isnan(a) || std::isnan(b)) return !std::isnan(a);
        }
        return a < b;
      };
      std::vector<int64_t> order(static_cast<size_t>(length));
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
          const auto at = [&](int64_t n) { return (o * length + n) * inner + i; };
          const auto value = [&](int64_t n) { return all[static_cast<size_t>(at(n))]; };
          std::iota(order.begin(), order.end(), int64_t{0});
          std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            if constexpr (std::is_same_v<C, double>) {
              if (std::isnan(value(a)) && std::isnan(value(b))) return false;
            }
            return largest ? less(value(b), value(a)) : less(value(a), value(b));
          });
          for (int64_t n = 0; n < k; ++n) {
            const int64_t to = (o * k + n) * inner + i, pick = order[static_cast<size_t>(n)];
            copy_elements(values, to, x, at(pick), 1);
            indices.mutable_data_as<int64_t>()[to] = pick;
          }
        }
      }
    });
  }
  std::vector<Tensor> out(std::max<size_t>(1, node.outputs().size()));
  out[0] = std::move(values);
  if (out.size() > 1) out[1] = std::move(indices);
  return out;
}

Status infer_arg(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  std::optional<Shape> shape = context.shape(0);
  if (shape) {
    const Node& node = context.node();
    DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", 0), shape->size()));
    if (node.int_attribute("keepdims", 1) != 0)
      (*shape)[axis] = Dim(1);
    else
      shape->erase(shape->begin() + static_cast<std::ptrdiff_t>(axis));
  }
  context.set_output(0, DType::kInt64, std::move(shape));
  return ok_status();
}

template <bool kLargest>
EvalResult eval_arg(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", 0), x.rank()));
  const bool last = node.int_attribute("select_last_index", 0) != 0;
  const int64_t length = x.dims()[axis];
  if (length == 0) return node_error(node, "the axis has no elements");
  Dims dims = x.dims();
  dims[axis] = 1;
  DECANT_ASSIGN(Tensor out, Tensor::allocate(DType::kInt64, dims));
  const int64_t inner = product(x.dims(), axis + 1, x.rank());
  with_compute_type(x.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const std::vector<C> all = read<C>(x);
    for (int64_t r = 0; r < out.elements(); ++r) {
      const int64_t base = r / inner * length * inner + r % inner;
      int64_t best = 0;
      for (int64_t n = 1; n < length; ++n) {
        const C a = all[static_cast<size_t>(base + n * inner)],
                b = all[static_cast<size_t>(base + best * inner)];
        if ((kLargest ? a > b : a < b) || (last && a == b)) best = n;
      }
      out.mutable_data_as<int64_t>()[r] = best;
    }
  });
  if (node.int_attribute("keepdims", 1) == 0) {
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
    return single(out.reshaped(std::move(dims)));
  }
  return single(std::move(out));
}

}  // namespace

DECANT_OP(TopK) {
  return {.name = "TopK",
          .doc = "The k largest or smallest values along `axis`, and their indices",
          .min_inputs = 2,
          .max_inputs = 2,
          .max_outputs = 2,
          .infer = infer_top_k,
          .eval = eval_top_k};
}

DECANT_OP(ArgMax) {
  return {.name = "ArgMax",
          .doc = "Index of the largest value along `axis`",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_arg,
          .eval = eval_arg<true>};
}

DECANT_OP(ArgMin) {
  return {.name = "ArgMin",
          .doc = "Index of the smallest value along `axis`",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_arg,
          .eval = eval_arg<false>};
}

}  // namespace decant::ir
