#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/small_float.h"
#include "ir/ops/common.h"

namespace decant::ir {
namespace {

bool is_complex(DType t) { return t == DType::kComplex64 || t == DType::kComplex128; }

Status infer_cast_to(InferContext& context, DType to) {
  if (is_complex(to) != is_complex(context.dtype(0))) {
    return unsupported(fmt::format("{}: no cast of {} to {}", context.node().describe(),
                                   to_string(context.dtype(0)), to_string(to)));
  }
  context.set_output(0, to, context.shape(0));
  auto elements = context.elements(0);
  if (!elements || !is_countable(context.dtype(0)) || !is_countable(to)) return ok_status();
  const IntegerRange range = integer_range(to);
  for (Dim& e : *elements) {
    if (to == DType::kBool) {
      if (e.is_constant())
        e = Dim(e.constant() != 0 ? 1 : 0);
      else if (at_least(context.graph(), e, 1))
        e = Dim(1);
      else
        return ok_status();
    } else if (e.is_constant() && (e.constant() < range.min || e.constant() > range.max)) {
      return ok_status();  // wraps
    }
  }
  follow_elements(context, std::move(*elements));
  return ok_status();
}

Result<ScaleRounding> scale_rounding(const Node& node) {
  const std::string mode = node.string_attribute("round_mode", "up");
  if (mode == "up") return ScaleRounding::kUp;
  if (mode == "down") return ScaleRounding::kDown;
  if (mode == "nearest") return ScaleRounding::kNearest;
  return node_error(node, fmt::format("round_mode '{}' is unknown", mode));
}

/// The number that a text spells in full; "inf" and "nan" in any case are floats too.
Result<double> parse_number(const Node& node, const std::string& text) {
  std::string lower;
  for (char c : text) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  std::string_view digits = lower;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || end != digits.data() + digits.size()) {
    return node_error(node, "'" + text.substr(0, 40) + "' is no number");
  }
  if (error == std::errc::result_out_of_range) {
    // Too large or too small for a double: the sign of the exponent tells which.
    const bool small = digits.find("e-") != std::string_view::npos;
    value = small ? 0.0 : std::numeric_limits<double>::infinity();
    return digits.starts_with('-') ? -value : value;
  }
  return value;
}

Result<Tensor> from_strings(const Node& node, const Tensor& x, DType to) {
  if (is_integer(to)) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < x.elements(); ++i) {
      const std::string& text = x.string_at(i);
      int64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error == std::errc() && end == text.data() + text.size()) {
        values.push_back(value);
        continue;
      }
      DECANT_ASSIGN(const double number, parse_number(node, text));
      if (!(std::fabs(number) < 0x1p63))
        return node_error(node, "'" + text.substr(0, 40) + "' is no integer");
      values.push_back(static_cast<int64_t>(number));
    }
    return make_tensor<int64_t>(to, x.dims(), values);
  }
  std::vector<double> values;
  for (int64_t i = 0; i < x.elements(); ++i) {
    DECANT_ASSIGN(const double number, parse_number(node, x.string_at(i)));
    values.push_back(number);
  }
  return make_tensor<double>(to, x.dims(), values);
}

/// The shortest text that reads back as the same number.
Result<Tensor> to_strings(const Tensor& x) {
  DECANT_ASSIGN(Tensor out, Tensor::allocate(DType::kString, x.dims()));
  auto* strings = out.mutable_data_as<std::string>();
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (x.dtype() == DType::kFloat64) {
      strings[i] = fmt::format("{}", x.double_at(i));
    } else if (is_float(x.dtype()) || is_small_float(x.dtype())) {
      strings[i] = fmt::format("{}", static_cast<float>(x.double_at(i)));
    } else if (x.dtype() == DType::kUInt64) {
      strings[i] = fmt::format("{}", static_cast<uint64_t>(x.int_at(i)));
    } else {
      strings[i] = fmt::format("{}", x.int_at(i));
    }
  }
  return out;
}

/// To an 8-bit float with the node's rounding and saturation.
Result<Tensor> to_small_floats(const Node& node, const Tensor& x, DType to) {
  const bool saturate = node.int_attribute("saturate", 1) != 0;
  DECANT_ASSIGN(const ScaleRounding rounding, scale_rounding(node));
  DECANT_ASSIGN(const Tensor single, make_tensor<double>(DType::kFloat32, x.dims(), read<double>(x)));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(to, x.dims()));
  for (int64_t i = 0; i < x.elements(); ++i) {
    out.mutable_data_as<uint8_t>()[i] = float_to_small(to, single.data_as<float>()[i], saturate, rounding);
  }
  return out;
}

EvalResult cast_tensor(const Node& node, const Tensor& x, DType to) {
  if (x.dtype() == to) return single(x);
  if (is_complex(x.dtype()) || is_complex(to)) return node_error(node, "complex numbers are not cast");
  if (to == DType::kString) return single(to_strings(x));
  if (x.dtype() == DType::kString) return single(from_strings(node, x, to));
  if (is_small_float(to) && !is_packed(to)) return single(to_small_floats(node, x, to));
  return with_compute_type(x.dtype(), [&](auto tag) -> EvalResult {
    using C = typename decltype(tag)::type;
    return single(make_tensor<C>(to, x.dims(), read<C>(x)));
  });
}

}  // namespace

DECANT_OP(Cast) {
  return {
      .name = "Cast",
      .doc = "Converts to the type of attribute `to`",
      .min_inputs = 1,
      .max_inputs = 1,
      .any_dtype = true,
      .infer = [](InferContext& context) -> Status {
        const int64_t code = context.node().int_attribute("to", 0);
        const DType to = dtype_from_onnx_code(code);
        if (to == DType::kUndefined)
          return unsupported(fmt::format("{}: cannot cast to ONNX type {}", context.node().describe(), code));
        return infer_cast_to(context, to);
      },
      .eval = [](const Node& node, EvalInputs inputs) -> EvalResult {
        const DType to = dtype_from_onnx_code(node.int_attribute("to", 0));
        if (to == DType::kUndefined) return node_error(node, "has no known target type");
        return cast_tensor(node, *inputs[0], to);
      }};
}

DECANT_OP(CastLike) {
  return {.name = "CastLike",
          .doc = "Converts to the type of the second input",
          .min_inputs = 2,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = [](InferContext& context) -> Status { return infer_cast_to(context, context.dtype(1)); },
          .eval = [](const Node& node, EvalInputs inputs) -> EvalResult {
            return cast_tensor(node, *inputs[0], inputs[1]->dtype());
          }};
}

}  // namespace decant::ir
