#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_variadic(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, context.input_count()));
  DECANT_ASSIGN(auto shape, broadcast_inputs(context, 0, context.input_count()));
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// Max and Min of small integer tensors, one expression for each element.
template <bool kLarger>
Status infer_extreme(InferContext& context) {
  DECANT_RETURN_IF_ERROR(infer_variadic(context));
  std::vector<Dim> out;
  for (size_t i = 0; i < context.input_count(); ++i) {
    const auto next = context.has_input(i) ? context.elements(i) : std::nullopt;
    if (!next || next->empty()) return ok_status();
    if (i == 0) {
      out = *next;
      continue;
    }
    const size_t n = std::max(out.size(), next->size());
    if ((out.size() != 1 && out.size() != n) || (next->size() != 1 && next->size() != n)) return ok_status();
    out.resize(n, out[0]);
    for (size_t k = 0; k < n; ++k) {
      const Dim& b = (*next)[next->size() == 1 ? 0 : k];
      const Graph& graph = context.graph();
      if (!kLarger) {
        out[k] = smaller(graph, out[k], b);
      } else if (!at_least(graph, out[k], b)) {
        out[k] = at_least(graph, b, out[k]) ? b : max(out[k], b);
      }
    }
  }
  follow_elements(context, std::move(out));
  return ok_status();
}

/// Folds the inputs with f in the compute type; `finish(value, count)` is applied at the end.
template <typename F, typename G>
EvalResult fold_inputs(const Node& node, EvalInputs inputs, F f, G finish) {
  Dims dims;
  for (const Tensor* t : inputs) {
    if (t == nullptr || t->dtype() != inputs[0]->dtype() || !is_number(t->dtype())) {
      return node_error(node, "inputs must be number tensors of one type");
    }
    auto next = broadcast_dims(dims, t->dims());
    if (!next)
      return node_error(node, fmt::format("{} does not broadcast with the other inputs", describe(*t)));
    dims = *std::move(next);
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(inputs[0]->dtype(), dims));
  return with_compute_type(out.dtype(), [&](auto tag) -> EvalResult {
    using C = typename decltype(tag)::type;
    std::vector<C> values(static_cast<size_t>(out.elements()));
    for (size_t n = 0; n < inputs.size(); ++n) {
      const std::vector<C> x = read<C>(*inputs[n]);
      for_each_index<1>(dims, {broadcast_strides(inputs[n]->dims(), dims)},
                        [&](int64_t i, const std::array<int64_t, 1>& at) {
                          C& v = values[static_cast<size_t>(i)];
                          const C next = x[static_cast<size_t>(at[0])];
                          v = n == 0 ? next : f(v, next);
                        });
    }
    for (C& v : values) v = finish(v, inputs.size());
    write_range<C>(out, 0, std::span<const C>(values));
    return single(std::move(out));
  });
}

/// Integers wrap.
template <typename C>
C add(C a, C b) {
  if constexpr (std::is_same_v<C, double>)
    return a + b;
  else
    return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

constexpr auto kKeep = [](auto v, size_t) { return v; };

/// A NaN wins over everything, as in NumPy.
template <bool kLarger>
EvalResult eval_extreme(const Node& node, EvalInputs inputs) {
  return fold_inputs(
      node, inputs,
      [](auto a, auto b) {
        if constexpr (std::is_same_v<decltype(a), double>) {
          if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
        }
        return (kLarger ? b > a : b < a) ? b : a;
      },
      kKeep);
}

}  // namespace

DECANT_OP(Max) {
  return {.name = "Max",
          .doc = "Largest of the inputs, broadcast",
          .min_inputs = 1,
          .max_inputs = -1,
          .infer = infer_extreme<true>,
          .eval = eval_extreme<true>};
}

DECANT_OP(Min) {
  return {.name = "Min",
          .doc = "Smallest of the inputs, broadcast",
          .min_inputs = 1,
          .max_inputs = -1,
          .infer = infer_extreme<false>,
          .eval = eval_extreme<false>};
}

DECANT_OP(Sum) {
  return {.name = "Sum",
          .doc = "Sum of the inputs, broadcast",
          .min_inputs = 1,
          .max_inputs = -1,
          .infer = infer_variadic,
          .eval = [](const Node& node, EvalInputs inputs) -> EvalResult {
            return fold_inputs(
                node, inputs, [](auto a, auto b) { return add(a, b); }, kKeep);
          }};
}

DECANT_OP(Mean) {
  return {.name = "Mean",
          .doc = "Mean of the inputs, broadcast",
          .min_inputs = 1,
          .max_inputs = -1,
          .infer = infer_variadic,
          .eval = [](const Node& node, EvalInputs inputs) -> EvalResult {
            if (!is_float(inputs[0]->dtype())) return node_error(node, "needs float tensors");
            return fold_inputs(
                node, inputs, [](auto a, auto b) { return add(a, b); },
                [](auto v, size_t n) { return static_cast<decltype(v)>(v / static_cast<decltype(v)>(n)); });
          }};
}

}  // namespace decant::ir
