#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace decant::text::bpe {

inline constexpr int32_t kNoToken = -1;

/// Token strings and their ids, both ways. The strings live in one buffer. Immutable after building; then
/// thread-safe.
class Vocabulary {
 public:
  void reserve(size_t tokens, size_t bytes);

  /// Adds a token; a string that is there already moves to the new id. Fails for ids that are negative or
  /// absurdly far from the number of tokens announced by reserve().
  Status add(std::string_view token, int64_t id);

  int32_t find(std::string_view token) const;
  /// Views stay valid as long as the vocabulary does. Empty for ids without a token; see contains().
  std::string_view token(int32_t id) const;
  bool contains(int32_t id) const;

  /// Number of tokens (not the largest id).
  size_t size() const { return count_; }
  /// One past the largest id.
  size_t id_limit() const { return spans_.size(); }

 private:
  struct Span {
    uint32_t offset = 0;
    uint32_t length = kAbsent;
  };
  static constexpr uint32_t kAbsent = ~uint32_t{0};
  void grow(size_t slots);
  size_t slot_of(std::string_view token) const;

  std::string text_;
  std::vector<Span> spans_;     // by id
  std::vector<int32_t> slots_;  // open addressing, ids; kNoToken: free
  size_t count_ = 0;
  size_t announced_ = 0;
};

}  // namespace decant::text::bpe
