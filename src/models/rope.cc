#include "models/rope.h"

#include <algorithm>
#include <cmath>

namespace decant::models {
namespace {

constexpr double kPi = 3.14159265358979323846;

/// 2i / d for each channel pair.
std::vector<float> exponents(int64_t dim) {
  std::vector<float> out;
  for (int64_t i = 0; i < dim; i += 2) out.push_back(static_cast<float>(i) / static_cast<float>(dim));
  return out;
}

std::vector<float> powers(double theta, int64_t dim) {
  std::vector<float> out = exponents(dim);
  for (float& x : out) x = std::pow(static_cast<float>(theta), x);
  return out;
}

std::vector<float> plain(double theta, int64_t dim) {
  std::vector<float> out = powers(theta, dim);
  for (float& x : out) x = 1.0f / x;
  return out;
}

void llama3(const RopeParameters& rope, double old_context, std::vector<float>& inverse) {
  const auto low_wavelength = static_cast<float>(old_context / rope.low_freq_factor);
  const auto high_wavelength = static_cast<float>(old_context / rope.high_freq_factor);
  const auto factor = static_cast<float>(rope.factor);
  const auto low = static_cast<float>(rope.low_freq_factor);
  const auto range = static_cast<float>(rope.high_freq_factor - rope.low_freq_factor);
  for (float& x : inverse) {
    const float wavelength = static_cast<float>(2 * kPi) / x;
    if (wavelength > low_wavelength) {
      x /= factor;
    } else if (!(wavelength < high_wavelength)) {
      const float smooth = (static_cast<float>(old_context) / wavelength - low) / range;
      x = (1.0f - smooth) * x / factor + smooth * x;
    }
  }
}

/// Channel at which `turns` full turns fit into the trained context.
double correction_dim(double turns, int64_t dim, double theta, double context) {
  return static_cast<double>(dim) * std::log(context / (turns * 2 * kPi)) / (2 * std::log(theta));
}

std::vector<float> yarn(const RopeParameters& rope, int64_t dim, double context) {
  double low = correction_dim(rope.beta_fast, dim, rope.theta, context);
  double high = correction_dim(rope.beta_slow, dim, rope.theta, context);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;
  std::vector<float> inverse = powers(rope.theta, dim);
  for (size_t i = 0; i < inverse.size(); ++i) {
    const float ramp = (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
    const float extrapolated = 1.0f - std::clamp(ramp, 0.0f, 1.0f);
    const float frequency = inverse[i];
    inverse[i] = 1.0f / (static_cast<float>(rope.factor) * frequency) * (1.0f - extrapolated) +
                 1.0f / frequency * extrapolated;
  }
  return inverse;
}

double yarn_attention_factor(const RopeParameters& rope) {
  if (rope.attention_factor) return *rope.attention_factor;
  auto scale = [&](double mscale) {
    return rope.factor <= 1 ? 1.0 : 0.1 * mscale * std::log(rope.factor) + 1.0;
  };
  const double mscale = rope.mscale.value_or(0.0), mscale_all = rope.mscale_all_dim.value_or(0.0);
  return mscale != 0 && mscale_all != 0 ? scale(mscale) / scale(mscale_all) : scale(1.0);
}

Status check(const RopeParameters& rope, int64_t head_dim, int64_t max_positions, double context) {
  if (head_dim <= 0 || head_dim % 2 != 0) {
    return invalid_model("rotary embeddings need an even head_dim, not " + std::to_string(head_dim));
  }
  if (!(rope.theta > 1) || !std::isfinite(rope.theta)) {
    return invalid_model("rope_theta is " + std::to_string(rope.theta) + ", it must be above 1");
  }
  if (!(rope.factor > 0) || max_positions <= 0 || !(context > 0)) {
    return invalid_model("rope factor and the context lengths must be positive");
  }
  if (rope.partial_rotary_factor != 1.0) {
    return unsupported("rotary embeddings over a part of head_dim (partial_rotary_factor " +
                       std::to_string(rope.partial_rotary_factor) + ")");
  }
  return ok_status();
}

/// inv_freq of the dynamic type for the positions of this run, f32 [d / 2].
ir::Value* dynamic_frequencies(Builder& b, ir::Value* position_ids, const RopeParameters& rope, int64_t dim,
                               int64_t max_positions) {
  ir::Value* length =
      b.op("Add", {b.op("ReduceMax", {position_ids}, {{"keepdims", int64_t{0}}}), b.int_scalar(1)});
  length = b.cast(b.op("Max", {length, b.int_scalar(max_positions)}), DType::kFloat32);
  ir::Value* stretch = b.op("Mul", {length, b.float_scalar(static_cast<float>(rope.factor))});
  stretch = b.op("Div", {stretch, b.float_scalar(static_cast<float>(max_positions))});
  stretch = b.op("Sub", {stretch, b.float_scalar(static_cast<float>(rope.factor - 1))});
  const double exponent = static_cast<double>(dim) / static_cast<double>(dim - 2);
  ir::Value* base = b.op("Pow", {stretch, b.float_scalar(static_cast<float>(exponent))});
  base = b.op("Mul", {base, b.float_scalar(static_cast<float>(rope.theta))});
  return b.op("Div", {b.float_scalar(1.0f), b.op("Pow", {base, b.floats(exponents(dim))})});
}

}  // namespace

Result<RotaryFrequencies> rotary_frequencies(const RopeParameters& rope, int64_t head_dim,
                                             int64_t max_positions) {
  const auto context = static_cast<double>(rope.original_max_position_embeddings.value_or(max_positions));
  DECANT_RETURN_IF_ERROR(check(rope, head_dim, max_positions, context));
  RotaryFrequencies out;
  if (rope.type == "yarn") {
    out.inverse = yarn(rope, head_dim, context);
    out.attention_factor = static_cast<float>(yarn_attention_factor(rope));
    return out;
  }
  out.inverse = plain(rope.theta, head_dim);
  if (rope.type == "linear") {
    for (float& x : out.inverse) x /= static_cast<float>(rope.factor);
  } else if (rope.type == "llama3") {
    llama3(rope, context, out.inverse);
  } else if (rope.type == "dynamic") {
    if (head_dim <= 2) return invalid_model("dynamic rotary embeddings need a head_dim above 2");
  } else if (rope.type != "default") {
    return unsupported("rope type '" + rope.type + "'; known: default, linear, dynamic, llama3, yarn");
  }
  return out;
}

Result<Rotary> rotary(Builder& b, ir::Value* position_ids, const RopeParameters& rope, int64_t head_dim,
                      int64_t max_positions) {
  DECANT_ASSIGN(const RotaryFrequencies frequencies, rotary_frequencies(rope, head_dim, max_positions));
  ir::Value* inverse = rope.type == "dynamic"
                           ? dynamic_frequencies(b, position_ids, rope, head_dim, max_positions)
                           : b.floats(frequencies.inverse);
  ir::Value* positions = b.op("Unsqueeze", {b.cast(position_ids, DType::kFloat32), b.ints({-1})});
  ir::Value* angles = b.op("Mul", {positions, inverse});
  auto table = [&](const char* function) {
    ir::Value* x = b.op(function, {angles});
    if (frequencies.attention_factor != 1.0f)
      x = b.op("Mul", {x, b.float_scalar(frequencies.attention_factor)});
    return b.dtype() == DType::kFloat32 ? x : b.cast(x, b.dtype());
  };
  return Rotary{table("Cos"), table("Sin")};
}

}  // namespace decant::models
