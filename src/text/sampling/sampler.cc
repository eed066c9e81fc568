#include "text/sampling/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace decant::text {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

Status check(const SamplingOptions& o) {
  const auto within = [](float v, float low, float high) { return v >= low && v <= high; };  // false for NaN
  if (o.temperature && !(*o.temperature >= 0 && std::isfinite(*o.temperature))) {
    return invalid_argument(fmt::format("temperature {} is not a number from 0 up", *o.temperature));
  }
  if (o.top_k < 0) return invalid_argument(fmt::format("top_k {} is negative; 0 turns it off", o.top_k));
  if (!within(o.top_p, 0, 1)) return invalid_argument(fmt::format("top_p {} is not within 0 and 1", o.top_p));
  if (!within(o.min_p, 0, 1)) return invalid_argument(fmt::format("min_p {} is not within 0 and 1", o.min_p));
  if (!(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty))) {
    return invalid_argument(fmt::format("repetition_penalty {} is not above 0", o.repetition_penalty));
  }
  return ok_status();
}

}  // namespace

Result<Sampler> Sampler::create(const SamplingOptions& options, size_t vocabulary) {
  DECANT_RETURN_IF_ERROR(check(options));
  if (vocabulary == 0 || vocabulary > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return invalid_argument(fmt::format("a vocabulary of {} tokens", vocabulary));
  }
  return Sampler(options, vocabulary);
}

Sampler::Sampler(const SamplingOptions& options, size_t vocabulary)
    : options_(options),
      random_(options.seed),
      scores_(vocabulary),
      sorted_(vocabulary),
      order_(vocabulary),
      is_seen_(vocabulary, 0) {
  seen_.reserve(vocabulary);
}

void Sampler::reset(uint64_t seed) {
  random_ = Random(seed);
  seen_.clear();
  std::fill(is_seen_.begin(), is_seen_.end(), uint8_t{0});
}

void Sampler::see(int32_t id) {
  uint8_t& flag = is_seen_[static_cast<size_t>(id)];
  if (flag == 0) seen_.push_back(static_cast<uint32_t>(id));
  flag = 1;
}

Status Sampler::see_prompt(std::span<const int32_t> ids) {
  for (int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= scores_.size()) {
      return out_of_range(fmt::format("token id {} is not in a vocabulary of {}", id, scores_.size()));
    }
  }
  if (options_.penalize_prompt) {
    for (int32_t id : ids) see(id);
  }
  return ok_status();
}

Status Sampler::load(std::span<const float> logits) {
  if (logits.size() != scores_.size()) {
    return invalid_argument(fmt::format("{} logits for a vocabulary of {}", logits.size(), scores_.size()));
  }
  float highest = kMasked;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] < std::numeric_limits<float>::infinity())) {
      return invalid_model(fmt::format("the logit of token {} is {}", i, logits[i]));
    }
    highest = std::max(highest, logits[i]);
  }
  if (highest == kMasked) return invalid_model("every logit is -inf: there is no token to choose");
  std::copy(logits.begin(), logits.end(), scores_.begin());
  if (options_.repetition_penalty != 1.0f) {
    for (uint32_t id : seen_) {
      float& score = scores_[id];
      score = score < 0 ? score * options_.repetition_penalty : score / options_.repetition_penalty;
      // A penalty may push a finite logit past the range of float; it stays comparable.
      score = std::min(score, std::numeric_limits<float>::max());
    }
  }
  return ok_status();
}

int32_t Sampler::largest() const {
  return static_cast<int32_t>(std::max_element(scores_.begin(), scores_.end()) - scores_.begin());
}

Result<int32_t> Sampler::next(std::span<const float> logits) {
  DECANT_RETURN_IF_ERROR(load(logits));
  int32_t id = largest();
  if (options_.temperature.value_or(0) > 0) {
    // Shifting by the largest first changes no probability, and keeps a tiny temperature from overflowing.
    const float highest = scores_[static_cast<size_t>(id)];
    if (std::isfinite(highest)) {
      for (float& score : scores_) score = (score - highest) / *options_.temperature;
      if (options_.top_k > 0) keep_top_k();
      if (options_.top_p < 1) keep_top_p();
      if (options_.min_p > 0) keep_min_p();
      id = draw();
    }
  }
  see(id);
  return id;
}

void Sampler::keep_top_k() {
  const auto k =
      static_cast<size_t>(std::min<uint64_t>(static_cast<uint64_t>(options_.top_k), scores_.size()));
  std::copy(scores_.begin(), scores_.end(), sorted_.begin());
  const auto kth = sorted_.begin() + static_cast<ptrdiff_t>(k - 1);
  std::nth_element(sorted_.begin(), kth, sorted_.end(), std::greater<>());
  for (float& score : scores_) {
    if (score < *kth) score = kMasked;
  }
}

void Sampler::keep_top_p() {
  size_t n = 0;
  double total = 0;
  for (size_t i = 0; i < scores_.size(); ++i) {
    if (scores_[i] == kMasked) continue;
    order_[n++] = static_cast<uint32_t>(i);
    total += std::exp(static_cast<double>(scores_[i]));
  }
  const auto end = order_.begin() + static_cast<ptrdiff_t>(n);
  std::sort(order_.begin(), end, [this](uint32_t a, uint32_t b) {
    return scores_[a] != scores_[b] ? scores_[a] < scores_[b] : a > b;
  });
  double sum = 0;
  for (size_t i = 0; i + 1 < n; ++i) {
    sum += std::exp(static_cast<double>(scores_[order_[i]]));
    if (sum / total > 1.0 - static_cast<double>(options_.top_p)) break;
    scores_[order_[i]] = kMasked;
  }
}

void Sampler::keep_min_p() {
  // The largest score is 0, so a probability over the largest one is exp(score).
  for (float& score : scores_) {
    if (std::exp(static_cast<double>(score)) < static_cast<double>(options_.min_p)) score = kMasked;
  }
}

int32_t Sampler::draw() {
  double total = 0;
  for (float score : scores_) total += std::exp(static_cast<double>(score));
  const double target = random_.uniform() * total;
  double sum = 0;
  int32_t last = 0;
  for (size_t i = 0; i < scores_.size(); ++i) {
    if (scores_[i] == kMasked) continue;
    sum += std::exp(static_cast<double>(scores_[i]));
    last = static_cast<int32_t>(i);
    if (sum > target) break;
  }
  return last;
}

}  // namespace decant::text
