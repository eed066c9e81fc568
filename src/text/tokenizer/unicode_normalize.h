#pragma once

#include "text/tokenizer/aligned_text.h"

namespace decant::text::bpe {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

/// Unicode normalization (UAX #15) that keeps track of where characters come from. Precondition: valid UTF-8.
/// Text that is in the form already is left alone without a copy.
void normalize_unicode(NormalForm form, AlignedText& text);

/// Lower case by code point, without context (no final sigma).
void lowercase(AlignedText& text);

/// Removes the nonspacing marks (category Mn).
void strip_accents(AlignedText& text);

}  // namespace decant::text::bpe
