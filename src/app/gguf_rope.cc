#include "app/gguf_rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace decant::app {
namespace {

/// Turns per position of frequency i: 1 / wavelength.
double turns(size_t i, size_t count, double theta) {
  return std::pow(theta, -static_cast<double>(i) / static_cast<double>(count)) / (2 * std::numbers::pi);
}

double divisor(const Llama3Rope& rope, double turns_per_position) {
  const double cycles = static_cast<double>(rope.original_max_position_embeddings) * turns_per_position;
  if (cycles > rope.high_freq_factor) return 1.0;
  if (cycles < rope.low_freq_factor) return rope.factor;
  const double s = (cycles - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return 1.0 / ((1.0 - s) / rope.factor + s);
}

bool reproduces(const Llama3Rope& rope, std::span<const float> divisors, double theta) {
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double expected = divisor(rope, turns(i, divisors.size(), theta));
    if (!(std::fabs(divisors[i] - expected) <= 1e-4 * expected)) return false;
  }
  return true;
}

}  // namespace

std::optional<Llama3Rope> fit_llama3_rope(std::span<const float> divisors, double theta,
                                          std::optional<int64_t> trained_length) {
  if (divisors.empty() || !(theta > 1.0)) return std::nullopt;
  Llama3Rope rope;
  rope.factor = *std::max_element(divisors.begin(), divisors.end());
  if (!std::isfinite(rope.factor) || rope.factor < 1.0) return std::nullopt;
  if (std::fabs(rope.factor - std::round(rope.factor)) < 1e-4 * rope.factor)
    rope.factor = std::round(rope.factor);
  for (const std::optional<int64_t> length : {trained_length, std::optional<int64_t>(8192)}) {
    if (!length || *length <= 0) continue;
    rope.original_max_position_embeddings = *length;
    if (reproduces(rope, divisors, theta)) return rope;
  }

  // Between the plateaus s is linear in the turns: s = a * turns - b with a = L / (high - 1), b = 1 / (high -
  // 1).
  std::vector<std::pair<double, double>> middle;
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double d = divisors[i];
    if (!(d > 1.0001 && d < rope.factor * 0.9999)) continue;
    middle.emplace_back(turns(i, divisors.size(), theta),
                        (1.0 / d - 1.0 / rope.factor) / (1.0 - 1.0 / rope.factor));
  }
  if (middle.size() < 2) return std::nullopt;
  const auto [x0, s0] = middle.front();
  const auto [x1, s1] = middle.back();
  const double a = (s1 - s0) / (x1 - x0);
  const double b = a * x0 - s0;
  if (!(a > 0) || !(b > 0) || !(a / b < 0x1p40)) return std::nullopt;
  rope.high_freq_factor = 1.0 + std::round(1e3 / b) / 1e3;
  rope.original_max_position_embeddings = std::llround(a / b);
  if (rope.original_max_position_embeddings <= 0 || rope.high_freq_factor <= 1.0) return std::nullopt;
  if (!reproduces(rope, divisors, theta)) return std::nullopt;
  return rope;
}

}  // namespace decant::app
