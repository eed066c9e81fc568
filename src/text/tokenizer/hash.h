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
  for (; n > 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = mix(h ^ word, kA);
  }
  uint64_t tail = 0;
  if (n > 0) std::memcpy(&tail, p, n);
  return mix(h ^ tail ^ kB, kA);
}

inline uint64_t hash_pair(uint64_t key, uint64_t seed) { return mix(key ^ seed, 0x9e3779b97f4a7c15u); }

}  // namespace decant::text::bpe
