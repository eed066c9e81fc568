#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace decant::app {

/// Parameters of llama3 rotary scaling (see huggingface::RopeParameters).
struct Llama3Rope {
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_max_position_embeddings = 8192;
};

/// Finds the parameters behind the divisors that a GGUF file stores as rope_freqs.weight, one per rotary
/// frequency theta^(-2i / (2 * size)). With wavelength w and trained length L, a divisor is 1 where w < L /
/// high, `factor` where w > L / low, and 1 / ((1 - s) / factor + s), s = (L / w - low) / (high - low),
/// between (Llama 3.1's formula). Only L / (high - low) and low / (high - low) show in the divisors, so low
/// is taken as 1. `trained_length`, where the file has one, is tried first, then 8192 with high = 4. Empty
/// when no parameters reproduce the divisors to 1e-4.
std::optional<Llama3Rope> fit_llama3_rope(std::span<const float> divisors, double theta,
                                          std::optional<int64_t> trained_length);

}  // namespace decant::app
