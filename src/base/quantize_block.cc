#include "base/quantize_block.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/half.h"

namespace decant {
namespace {

/// Sums have as many parts, which are added up in one order on every machine.
using Lanes = float __attribute__((vector_size(16)));
constexpr size_t kStep = 8;  ///< weights of two Lanes
/// x + kRound - kRound is x rounded to the nearest integer, for |x| < 2^22.
constexpr float kRound = 12582912.0f;

Lanes lanes_at(const float* p) {
  Lanes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

float add_lanes(Lanes a, Lanes b) {
  const Lanes sum = a + b;
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/// A block on its way: counts are multiples of kStep, what pads them is 0.
struct Block {
  size_t count = 0;
  std::array<float, kMaxBlock> x, weigh;
};

struct Sums {
  float xq = 0, qq = 0;  ///< of importance * x * q and of importance * q * q
};

/// q = x / scale, clipped and rounded.
Sums round_all(const Block& b, float inverse, float low, float high, float* q) {
  for (size_t i = 0; i < b.count; ++i) {
    float v = b.x[i] * inverse;
    v = v < low ? low : v;
    v = v > high ? high : v;
    q[i] = (v + kRound) - kRound;
  }
  Lanes xq[2] = {}, qq[2] = {};
  for (size_t i = 0; i < b.count; i += kStep) {
    for (size_t half = 0; half < 2; ++half) {
      const size_t at = i + half * kStep / 2;
      const Lanes v = lanes_at(q + at), t = lanes_at(&b.weigh[at]) * v;
      xq[half] += t * lanes_at(&b.x[at]);
      qq[half] += t * v;
    }
  }
  return {add_lanes(xq[0], xq[1]), add_lanes(qq[0], qq[1])};
}

float squared_error(const Block& b, float scale, const float* q) {
  Lanes sums[2] = {};
  const Lanes step = {scale, scale, scale, scale};
  for (size_t i = 0; i < b.count; i += kStep) {
    for (size_t half = 0; half < 2; ++half) {
      const size_t at = i + half * kStep / 2;
      const Lanes d = lanes_at(&b.x[at]) - step * lanes_at(q + at);
      sums[half] += lanes_at(&b.weigh[at]) * d * d;
    }
  }
  return add_lanes(sums[0], sums[1]);
}

float as_stored(float scale, DType dtype) {
  if (dtype == DType::kFloat16) return f16_to_float(float_to_f16(scale));
  if (dtype == DType::kBFloat16) return bf16_to_float(float_to_bf16(scale));
  return scale;
}

/// One block: weights times a power of two, so that the largest is in [1/2, 1) and no square overflows, and
/// the best codes so far.
class Search {
 public:
  Search(const BlockRounding& how, std::span<const float> weights, const float* importance)
      : how_(how), count_(weights.size()) {
    block_.count = (count_ + kStep - 1) / kStep * kStep;
    for (const float w : weights) {
      if (std::fabs(w) > std::fabs(extreme_)) extreme_ = w;
    }
    int exponent = 0;
    std::frexp(extreme_, &exponent);
    unit_ = std::ldexp(1.0, exponent);
    for (size_t i = 0; i < count_; ++i) {
      block_.x[i] = to_normal(weights[i]);
      block_.weigh[i] = importance ? importance[i] : 1.0f;
    }
    for (size_t i = count_; i < block_.count; ++i) block_.x[i] = block_.weigh[i] = 0;
    extreme_ = to_normal(extreme_);
    best_.zero = middle();
    best_.error = std::numeric_limits<double>::infinity();
  }

  RoundedBlock run(uint8_t* codes) {
    if (extreme_ == 0) {
      best_.error = 0;
      std::fill_n(q_best_, count_, 0.0f);
    } else {
      try_centred();
      if (how_.zero_points) try_zero_points();
      if (how_.search) fit_exactly();
      best_.error *= unit_ * unit_;
    }
    for (size_t i = 0; i < count_; ++i)
      codes[i] = static_cast<uint8_t>(static_cast<int>(q_best_[i]) + best_.zero);
    return best_;
  }

 private:
  int middle() const { return 1 << (how_.bits - 1); }
  int top() const { return (1 << how_.bits) - 1; }
  float to_normal(float v) const { return static_cast<float>(static_cast<double>(v) / unit_); }
  float to_stored(float normal) const {
    return as_stored(static_cast<float>(static_cast<double>(normal) * unit_), how_.scale_dtype);
  }

  /// The zero in the middle: the largest weight gets the lowest code, or one near it.
  void try_centred() {
    const auto full = static_cast<float>(middle());
    consider(extreme_ / -full, middle(), false);
    if (!how_.search) return;
    for (int k = 1; k <= middle(); ++k) {
      if (on_grid(extreme_ / static_cast<float>(-k)))
        consider(extreme_ / static_cast<float>(-k), middle(), true);
    }
    // Of a few codes, clipping the largest weight or leaving codes unused often pays; of many, seldom.
    const bool few = how_.bits == 4;
    const float first = few ? 5.5f : full - 3.5f, step = few ? 0.5f : 1.0f;
    float best = full, sign = -1;
    const auto attempt = [&](float level, float side) {
      if (!consider(extreme_ / (side * level), middle(), true)) return;
      best = level;
      sign = side;
    };
    for (int i = 0; i < (few ? 9 : 5); ++i) {
      attempt(first + static_cast<float>(i) * step, -1);
      attempt(first + static_cast<float>(i) * step, 1);
    }
    const float centre = best, side = sign;
    attempt(centre - step / 2, side);
    attempt(centre + step / 2, side);
  }

  /// A zero that lets the codes span the block's own range.
  void try_zero_points() {
    float low = 0, high = 0;
    for (size_t i = 0; i < count_; ++i) {
      low = std::min(low, block_.x[i]);
      high = std::max(high, block_.x[i]);
    }
    const float span = (high - low) / static_cast<float>(top());
    const auto clamped = [&](float zero) {
      return std::clamp(static_cast<int>(std::lround(zero)), 0, top());
    };
    consider(span, clamped(-low / span), false);
    if (!how_.search) return;
    const bool few = how_.bits == 4;
    const float first = few ? 0.76f : 0.975f, step = few ? 0.08f : 0.01f;
    float best = 1;
    const auto attempt = [&](float share) {
      // Clipped on both sides alike, or a step to either side of that.
      const int zero = clamped((static_cast<float>(top()) - (high + low) / (span * share)) / 2);
      for (int z = std::max(0, zero - 1); z <= std::min(top(), zero + 1); ++z) {
        if (consider(span * share, z, true)) best = share;
      }
    };
    for (int i = 0; i < 4; ++i) attempt(first + static_cast<float>(i) * step);
    const float centre = best;
    attempt(centre - step / 2);
    attempt(centre + step / 2);
  }

  /// Whether all weights are near multiples of `scale`.
  bool on_grid(float scale) const {
    for (size_t i = 0; i < count_; ++i) {
      const float v = block_.x[i] / scale;
      if (std::fabs(v - ((v + kRound) - kRound)) > 1e-3f) return false;
    }
    return true;
  }

  /// Rounds by `scale`; keeps the codes when they are the best yet, with the scale or, with `fit`, the one
  /// that suits them best. Whether they were.
  bool consider(float scale, int zero, bool fit) {
    const float inverse = 1.0f / scale;
    if (!std::isfinite(inverse)) return false;
    const auto low = static_cast<float>(-zero), high = static_cast<float>(top() - zero);
    const Sums sums = round_all(block_, inverse, low, high, q_);
    if (fit) {
      if (!(sums.qq > 0)) return false;
      scale = sums.xq / sums.qq;
    }
    const float stored = to_stored(scale);
    if (!std::isfinite(stored)) {
      if (best_.error == std::numeric_limits<double>::infinity()) best_.scale = stored;
      return false;
    }
    const double error = static_cast<double>(squared_error(block_, to_normal(stored), q_));
    if (error >= best_.error) return false;
    best_ = {stored, zero, error};
    std::swap(q_, q_best_);
    return true;
  }

  /// The least-squares scale of the best codes once more, in double.
  void fit_exactly() {
    double xq = 0, qq = 0;
    for (size_t i = 0; i < count_; ++i) {
      const double q = q_best_[i], w = block_.weigh[i];
      xq += w * block_.x[i] * q;
      qq += w * q * q;
    }
    if (!(qq > 0) || !std::isfinite(best_.scale)) return;
    const float stored = to_stored(static_cast<float>(xq / qq));
    if (std::isfinite(stored) && error_of(stored) <= error_of(best_.scale)) best_.scale = stored;
    best_.error = error_of(best_.scale);
  }

  double error_of(float stored) const {
    const double used = static_cast<double>(stored) / unit_;
    double sum = 0;
    for (size_t i = 0; i < count_; ++i) {
      const double d = block_.x[i] - used * static_cast<double>(q_best_[i]);
      sum += static_cast<double>(block_.weigh[i]) * d * d;
    }
    return sum;
  }

  const BlockRounding& how_;
  size_t count_;
  Block block_;
  float extreme_ = 0;
  double unit_ = 1;  ///< the power of two that was divided by
  RoundedBlock best_;
  std::array<float, kMaxBlock> q_first_, q_second_;
  float *q_ = q_first_.data(), *q_best_ = q_second_.data();
};

}  // namespace

RoundedBlock round_block(const BlockRounding& how, std::span<const float> weights, const float* importance,
                         uint8_t* codes) {
  return Search(how, weights, importance).run(codes);
}

}  // namespace decant
