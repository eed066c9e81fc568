#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

enum class Kind { kSum, kMean, kMax, kMin, kProd, kL1, kL2, kSumSquare, kLogSum, kLogSumExp };

/// Axes as flags. Without axes all are reduced, or none with noop_with_empty_axes.
Result<std::vector<bool>> reduced_axes(const Node& node, const std::vector<int64_t>& axes, size_t rank) {
  if (axes.empty()) return std::vector<bool>(rank, node.int_attribute("noop_with_empty_axes", 0) == 0);
  DECANT_ASSIGN(const auto resolved, resolve_axes(node, axes, rank));
  std::vector<bool> out(rank, false);
  for (size_t axis : resolved) out[axis] = true;
  return out;
}

template <Kind kKind>
Status infer_reduce(InferContext& context) {
  const Node& node = context.node();
  if (kKind != Kind::kMax && kKind != Kind::kMin) {
    DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  }
  const bool keep = node.int_attribute("keepdims", 1) != 0;
  const auto axes = context.has_input(1) ? context.constant_ints(1) : std::vector<int64_t>();
  if (!context.shape(0) || !axes) {
    std::optional<Shape> shape;
    if (context.shape(0) && keep) shape = context.fresh_shape(context.shape(0)->size(), "reduce");
    context.set_output(0, context.dtype(0), std::move(shape));
    return ok_status();
  }
  const Shape input = *context.shape(0);
  DECANT_ASSIGN(const auto reduced, reduced_axes(node, *axes, input.size()));
  Shape out;
  for (size_t i = 0; i < input.size(); ++i) {
    if (!reduced[i])
      out.push_back(input[i]);
    else if (keep)
      out.push_back(Dim(1));
  }
  context.set_output(0, context.dtype(0), std::move(out));
  const auto elements = context.elements(0);
  if (!elements || elements->empty() || input.size() != 1 || !reduced[0]) return ok_status();
  Dim total = (*elements)[0];
  for (size_t i = 1; i < elements->size(); ++i) {
    const Dim& next = (*elements)[i];
    switch (kKind) {
      case Kind::kSum:
        total = total + next;
        break;
      case Kind::kProd:
        total = total * next;
        break;
      case Kind::kMax:
        total = max(total, next);
        break;
      case Kind::kMin:
        total = smaller(context.graph(), total, next);
        break;
      default:
        return ok_status();
    }
  }
  if (kKind == Kind::kSum || kKind == Kind::kProd || kKind == Kind::kMax || kKind == Kind::kMin) {
    follow_elements(context, {total});
  }
  return ok_status();
}

/// Value of an empty reduction.
template <Kind kKind, typename C>
C start_value(DType dtype) {
  if constexpr (kKind == Kind::kProd) return C(1);
  if constexpr (kKind == Kind::kMax || kKind == Kind::kMin) {
    constexpr bool kSmallest = kKind == Kind::kMax;
    if constexpr (std::is_same_v<C, double>) {
      const double inf = std::numeric_limits<double>::infinity();
      return kSmallest ? -inf : inf;
    } else {
      if (dtype == DType::kUInt64) return kSmallest ? C(0) : static_cast<C>(UINT64_MAX);
      const IntegerRange range = integer_range(dtype);
      return static_cast<C>(kSmallest ? range.min : range.max);
    }
  }
  return C(0);
}

template <Kind kKind, typename C>
C accumulate(C total, C x) {
  switch (kKind) {
    case Kind::kSum:
    case Kind::kMean:
      return total + x;
    case Kind::kLogSum:
      return total + x;
    case Kind::kProd:
      return total * x;
    case Kind::kL1:
      if constexpr (std::is_same_v<C, double>) return total + std::fabs(x);
      return total + (static_cast<int64_t>(x) < 0 ? -x : x);
    case Kind::kLogSumExp:
      return total;
    case Kind::kL2:
    case Kind::kSumSquare:
      return total + x * x;
    case Kind::kMax:
    case Kind::kMin:
      if constexpr (std::is_same_v<C, double>) {
        if (std::isnan(total) || std::isnan(x)) return std::numeric_limits<double>::quiet_NaN();
      }
      return kKind == Kind::kMax ? std::max(total, x) : std::min(total, x);
  }
  return total;
}

/// log(sum(e^x)), with the largest x taken out of the sum so that it cannot overflow.
EvalResult log_sum_exp(const Tensor& x, Tensor out, const Dims& strides) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> values = read<double>(x);
  std::vector<double> largest(static_cast<size_t>(out.elements()), -inf), totals(largest.size(), 0.0);
  for_each_index<1>(x.dims(), {strides}, [&](int64_t i, const std::array<int64_t, 1>& at) {
    double& most = largest[static_cast<size_t>(at[0])];
    most = std::fmax(most, values[static_cast<size_t>(i)]);
  });
  for_each_index<1>(x.dims(), {strides}, [&](int64_t i, const std::array<int64_t, 1>& at) {
    const double most = largest[static_cast<size_t>(at[0])];
    totals[static_cast<size_t>(at[0])] +=
        std::exp(values[static_cast<size_t>(i)] - (std::isinf(most) ? 0 : most));
  });
  for (size_t i = 0; i < totals.size(); ++i) {
    totals[i] = std::log(totals[i]) + (std::isinf(largest[i]) ? 0 : largest[i]);
  }
  write_range<double>(out, 0, std::span<const double>(totals));
  return single(std::move(out));
}

template <Kind kKind>
EvalResult eval_reduce(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (x.dtype() == DType::kBool && kKind != Kind::kMax && kKind != Kind::kMin) {
    return node_error(node, "needs a number tensor");
  }
  DECANT_ASSIGN(const auto reduced, reduced_axes(node, axes_of(inputs, 1), x.rank()));
  const bool keep = node.int_attribute("keepdims", 1) != 0;
  // Without reduced axes the result is the input itself, whatever the operation.
  const bool nothing = axes_of(inputs, 1).empty() && node.int_attribute("noop_with_empty_axes", 0) != 0;
  if (nothing) return single(x);
  Dims dims, kept = x.dims();
  for (size_t i = 0; i < x.rank(); ++i) {
    if (reduced[i]) kept[i] = 1;
    if (!reduced[i] || keep) dims.push_back(kept[i]);
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), dims));
  Dims strides = strides_of(kept);
  for (size_t i = 0; i < x.rank(); ++i) {
    if (reduced[i]) strides[i] = 0;
  }
  if constexpr (kKind == Kind::kLogSumExp) return log_sum_exp(x, std::move(out), strides);
  const auto run = [&](auto zero) {
    using C = decltype(zero);
    const std::vector<C> values = read<C>(x);
    std::vector<C> totals(static_cast<size_t>(out.elements()), start_value<kKind, C>(x.dtype()));
    std::vector<int64_t> counts(totals.size(), 0);
    for_each_index<1>(x.dims(), {strides}, [&](int64_t i, const std::array<int64_t, 1>& at) {
      C& total = totals[static_cast<size_t>(at[0])];
      total = accumulate<kKind, C>(total, values[static_cast<size_t>(i)]);
      ++counts[static_cast<size_t>(at[0])];
    });
    for (size_t i = 0; i < totals.size(); ++i) {
      if constexpr (kKind == Kind::kMean && std::is_same_v<C, double>) {
        totals[i] /= static_cast<double>(counts[i]);
      } else if constexpr (kKind == Kind::kMean) {
        // Cut towards zero; unsigned arithmetic holds the sum's bits.
        if (counts[i] > 0) totals[i] = static_cast<C>(static_cast<int64_t>(totals[i]) / counts[i]);
      }
      if constexpr (kKind == Kind::kLogSum) {
        const double total = std::is_same_v<C, double> || !is_signed_integer(x.dtype())
                                 ? static_cast<double>(totals[i])
                                 : static_cast<double>(static_cast<int64_t>(totals[i]));
        if constexpr (std::is_same_v<C, double>) {
          totals[i] = std::log(total);
        } else {
          totals[i] = total > 0 ? static_cast<C>(std::log(total)) : C(0);
        }
      }
      if constexpr (kKind == Kind::kL2) totals[i] = static_cast<C>(std::sqrt(static_cast<double>(totals[i])));
    }
    write_range<C>(out, 0, std::span<const C>(totals));
  };
  if (is_float(x.dtype())) {
    run(0.0);
  } else if (kKind == Kind::kMax || kKind == Kind::kMin) {
    with_compute_type(x.dtype(), [&](auto tag) { run(typename decltype(tag)::type{}); });
  } else {
    run(uint64_t{0});  // sums and products wrap
  }
  return single(std::move(out));
}

template <Kind kKind>
OpDef reduce_op(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .min_inputs = 1,
          .max_inputs = 2,
          .infer = infer_reduce<kKind>,
          .eval = eval_reduce<kKind>};
}

}  // namespace

DECANT_OP(ReduceSum) { return reduce_op<Kind::kSum>("ReduceSum", "Sum over axes"); }
DECANT_OP(ReduceMean) { return reduce_op<Kind::kMean>("ReduceMean", "Mean over axes"); }
DECANT_OP(ReduceMax) { return reduce_op<Kind::kMax>("ReduceMax", "Largest value over axes"); }
DECANT_OP(ReduceMin) { return reduce_op<Kind::kMin>("ReduceMin", "Smallest value over axes"); }
DECANT_OP(ReduceProd) { return reduce_op<Kind::kProd>("ReduceProd", "Product over axes"); }
DECANT_OP(ReduceL1) { return reduce_op<Kind::kL1>("ReduceL1", "Sum of absolute values over axes"); }
DECANT_OP(ReduceLogSum) { return reduce_op<Kind::kLogSum>("ReduceLogSum", "Logarithm of the sum over axes"); }
DECANT_OP(ReduceLogSumExp) {
  return reduce_op<Kind::kLogSumExp>("ReduceLogSumExp", "Logarithm of the sum of e^x over axes");
}
DECANT_OP(ReduceL2) {
  return reduce_op<Kind::kL2>("ReduceL2", "Square root of the sum of squares over axes");
}
DECANT_OP(ReduceSumSquare) {
  return reduce_op<Kind::kSumSquare>("ReduceSumSquare", "Sum of squares over axes");
}

}  // namespace decant::ir
