#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer/aligned_text.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/pair_map.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/vocabulary.h"

namespace decant::text::bpe {

/// Finds added tokens in a text, the longest at the leftmost place. Immutable once built, thread-safe.
class AddedTokenMatcher {
 public:
  struct Found {
    Range range;
    int32_t id = kNoToken;  ///< kNoToken: text between added tokens
  };

  /// `content` is what to look for: the token's own text, or its normalized form. The first token added wins
  /// a tie.
  void add(std::string_view content, const AddedToken& token);
  bool empty() const { return tokens_.empty(); }

  /// Appends parts that cover `text` from end to end, or nothing when it is empty. With `special_as_text`,
  /// special tokens are not looked for.
  void split(std::string_view text, bool special_as_text, std::vector<Found>& out) const;

 private:
  struct Match {
    size_t length = 0;
    uint32_t token = 0;
  };
  Match longest_at(std::string_view text, size_t i) const;

  std::vector<AddedToken> tokens_;
  std::vector<uint32_t> node_token_ = {kNone};  // by trie node; kNone: no token ends here
  PairMap edges_;                               // (node, byte) -> node
  std::array<bool, 256> first_{};
  static constexpr uint32_t kNone = ~uint32_t{0};
};

/// All added tokens of a tokenizer, with their ids settled the way `tokenizers` does: a token that the
/// vocabulary has keeps that id, another gets the next free one whatever the file says.
class AddedTokens {
 public:
  static Result<AddedTokens> create(std::vector<AddedToken> tokens, const Vocabulary& vocabulary,
                                    const Normalizer& normalizer);

  const AddedTokenMatcher& raw() const { return raw_; }
  const AddedTokenMatcher& normalized() const { return normalized_; }
  const std::vector<AddedToken>& all() const { return tokens_; }

  /// Null when `id` is not an added token's.
  const AddedToken* find_id(int32_t id) const;
  const AddedToken* find(std::string_view content) const;
  /// What the token becomes in decoded text: its normalized form where it is looked for in normalized text.
  /// Precondition: `token` is an element of all().
  std::string_view decoded(const AddedToken& token) const {
    return decoded_[static_cast<size_t>(&token - tokens_.data())];
  }

 private:
  std::vector<AddedToken> tokens_;    // sorted by id
  std::vector<std::string> decoded_;  // as tokens_
  std::vector<uint32_t> by_content_;
  AddedTokenMatcher raw_;
  AddedTokenMatcher normalized_;
};

}  // namespace decant::text::bpe
