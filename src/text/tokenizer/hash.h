#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace decant::text::bpe {

/// Set once per process, so that a vocabulary file cannot be made to collide.
uint64_t hash_seed();

inline uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_bytes(std::string_view s, uint64_t seed) {
  constexpr uint64_t kA = 0x9e3779b97f4a7c15u;
  constexpr uint64_t kB = 0xd6e8feb86659fd93u;
  uint64_t h = seed ^ (s.size() * kB);
  const char* p = s.data();
  size_t n = s.size();
  const auto load = [](const char* at, auto word) {
    std::memcpy(&word, at, sizeof word);
    return static_cast<uint64_t>(word);
  };
  for (; n > 16; p += 8, n -= 8) h = mix(h ^ load(p, uint64_t{}), kA);
  uint64_t tail = 0;  // the last 16 bytes or fewer, by loads that may overlap
  if (n >= 8) {
    h = mix(h ^ load(p, uint64_t{}), kA);
    tail = load(p + n - 8, uint64_t{});
  } else if (n >= 4) {
    tail = load(p, uint32_t{}) << 32 | load(p + n - 4, uint32_t{});
  } else if (n > 0) {
    tail = load(p, uint8_t{}) << 16 | load(p + n / 2, uint8_t{}) << 8 | load(p + n - 1, uint8_t{});
  }
  return mix(h ^ tail ^ kB, kA);
}

inline uint64_t hash_pair(uint64_t key, uint64_t seed) { return mix(key ^ seed, 0x9e3779b97f4a7c15u); }

}  // namespace decant::text::bpe
