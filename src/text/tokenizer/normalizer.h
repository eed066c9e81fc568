#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/tokenizer/aligned_text.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/unicode_normalize.h"

namespace decant::text::bpe {

/// One step of a normalizer, as tokenizer.json describes it.
struct NormalizerStep {
  enum Kind { kUnicode, kReplace, kPrepend, kLowercase, kStrip, kStripAccents, kByteLevel };
  Kind kind;
  NormalForm form = NormalForm::kNfc;  ///< kUnicode
  std::string pattern;                 ///< kReplace: the literal text to find, when there is no regex
  std::optional<Regex> regex;          ///< kReplace
  std::string content;                 ///< kReplace: what to put there; kPrepend: what to put in front
  bool left = false;                   ///< kStrip
  bool right = false;                  ///< kStrip
};

/// Steps in order. Sequences are flattened by the reader. Immutable, thread-safe.
class Normalizer {
 public:
  Normalizer() = default;
  explicit Normalizer(std::vector<NormalizerStep> steps) : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }
  /// Fails only when a regular expression gives up, or when replacements make the text more than 2 GB long.
  Status run(AlignedText& text) const;

 private:
  std::vector<NormalizerStep> steps_;
};

/// Puts `prefix` in front of a non-empty text; both it and the first character get that character's span.
void prepend(std::string_view prefix, AlignedText& text);

/// Replaces every occurrence of `pattern` (not empty).
void replace_literal(std::string_view pattern, std::string_view content, AlignedText& text);

}  // namespace decant::text::bpe
