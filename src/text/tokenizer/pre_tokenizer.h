#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/tokenizer/aligned_text.h"
#include "text/tokenizer/known_patterns.h"
#include "text/tokenizer/regex.h"

namespace decant::text::bpe {

/// What becomes of the parts that a pattern matches.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
/// When Metaspace puts its replacement in front: never, at the start of the input, or of every piece.
enum class PrependScheme { kNever, kFirst, kAlways };

/// One step of a pre-tokenizer, as tokenizer.json describes it.
struct PreTokenizerStep {
  enum Kind { kSplit, kByteLevel, kDigits, kPunctuation, kMetaspace, kWhitespaceSplit };
  Kind kind;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;                ///< kSplit: the gaps are what matches
  std::string literal;                ///< kSplit: text to find, when there is neither known pattern nor regex
  std::optional<KnownPattern> known;  ///< kSplit
  std::optional<Regex> regex;         ///< kSplit
  bool add_prefix_space = false;      ///< kByteLevel
  bool use_regex = true;              ///< kByteLevel: cut with GPT-2's pattern first
  std::string replacement;            ///< kMetaspace: one character
  PrependScheme prepend = PrependScheme::kAlways;  ///< kMetaspace
  bool split = true;                               ///< kMetaspace: cut in front of every replacement
};

/// Steps in order. Sequences are flattened by the reader. Immutable, thread-safe.
class PreTokenizer {
 public:
  PreTokenizer() = default;
  /// With `defer_bytes`, a ByteLevel step at the end leaves the bytes as they are: the model works on bytes.
  PreTokenizer(std::vector<PreTokenizerStep> steps, bool defer_bytes)
      : steps_(std::move(steps)), defer_bytes_(defer_bytes) {}

  bool empty() const { return steps_.empty(); }
  /// Whether run() looks at spans, so that they are needed even when no offsets are asked for.
  bool needs_spans() const;

  /// Cuts `text` into pieces, none of them empty. Steps that change characters rewrite `text`.
  /// Fails only when a regular expression gives up.
  Status run(AlignedText& text, std::vector<Range>& pieces) const;

 private:
  std::vector<PreTokenizerStep> steps_;
  bool defer_bytes_ = false;
};

/// Applies a behaviour to matches that cover a piece, and appends the pieces that remain.
void apply_behavior(SplitBehavior behavior, const std::vector<Match>& matches, std::vector<Range>& out);

}  // namespace decant::text::bpe
