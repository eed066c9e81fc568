#include <cmath>
#include <functional>
#include <type_traits>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

using DimFunction = std::optional<Dim> (*)(const Graph&, const Dim&, const Dim&);

/// Elements of a binary op on small integer tensors, when `f` can tell each of them.
void follow_binary(InferContext& context, DimFunction f) {
  if (f == nullptr) return;
  const auto a = context.elements(0), b = context.elements(1);
  if (!a || !b || a->empty() || b->empty()) return;
  const size_t n = a->size() == 1 ? b->size() : a->size();
  if ((a->size() != 1 && a->size() != n) || (b->size() != 1 && b->size() != n)) return;
  std::vector<Dim> out;
  for (size_t i = 0; i < n; ++i) {
    auto value = f(context.graph(), (*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    if (!value) return;
    out.push_back(*std::move(value));
  }
  follow_elements(context, std::move(out));
}

Status infer_broadcast(InferContext& context, std::optional<DType> result, DimFunction f) {
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, 2));
  DECANT_ASSIGN(auto shape, broadcast_inputs(context, 0, 2));
  context.set_output(0, result.value_or(context.dtype(0)), std::move(shape));
  follow_binary(context, f);
  return ok_status();
}

std::optional<Dim> dim_add(const Graph&, const Dim& a, const Dim& b) { return a + b; }
std::optional<Dim> dim_sub(const Graph&, const Dim& a, const Dim& b) { return a - b; }
std::optional<Dim> dim_mul(const Graph&, const Dim& a, const Dim& b) { return a * b; }

/// Integer division cuts towards zero, which is floor for operands that are not negative.
std::optional<Dim> dim_div(const Graph& graph, const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    if (b.constant() == 0 || (a.constant() == INT64_MIN && b.constant() == -1)) return std::nullopt;
    return Dim(a.constant() / b.constant());
  }
  if (b == Dim(0)) return std::nullopt;
  if (auto exact = Dim::divide_exact(a, b)) return exact;
  if (!at_least(graph, a, 0) || !at_least(graph, b, 0)) return std::nullopt;
  return floor_div(a, b);
}

std::optional<Dim> dim_mod(const Graph& graph, const Dim& a, const Dim& b) {
  if (b == Dim(0) || !at_least(graph, a, 0) || !at_least(graph, b, 0)) return std::nullopt;
  return mod(a, b);
}

std::optional<Dim> dim_equal(const Graph& graph, const Dim& a, const Dim& b) {
  if (a == b) return Dim(1);
  if (at_least(graph, a - b, 1) || at_least(graph, b - a, 1)) return Dim(0);
  return std::nullopt;
}
std::optional<Dim> dim_less(const Graph& graph, const Dim& a, const Dim& b) {
  if (at_least(graph, b - a, 1)) return Dim(1);
  if (at_least(graph, a, b)) return Dim(0);
  return std::nullopt;
}
std::optional<Dim> dim_less_equal(const Graph& graph, const Dim& a, const Dim& b) {
  if (at_least(graph, b, a)) return Dim(1);
  if (at_least(graph, a - b, 1)) return Dim(0);
  return std::nullopt;
}
std::optional<Dim> dim_greater(const Graph& graph, const Dim& a, const Dim& b) {
  return dim_less(graph, b, a);
}
std::optional<Dim> dim_greater_equal(const Graph& graph, const Dim& a, const Dim& b) {
  return dim_less_equal(graph, b, a);
}
/// On the truth values 0 and 1.
std::optional<Dim> dim_and(const Graph&, const Dim& a, const Dim& b) { return a * b; }
std::optional<Dim> dim_or(const Graph&, const Dim& a, const Dim& b) { return a + b - a * b; }

/// Runs f(a, b) -> R on broadcast elements of inputs of one dtype.
template <typename F>
EvalResult map_pairs(const Node& node, EvalInputs inputs, std::optional<DType> result, F f) {
  const Tensor &a = *inputs[0], &b = *inputs[1];
  if (a.dtype() != b.dtype()) return node_error(node, "inputs have different types");
  const auto dims = broadcast_dims(a.dims(), b.dims());
  if (!dims) return node_error(node, fmt::format("{} and {} do not broadcast", describe(a), describe(b)));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(result.value_or(a.dtype()), *dims));
  return with_compute_type(a.dtype(), [&](auto tag) -> EvalResult {
    using C = typename decltype(tag)::type;
    using R = decltype(f(C{}, C{}));
    const std::vector<C> x = read<C>(a), y = read<C>(b);
    std::vector<R> values(static_cast<size_t>(out.elements()));
    for_each_index<2>(*dims, {broadcast_strides(a.dims(), *dims), broadcast_strides(b.dims(), *dims)},
                      [&](int64_t i, const std::array<int64_t, 2>& at) {
                        values[static_cast<size_t>(i)] =
                            f(x[static_cast<size_t>(at[0])], y[static_cast<size_t>(at[1])]);
                      });
    write_range<R>(out, 0, std::span<const R>(values));
    return single(std::move(out));
  });
}

Status require_numbers(const Node& node, EvalInputs inputs) {
  if (is_number(inputs[0]->dtype())) return ok_status();
  return node_error(node, "needs number tensors");
}

/// Integer sums, differences and products wrap, so they are made in uint64_t.
template <typename Op>
EvalResult eval_arithmetic(const Node& node, EvalInputs inputs) {
  DECANT_RETURN_IF_ERROR(require_numbers(node, inputs));
  return map_pairs(node, inputs, std::nullopt, [](auto a, auto b) {
    using C = decltype(a);
    if constexpr (std::is_same_v<C, int64_t>) {
      return static_cast<int64_t>(Op{}(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
    } else {
      return Op{}(a, b);
    }
  });
}

/// Fails when an integer divisor is zero.
Status require_nonzero(const Node& node, const Tensor& divisor) {
  if (is_float(divisor.dtype())) return ok_status();
  for (int64_t i = 0; i < divisor.elements(); ++i) {
    if (divisor.int_at(i) == 0) return node_error(node, "integer division by zero");
  }
  return ok_status();
}

EvalResult eval_div(const Node& node, EvalInputs inputs) {
  DECANT_RETURN_IF_ERROR(require_numbers(node, inputs));
  DECANT_RETURN_IF_ERROR(require_nonzero(node, *inputs[1]));
  return map_pairs(node, inputs, std::nullopt, [](auto a, auto b) {
    using C = decltype(a);
    if constexpr (std::is_same_v<C, int64_t>) {
      if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
    }
    return static_cast<C>(a / b);
  });
}

/// fmod = 0: the sign of the divisor; fmod = 1: C's fmod, the sign of the dividend.
EvalResult eval_mod(const Node& node, EvalInputs inputs) {
  DECANT_RETURN_IF_ERROR(require_numbers(node, inputs));
  DECANT_RETURN_IF_ERROR(require_nonzero(node, *inputs[1]));
  const bool cut = node.int_attribute("fmod", 0) != 0;
  return map_pairs(node, inputs, std::nullopt, [cut](auto a, auto b) {
    using C = decltype(a);
    if constexpr (std::is_same_v<C, double>) {
      const double r = std::fmod(a, b);
      if (!cut && r == 0) return std::copysign(0.0, b);
      return !cut && (r < 0) != (b < 0) ? r + b : r;
    } else if constexpr (std::is_same_v<C, int64_t>) {
      if (b == -1) return int64_t{0};
      const int64_t r = a % b;
      return !cut && r != 0 && (r < 0) != (b < 0) ? r + b : r;
    } else {
      return a % b;
    }
  });
}

template <typename Op>
EvalResult eval_compare(const Node& node, EvalInputs inputs) {
  return map_pairs(node, inputs, DType::kBool,
                   [](auto a, auto b) { return static_cast<int64_t>(Op{}(a, b)); });
}

template <typename Op>
EvalResult eval_logic(const Node& node, EvalInputs inputs) {
  if (inputs[0]->dtype() != DType::kBool) return node_error(node, "needs bool tensors");
  return map_pairs(node, inputs, DType::kBool,
                   [](auto a, auto b) { return static_cast<int64_t>(Op{}(a != 0, b != 0)); });
}

template <typename Op>
EvalResult eval_bits(const Node& node, EvalInputs inputs) {
  if (!is_integer(inputs[0]->dtype())) return node_error(node, "needs integer tensors");
  return map_pairs(node, inputs, std::nullopt, [](auto a, auto b) {
    using C = decltype(a);
    return static_cast<C>(Op{}(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  });
}

int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (auto e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<int64_t>(result);
}

/// The result has the base's type; the exponent may have another one.
EvalResult eval_pow(const Node& node, EvalInputs inputs) {
  DECANT_RETURN_IF_ERROR(require_numbers(node, inputs));
  const Tensor &a = *inputs[0], &b = *inputs[1];
  if (!is_number(b.dtype())) return node_error(node, "needs number tensors");
  const auto dims = broadcast_dims(a.dims(), b.dims());
  if (!dims) return node_error(node, fmt::format("{} and {} do not broadcast", describe(a), describe(b)));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(a.dtype(), *dims));
  const std::array<Dims, 2> strides = {broadcast_strides(a.dims(), *dims),
                                       broadcast_strides(b.dims(), *dims)};
  const auto run = [&](auto zero, auto power) {
    using C = decltype(zero);
    const std::vector<C> x = read<C>(a), y = read<C>(b);
    std::vector<C> values(static_cast<size_t>(out.elements()));
    for_each_index<2>(*dims, strides, [&](int64_t i, const std::array<int64_t, 2>& at) {
      values[static_cast<size_t>(i)] = power(x[static_cast<size_t>(at[0])], y[static_cast<size_t>(at[1])]);
    });
    write_range<C>(out, 0, std::span<const C>(values));
  };
  if (is_integer(a.dtype()) && is_integer(b.dtype())) {
    run(int64_t{0}, integer_power);
  } else {
    run(0.0, [](double x, double y) { return std::pow(x, y); });
  }
  return single(std::move(out));
}

Status infer_pow(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_number, "a number tensor"));
  DECANT_ASSIGN(auto shape, broadcast_inputs(context, 0, 2));
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

template <DimFunction kFunction>
Status infer_arithmetic(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  return infer_broadcast(context, std::nullopt, kFunction);
}
Status infer_mod(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  return infer_broadcast(context, std::nullopt, dim_mod);
}
template <DimFunction kFunction>
Status infer_compare(InferContext& context) {
  return infer_broadcast(context, DType::kBool, kFunction);
}
Status infer_equal(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(
      context, 0, [](DType t) { return t <= DType::kBool || t == DType::kString; },
      "numbers, bools or strings"));
  return infer_broadcast(context, DType::kBool, dim_equal);
}
EvalResult eval_equal(const Node& node, EvalInputs inputs) {
  const Tensor &a = *inputs[0], &b = *inputs[1];
  if (a.dtype() != DType::kString || b.dtype() != DType::kString)
    return eval_compare<std::equal_to<>>(node, inputs);
  const auto dims = broadcast_dims(a.dims(), b.dims());
  if (!dims) return node_error(node, fmt::format("{} and {} do not broadcast", describe(a), describe(b)));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(DType::kBool, *dims));
  for_each_index<2>(*dims, {broadcast_strides(a.dims(), *dims), broadcast_strides(b.dims(), *dims)},
                    [&](int64_t i, const std::array<int64_t, 2>& at) {
                      out.mutable_data_as<uint8_t>()[i] = a.string_at(at[0]) == b.string_at(at[1]);
                    });
  return single(std::move(out));
}
template <DimFunction kFunction>
Status infer_logic(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_bool, "a bool tensor"));
  return infer_broadcast(context, DType::kBool, kFunction);
}
Status infer_bits(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_integer, "an integer tensor"));
  return infer_broadcast(context, std::nullopt, nullptr);
}

/// Bits shifted out are lost. A right shift of a signed number fills with its sign; a negative shift, or one
/// by the width or more, leaves the fill only.
EvalResult eval_bit_shift(const Node& node, EvalInputs inputs) {
  const DType dtype = inputs[0]->dtype();
  if (!is_integer(dtype)) return node_error(node, "needs integer tensors");
  const std::string direction = node.string_attribute("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") return node_error(node, "direction must be LEFT or RIGHT");
  const bool left = direction == "LEFT";
  const uint64_t width = 8 * size_of(dtype);
  return map_pairs(node, inputs, std::nullopt, [left, width](auto a, auto b) {
    using C = decltype(a);
    if constexpr (std::is_same_v<C, double>) {
      return a;
    } else {
      const auto by = static_cast<uint64_t>(b);  // a negative one becomes huge
      if (by >= width) return static_cast<C>(!left && a < C(0) ? C(-1) : C(0));
      return left ? static_cast<C>(static_cast<uint64_t>(a) << by) : static_cast<C>(a >> by);
    }
  });
}

OpDef binary_op(std::string_view name, std::string_view doc, Status (*infer)(InferContext&),
                EvalResult (*eval)(const Node&, EvalInputs)) {
  return {.name = name, .doc = doc, .min_inputs = 2, .max_inputs = 2, .infer = infer, .eval = eval};
}

}  // namespace

DECANT_OP(Add) {
  return binary_op("Add", "a + b, broadcast", infer_arithmetic<dim_add>, eval_arithmetic<std::plus<>>);
}
DECANT_OP(Sub) {
  return binary_op("Sub", "a - b, broadcast", infer_arithmetic<dim_sub>, eval_arithmetic<std::minus<>>);
}
DECANT_OP(Mul) {
  return binary_op("Mul", "a * b, broadcast", infer_arithmetic<dim_mul>, eval_arithmetic<std::multiplies<>>);
}
DECANT_OP(Div) {
  return binary_op("Div", "a / b, broadcast; integers cut towards zero", infer_arithmetic<dim_div>, eval_div);
}
DECANT_OP(Mod) { return binary_op("Mod", "Remainder; fmod picks the sign of a", infer_mod, eval_mod); }
DECANT_OP(Pow) { return binary_op("Pow", "a to the b, in a's type", infer_pow, eval_pow); }
DECANT_OP(Equal) {
  OpDef op = binary_op("Equal", "a == b", infer_equal, eval_equal);
  op.any_dtype = true;
  return op;
}
DECANT_OP(Less) { return binary_op("Less", "a < b", infer_compare<dim_less>, eval_compare<std::less<>>); }
DECANT_OP(LessOrEqual) {
  return binary_op("LessOrEqual", "a <= b", infer_compare<dim_less_equal>, eval_compare<std::less_equal<>>);
}
DECANT_OP(Greater) {
  return binary_op("Greater", "a > b", infer_compare<dim_greater>, eval_compare<std::greater<>>);
}
DECANT_OP(GreaterOrEqual) {
  return binary_op("GreaterOrEqual", "a >= b", infer_compare<dim_greater_equal>,
                   eval_compare<std::greater_equal<>>);
}
DECANT_OP(And) {
  return binary_op("And", "Logical and", infer_logic<dim_and>, eval_logic<std::logical_and<>>);
}
DECANT_OP(Or) { return binary_op("Or", "Logical or", infer_logic<dim_or>, eval_logic<std::logical_or<>>); }
DECANT_OP(Xor) {
  return binary_op("Xor", "Logical exclusive or", infer_logic<nullptr>, eval_logic<std::not_equal_to<>>);
}
DECANT_OP(BitwiseAnd) {
  return binary_op("BitwiseAnd", "Bitwise and", infer_bits, eval_bits<std::bit_and<>>);
}
DECANT_OP(BitwiseXor) {
  return binary_op("BitwiseXor", "Bitwise exclusive or", infer_bits, eval_bits<std::bit_xor<>>);
}
DECANT_OP(BitShift) {
  return binary_op("BitShift", "a shifted by b bits; direction = LEFT | RIGHT", infer_bits, eval_bit_shift);
}
DECANT_OP(BitwiseOr) { return binary_op("BitwiseOr", "Bitwise or", infer_bits, eval_bits<std::bit_or<>>); }

}  // namespace decant::ir
