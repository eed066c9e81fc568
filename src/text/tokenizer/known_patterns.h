#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/tokenizer/aligned_text.h"

namespace decant::text::bpe {

/// The pre-tokenizer patterns that have a hand-written matcher, and their texts as tokenizer.json spells
/// them.
enum class KnownPattern {
  kGpt2,    ///< contractions, words, numbers, symbols, each with one leading blank
  kCl100k,  ///< GPT-4 and Llama 3: digits in threes
  kQwen2,   ///< as kCl100k, digits one by one
  kO200k,   ///< GPT-4o: words cut at case changes
  kTekken,  ///< as kO200k without contractions, digits one by one
};

std::string_view pattern_text(KnownPattern pattern);
std::optional<KnownPattern> find_known_pattern(std::string_view text);

/// Cuts `text` into the pattern's matches, in linear time, exactly as a regular expression engine would. Each
/// of these patterns matches at every position, so the pieces cover the text. `base` is added to every
/// offset. Precondition: valid UTF-8.
void split_known(KnownPattern pattern, std::string_view text, size_t base, std::vector<Range>& out);

}  // namespace decant::text::bpe
