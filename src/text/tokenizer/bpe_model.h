#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer/aligned_text.h"
#include "text/tokenizer/pair_map.h"
#include "text/tokenizer/vocabulary.h"

namespace decant::text::bpe {

/// Working memory of one encoding call: a bounded cache of words and the merge queue. Belongs to one thread
/// at a time.
class BpeScratch;

/// Byte pair encoding of one word: symbols are merged pairwise, the pair with the lowest rank first, the
/// leftmost of equals first. O(n log n) in the word's length. Immutable once built, thread-safe.
class BpeModel {
 public:
  struct Options {
    std::string unk_token;  ///< empty: characters without a token are dropped
    bool fuse_unk = false;
    bool byte_fallback = false;
    bool ignore_merges = false;  ///< a word that is a token becomes that token
    std::string continuing_subword_prefix;
    std::string end_of_word_suffix;
  };
  struct MergeText {
    std::string_view left;
    std::string_view right;
  };

  /// Fails when a merge names tokens that the vocabulary lacks. Later duplicates of a merge win, as in
  /// `tokenizers`.
  static Result<BpeModel> create(Vocabulary vocabulary, const std::vector<MergeText>& merges,
                                 Options options);

  /// With `on_bytes`, words are raw bytes and the vocabulary spells bytes in GPT-2's alphabet. Set once,
  /// before use.
  void set_on_bytes(bool on_bytes);
  /// Whether set_on_bytes(true) encodes exactly as the spelled-out text would.
  bool can_work_on_bytes() const;

  /// Appends the ids of `word` and, when `lengths` is given, how many bytes of it each id covers.
  /// Precondition: `word` has less than 2^31 bytes, and is valid UTF-8 unless the model works on bytes.
  void encode(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& ids,
              std::vector<uint32_t>* lengths) const;

  /// Cuts `piece` of `text` in front of U+2581 wherever no merge reaches across, which changes no id and lets
  /// long texts that have no pre-tokenizer go through the word cache.
  void cut_words(std::string_view text, Range piece, std::vector<Range>& out) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const Options& options() const { return options_; }
  /// Pairs of token ids, by rank. For writing the model back.
  std::vector<std::pair<int32_t, int32_t>> merges() const;

 private:
  BpeModel() = default;
  void find_boundaries();
  void symbols_of_bytes(std::string_view word, BpeScratch& scratch) const;
  void symbols_of_text(std::string_view word, BpeScratch& scratch) const;
  void merge(BpeScratch& scratch) const;

  struct Merge {
    int32_t left;
    int32_t right;
    int32_t merged;
  };
  Vocabulary vocabulary_;
  Options options_;
  PairMap ranks_;
  std::vector<Merge> merges_;  // by rank
  int32_t unk_id_ = kNoToken;
  bool on_bytes_ = false;
  bool has_byte_tokens_ = false;
  std::array<int32_t, 256> byte_ids_{};      // of the byte's stand-in
  std::array<int32_t, 256> fallback_ids_{};  // of <0xNN>
  bool cuts_words_ = false;
  std::vector<char32_t> joins_boundary_;  // sorted: characters that some token has in front of U+2581
};

class BpeScratch {
 public:
  BpeScratch();
  /// Gives back the memory that a very long word took.
  void release_large();

 private:
  friend class BpeModel;
  struct Symbol {
    int32_t id;
    uint32_t length;
    int32_t previous;
    int32_t next;
  };
  /// One cache line: a word and its ids. Longer words are not cached.
  struct alignas(64) Slot {
    uint8_t length = 0;
    uint8_t count = 0;
    std::array<char, 30> key{};
    std::array<int32_t, 8> ids{};
  };
  static constexpr size_t kSlots = size_t{1} << 15;
  std::vector<Slot> cache_;
  std::vector<Symbol> symbols_;
  std::vector<uint64_t> queue_;
  std::string spelled_;
};

}  // namespace decant::text::bpe
