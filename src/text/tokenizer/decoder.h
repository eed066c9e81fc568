#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/regex.h"

namespace decant::text::bpe {

/// One step of a decoder, as tokenizer.json describes it.
struct DecoderStep {
  enum Kind { kByteLevel, kReplace, kByteFallback, kFuse, kStrip, kMetaspace, kWordPiece };
  Kind kind;
  std::string pattern;         ///< kReplace: literal to find; kStrip: the character; kMetaspace: replacement;
                               ///< kWordPiece: prefix of continuing tokens
  std::optional<Regex> regex;  ///< kReplace
  std::string content;         ///< kReplace
  size_t start = 0;            ///< kStrip: at most so many at the start
  size_t stop = 0;             ///< kStrip: at most so many at the end
  PrependScheme prepend = PrependScheme::kAlways;  ///< kMetaspace
  bool cleanup = true;                             ///< kWordPiece
};

/// Turns tokens into text, one token at a time. Immutable, thread-safe; a State belongs to one stream.
///
/// Until a step joins the tokens (Fuse, ByteLevel), each token is worked on by itself; behind such a step
/// chunks are parts of one long token, and steps that must see all of it hold it back until finish().
class Decoder {
 public:
  struct StepState {
    std::string held;
    size_t count = 0;
    bool started = false;
  };
  struct State {
    std::vector<StepState> steps;
    bool first = true;
  };

  Decoder() = default;
  /// No steps at all: tokens are joined by blanks.
  explicit Decoder(std::vector<DecoderStep> steps);

  /// Appends the text that became ready. `eager`: byte-fallback tokens are turned into text as soon as they
  /// form whole characters, not at the end of their run.
  void push(std::string_view token, bool eager, State& state, std::string& out) const;
  void finish(State& state, std::string& out) const;

 private:
  void feed(size_t step, std::string_view chunk, bool eager, State& state, std::string& out) const;
  void finish_step(size_t step, State& state, std::string& out) const;
  void feed_byte_fallback(size_t step, std::string_view token, bool eager, State& state,
                          std::string& out) const;
  void release_bytes(size_t step, State& state, std::string& out) const;
  void feed_joined_strip(size_t step, std::string_view chunk, State& state, std::string& out) const;
  bool holds_all(size_t step) const;
  std::string apply(size_t step, std::string_view token, StepState& state) const;

  std::vector<DecoderStep> steps_;
  std::vector<bool> joined_;  // by step: some step before it joins the tokens
};

}  // namespace decant::text::bpe
