#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/tokenizer/hash.h"

namespace decant::text::bpe {

/// Open-addressing map from a pair of 31-bit numbers to a 32-bit number. Thread-safe once it is no longer
/// written.
class PairMap {
 public:
  static constexpr uint32_t kMissing = ~uint32_t{0};

  void reserve(size_t pairs) {
    if (std::bit_ceil(pairs * 2 + 16) > slots_.size()) rehash(std::bit_ceil(pairs * 2 + 16));
  }

  /// Value stored for the pair, which becomes `value` when the pair is new.
  uint32_t& insert(uint32_t a, uint32_t b, uint32_t value) {
    if ((count_ + 1) * 2 > slots_.size()) rehash(slots_.size() * 2 + 16);
    Slot& slot = slots_[index_of(key(a, b))];
    if (slot.key == kFree) {
      slot = {key(a, b), value};
      ++count_;
    }
    return slot.value;
  }

  uint32_t find(uint32_t a, uint32_t b) const {
    if (slots_.empty()) return kMissing;
    const Slot& slot = slots_[index_of(key(a, b))];
    return slot.key == kFree ? kMissing : slot.value;
  }

  size_t size() const { return count_; }

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};
  struct Slot {
    uint64_t key = kFree;
    uint32_t value = 0;
  };
  static uint64_t key(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

  size_t index_of(uint64_t k) const {
    const size_t mask = slots_.size() - 1;
    size_t i = hash_pair(k, seed_) & mask;
    while (slots_[i].key != kFree && slots_[i].key != k) i = (i + 1) & mask;
    return i;
  }

  void rehash(size_t slots) {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(std::bit_ceil(slots), Slot{});
    for (const Slot& s : old) {
      if (s.key != kFree) slots_[index_of(s.key)] = s;
    }
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
  uint64_t seed_ = hash_seed();
};

}  // namespace decant::text::bpe
