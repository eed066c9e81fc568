#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace decant::text::bpe {

/// Bytes [begin, end) of a text.
struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

/// A piece of a pattern's walk over a text: matched, or the gap between matches.
struct Match {
  Range range;
  bool is_match = false;
};

/// Code points [begin, end) of the original text.
struct Span {
  uint32_t begin = 0;
  uint32_t end = 0;
};

/// A text on its way from the input to the model, which may remember for each byte the code points of the
/// input that it comes from. The spans follow the conventions of Hugging Face `tokenizers`: a replaced
/// character keeps the span of the first one it replaces, an inserted one shares the span of its predecessor.
struct AlignedText {
  std::string text;
  std::vector<Span> spans;  ///< one a byte, or empty when nobody asked for offsets
  bool aligned = false;

  std::string_view view(Range r) const { return std::string_view(text).substr(r.begin, r.size()); }

  /// Copies bytes of `from` with their spans.
  void append(const AlignedText& from, Range r) {
    text.append(from.text, r.begin, r.size());
    if (aligned) {
      spans.insert(spans.end(), from.spans.begin() + static_cast<ptrdiff_t>(r.begin),
                   from.spans.begin() + static_cast<ptrdiff_t>(r.end));
    }
  }
  /// Appends bytes that all come from `span`.
  void append(std::string_view bytes, Span span) {
    text.append(bytes);
    if (aligned) spans.insert(spans.end(), bytes.size(), span);
  }
  /// Span of a byte; empty when not aligned.
  Span span_at(size_t i) const { return aligned && i < spans.size() ? spans[i] : Span{}; }
};

}  // namespace decant::text::bpe
