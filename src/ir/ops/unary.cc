#include <cmath>
#include <numbers>

#include "ir/ops/common.h"
#include "ir/ops/map_float.h"

namespace decant::ir {
namespace {

/// Applies f, a generic function on the compute types, to each element.
template <typename F>
EvalResult map_elements(EvalInputs inputs, DType dtype, F f) {
  const Tensor& x = *inputs[0];
  return with_compute_type(x.dtype(), [&](auto tag) -> EvalResult {
    using C = typename decltype(tag)::type;
    std::vector<C> values = read<C>(x);
    using R = decltype(f(C{}));
    std::vector<R> out(values.size());
    for (size_t i = 0; i < values.size(); ++i) out[i] = f(values[i]);
    return single(make_tensor<R>(dtype, x.dims(), out));
  });
}

template <double (*kFunction)(double)>
EvalResult eval_float(const Node& node, EvalInputs inputs) {
  return map_float(node, inputs, kFunction);
}

Status infer_number(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  return infer_same(context);
}

Status infer_predicate(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  context.set_output(0, DType::kBool, context.shape(0));
  return ok_status();
}

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

Status infer_neg(InferContext& context) {
  DECANT_RETURN_IF_ERROR(infer_number(context));
  if (auto elements = context.elements(0)) {
    for (Dim& e : *elements) e = Dim(0) - e;
    follow_elements(context, std::move(*elements));
  }
  return ok_status();
}

Status infer_not(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_bool, "a bool tensor"));
  DECANT_RETURN_IF_ERROR(infer_same(context));
  if (auto elements = context.elements(0)) {
    for (Dim& e : *elements) e = Dim(1) - e;
    follow_elements(context, std::move(*elements));
  }
  return ok_status();
}

/// Generic functions for ops on floats and integers. Integer negation wraps.
struct AbsFunction {
  double operator()(double x) const { return std::fabs(x); }
  int64_t operator()(int64_t x) const { return x < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(x)) : x; }
  uint64_t operator()(uint64_t x) const { return x; }
};
struct NegFunction {
  double operator()(double x) const { return -x; }
  int64_t operator()(int64_t x) const { return static_cast<int64_t>(-static_cast<uint64_t>(x)); }
  uint64_t operator()(uint64_t x) const { return -x; }
};
struct SignFunction {
  template <typename C>
  C operator()(C x) const {
    if (x > C(0)) return C(1);
    if constexpr (!std::is_unsigned_v<C>) {
      if (x < C(0)) return C(-1);
    }
    return x == C(0) ? C(0) : x;
  }
};
struct ReluFunction {
  template <typename C>
  C operator()(C x) const {
    if constexpr (std::is_unsigned_v<C>)
      return x;
    else
      return x < C(0) ? C(0) : x;
  }
};

template <typename F>
EvalResult eval_number(const Node& node, EvalInputs inputs) {
  if (inputs[0]->dtype() == DType::kBool) return node_error(node, "needs a number tensor");
  return map_elements(inputs, inputs[0]->dtype(), F{});
}

template <double (*kFunction)(double)>
constexpr OpDef float_op(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_same_float,
          .eval = eval_float<kFunction>};
}

template <typename F>
constexpr OpDef number_op(std::string_view name, std::string_view doc, Status (*infer)(InferContext&)) {
  return {.name = name, .doc = doc, .min_inputs = 1, .max_inputs = 1, .infer = infer, .eval = eval_number<F>};
}

double reciprocal(double x) { return 1 / x; }
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

/// Nearest integer, halves to the even one (the default rounding mode).
double round_even(double x) { return std::nearbyint(x); }

double do_acos(double x) { return std::acos(x); }
double do_acosh(double x) { return std::acosh(x); }
double do_asin(double x) { return std::asin(x); }
double do_asinh(double x) { return std::asinh(x); }
double do_atan(double x) { return std::atan(x); }
double do_atanh(double x) { return std::atanh(x); }
double do_cosh(double x) { return std::cosh(x); }
double do_sinh(double x) { return std::sinh(x); }
double softsign(double x) { return x / (1 + std::fabs(x)); }
double mish(double x) { return x * std::tanh(softplus(x)); }
double hard_swish(double x) { return x * std::fmax(0, std::fmin(1, x / 6 + 0.5)); }
double do_ceil(double x) { return std::ceil(x); }
double do_cos(double x) { return std::cos(x); }
double do_erf(double x) { return std::erf(x); }
double do_exp(double x) { return std::exp(x); }
double do_floor(double x) { return std::floor(x); }
double do_log(double x) { return std::log(x); }
double do_sin(double x) { return std::sin(x); }
double do_sqrt(double x) { return std::sqrt(x); }
double do_tan(double x) { return std::tan(x); }
double do_tanh(double x) { return std::tanh(x); }

}  // namespace

DECANT_OP(Abs) { return number_op<AbsFunction>("Abs", "Absolute value", infer_number); }
DECANT_OP(Neg) { return number_op<NegFunction>("Neg", "Negation", infer_neg); }
DECANT_OP(Sign) { return number_op<SignFunction>("Sign", "-1, 0 or 1", infer_number); }
DECANT_OP(Relu) { return number_op<ReluFunction>("Relu", "max(x, 0)", infer_number); }

DECANT_OP(Acos) { return float_op<do_acos>("Acos", "Inverse cosine"); }
DECANT_OP(Acosh) { return float_op<do_acosh>("Acosh", "Inverse hyperbolic cosine"); }
DECANT_OP(Asin) { return float_op<do_asin>("Asin", "Inverse sine"); }
DECANT_OP(Asinh) { return float_op<do_asinh>("Asinh", "Inverse hyperbolic sine"); }
DECANT_OP(Atan) { return float_op<do_atan>("Atan", "Inverse tangent"); }
DECANT_OP(Atanh) { return float_op<do_atanh>("Atanh", "Inverse hyperbolic tangent"); }
DECANT_OP(Cosh) { return float_op<do_cosh>("Cosh", "Hyperbolic cosine"); }
DECANT_OP(HardSwish) { return float_op<hard_swish>("HardSwish", "x * max(0, min(1, x / 6 + 1 / 2))"); }
DECANT_OP(Mish) { return float_op<mish>("Mish", "x * tanh(log(1 + e^x))"); }
DECANT_OP(Sinh) { return float_op<do_sinh>("Sinh", "Hyperbolic sine"); }
DECANT_OP(Softsign) { return float_op<softsign>("Softsign", "x / (1 + |x|)"); }
DECANT_OP(Ceil) { return float_op<do_ceil>("Ceil", "Smallest integer not below x"); }
DECANT_OP(Cos) { return float_op<do_cos>("Cos", "Cosine"); }
DECANT_OP(Erf) { return float_op<do_erf>("Erf", "Error function"); }
DECANT_OP(Exp) { return float_op<do_exp>("Exp", "e to the x"); }
DECANT_OP(Floor) { return float_op<do_floor>("Floor", "Largest integer not above x"); }
DECANT_OP(Log) { return float_op<do_log>("Log", "Natural logarithm"); }
DECANT_OP(Reciprocal) { return float_op<reciprocal>("Reciprocal", "1 / x"); }
DECANT_OP(Round) { return float_op<round_even>("Round", "Nearest integer, halves to even"); }
DECANT_OP(Sigmoid) { return float_op<sigmoid>("Sigmoid", "1 / (1 + e^-x)"); }
DECANT_OP(Sin) { return float_op<do_sin>("Sin", "Sine"); }
DECANT_OP(Softplus) { return float_op<softplus>("Softplus", "log(1 + e^x)"); }
DECANT_OP(Sqrt) { return float_op<do_sqrt>("Sqrt", "Square root"); }
DECANT_OP(Tan) { return float_op<do_tan>("Tan", "Tangent"); }
DECANT_OP(Tanh) { return float_op<do_tanh>("Tanh", "Hyperbolic tangent"); }

DECANT_OP(Not) {
  return {.name = "Not",
          .doc = "Logical not",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_not,
          .eval = [](const Node& node, EvalInputs inputs) -> EvalResult {
            if (inputs[0]->dtype() != DType::kBool) return node_error(node, "needs a bool tensor");
            return map_elements(inputs, DType::kBool, [](auto x) { return static_cast<int64_t>(x == 0); });
          }};
}

DECANT_OP(IsNaN) {
  return {.name = "IsNaN",
          .doc = "True where x is not a number",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_predicate,
          .eval = [](const Node&, EvalInputs inputs) -> EvalResult {
            return map_elements(inputs, DType::kBool, [](auto x) {
              return static_cast<int64_t>(std::isnan(static_cast<double>(x)));
            });
          }};
}

DECANT_OP(IsInf) {
  return {.name = "IsInf",
          .doc = "True where x is infinite; detect_negative, detect_positive",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_predicate,
          .eval = [](const Node& node, EvalInputs inputs) -> EvalResult {
            const bool negative = node.int_attribute("detect_negative", 1) != 0;
            const bool positive = node.int_attribute("detect_positive", 1) != 0;
            return map_elements(inputs, DType::kBool, [=](auto x) {
              const auto v = static_cast<double>(x);
              return static_cast<int64_t>(std::isinf(v) && (v < 0 ? negative : positive));
            });
          }};
}

DECANT_OP(Gelu) {
  return {.name = "Gelu",
          .doc = "x * normal_cdf(x); approximate = none | tanh",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_same_float,
          .eval = [](const Node& node, EvalInputs inputs) -> EvalResult {
            const bool tanh = node.string_attribute("approximate", "none") == "tanh";
            return map_float(node, inputs, [tanh](double x) {
              if (!tanh) return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
              const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
              return 0.5 * x * (1 + std::tanh(inner));
            });
          }};
}

DECANT_OP(Swish) {
  return {.name = "Swish",
          .doc = "x * sigmoid(alpha * x)",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_same_float,
          .eval = [](const Node& node, EvalInputs inputs) -> EvalResult {
            const double alpha = node.float_attribute("alpha", 1.0f);
            return map_float(node, inputs, [alpha](double x) { return x * sigmoid(alpha * x); });
          }};
}

DECANT_OP(SwiGLU) {
  return {.name = "SwiGLU",
          .doc = "a * sigmoid(alpha * a) * b, equal shapes",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = [](InferContext& context) -> Status {
            DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, 2));
            DECANT_RETURN_IF_ERROR(infer_same_float(context));
            if (!context.shape(0) || !context.shape(1)) return ok_status();
            Shape shape = *context.shape(0);
            if (shape.size() != context.shape(1)->size())
              return context.error("inputs must have equal shapes");
            for (size_t i = 0; i < shape.size(); ++i) {
              DECANT_ASSIGN(shape[i], merge_dims(context, shape[i], (*context.shape(1))[i]));
            }
            context.set_output(0, context.dtype(0), std::move(shape));
            return ok_status();
          },
          .eval = [](const Node& node, EvalInputs inputs) -> EvalResult {
            const Tensor &a = *inputs[0], &b = *inputs[1];
            if (a.dims() != b.dims() || a.dtype() != b.dtype() || !is_float(a.dtype())) {
              return node_error(node, "inputs must be float tensors of one type and shape");
            }
            const double alpha = node.float_attribute("alpha", 1.0f);
            std::vector<double> x = read<double>(a);
            const std::vector<double> y = read<double>(b);
            for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * sigmoid(alpha * x[i]) * y[i];
            return single(make_tensor<double>(a.dtype(), a.dims(), x));
          }};
}

}  // namespace decant::ir
