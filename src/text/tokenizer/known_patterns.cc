#include "text/tokenizer/known_patterns.h"

#include <array>

#include "text/tokenizer/char_class.h"
#include "text/tokenizer/utf8.h"

namespace decant::text::bpe {
namespace {

struct Entry {
  KnownPattern pattern;
  std::string_view text;
};

constexpr std::array kEntries = {
    Entry{KnownPattern::kGpt2,
          R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    Entry{
        KnownPattern::kCl100k,
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
        R"(|\s+(?!\S)|\s+)"},
    Entry{
        KnownPattern::kQwen2,
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
        R"(|\s+(?!\S)|\s+)"},
    Entry{KnownPattern::kO200k,
          R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
          R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
          R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)"
          R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    Entry{KnownPattern::kTekken,
          R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
          R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
          R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

/// A cursor over one text. Every method returns the end of its part, or its argument when the part is empty.
class Walker {
 public:
  explicit Walker(std::string_view text) : p_(text.data()), size_(text.size()), table_(char_class_table()) {}

  uint8_t class_at(size_t i, size_t& length) const {
    const auto lead = static_cast<unsigned char>(p_[i]);
    if (lead < 0x80) return length = 1, table_[lead];
    return char_class(table_, decode_valid(p_ + i, length));
  }

  /// Longest run of characters with a class in `wanted` and none in `unwanted`.
  size_t run(size_t i, uint8_t wanted, size_t at_most = ~size_t{0}) const {
    for (size_t n = 0; i < size_ && at_most > 0 && (class_at(i, n) & wanted) != 0; i += n) --at_most;
    return i;
  }
  size_t run_without(size_t i, uint8_t unwanted) const {
    for (size_t n = 0; i < size_ && (class_at(i, n) & unwanted) == 0;) i += n;
    return i;
  }
  size_t newlines(size_t i, bool slash) const {
    while (i < size_ && (p_[i] == '\r' || p_[i] == '\n' || (slash && p_[i] == '/'))) ++i;
    return i;
  }

  /// 's 't 're 've 'm 'll 'd; with `fold`, in any case, U+017F counting as an s.
  size_t contraction(size_t i, bool fold) const {
    if (i + 1 >= size_ || p_[i] != '\'') return i;
    const auto letter = [&](size_t k) -> char {
      if (k >= size_) return 0;
      return fold && p_[k] >= 'A' && p_[k] <= 'Z' ? static_cast<char>(p_[k] + 32) : p_[k];
    };
    const char a = letter(i + 1);
    const char b = letter(i + 2);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return i + 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return i + 3;
    if (fold && a == '\xc5' && b == '\xbf') return i + 3;
    return i;
  }

  /// ` ?[^\s\p{L}\p{N}]+`
  size_t symbols(size_t i) const {
    const size_t from = p_[i] == ' ' ? i + 1 : i;
    const size_t end = run_without(from, kSpace | kLetter | kNumber);
    return end > from ? end : i;
  }

  /// `\s+(?!\S)|\s+`, and before them `\s*[\r\n]+` where `newline_runs`.
  size_t blanks(size_t i, bool newline_runs) const {
    size_t last_start = i;
    size_t after_newline = i;
    size_t end = i;
    size_t n = 0;
    while (end < size_) {
      const uint8_t c = class_at(end, n);
      if ((c & kSpace) == 0) break;
      last_start = end;
      end += n;
      if ((c & kNewline) != 0) after_newline = end;
    }
    if (newline_runs && after_newline > i) return after_newline;
    return end == size_ || last_start == i ? end : last_start;
  }

  size_t gpt2(size_t i) const {
    if (const size_t end = contraction(i, false); end > i) return end;
    const size_t from = p_[i] == ' ' && i + 1 < size_ ? i + 1 : i;
    size_t n = 0;
    const uint8_t c = class_at(from, n);
    if ((c & kLetter) != 0) return run(from, kLetter);
    if ((c & kNumber) != 0) return run(from, kNumber);
    if ((c & kSpace) == 0) return run_without(from, kSpace | kLetter | kNumber);
    return blanks(i, false);
  }

  size_t cl100k(size_t i, size_t digits) const {
    if (const size_t end = contraction(i, true); end > i) return end;
    size_t n = 0;
    const uint8_t c = class_at(i, n);
    if ((c & kLetter) != 0) return run(i, kLetter);
    if ((c & kNumber) != 0) return run(i, kNumber, digits);
    if ((c & kNewline) == 0) {
      if (const size_t end = run(i + n, kLetter); end > i + n) return end;
    }
    if (const size_t end = symbols(i); end > i) return newlines(end, false);
    return blanks(i, true);
  }

  /// `U*L+` from `i`, U upper-like and L lower-like: the run of U gives characters back until one of them is
  /// in L.
  size_t cased_word(size_t i) const {
    size_t last_lower = i;
    size_t n = 0;
    size_t k = i;
    for (uint8_t c = 0; k < size_ && ((c = class_at(k, n)) & kUpperLike) != 0;) {
      k += n;
      if ((c & kLowerLike) != 0) last_lower = k;
    }
    const size_t end = run(k, kLowerLike);
    return end > k ? end : last_lower;
  }

  size_t o200k(size_t i, bool contractions, size_t digits) const {
    size_t n = 0;
    const uint8_t c = class_at(i, n);
    const bool prefix = (c & (kLetter | kNumber | kNewline)) == 0;
    const size_t after = prefix ? i + n : i;
    const auto tail = [&](size_t end) { return contractions ? contraction(end, true) : end; };
    if (const size_t end = cased_word(after); end > after) return tail(end);
    if (prefix) {
      if (const size_t end = cased_word(i); end > i) return tail(end);
    }
    if (const size_t end = run(after, kUpperLike); end > after) return tail(end);
    if (prefix) {
      if (const size_t end = run(i, kUpperLike); end > i) return tail(end);
    }
    if ((c & kNumber) != 0) return run(i, kNumber, digits);
    if (const size_t end = symbols(i); end > i) return newlines(end, true);
    return blanks(i, true);
  }

 private:
  const char* p_;
  size_t size_;
  const uint8_t* table_;
};

template <typename Step>
void cut(size_t size, size_t base, std::vector<Range>& out, Step step) {
  for (size_t i = 0; i < size;) {
    const size_t end = step(i);
    out.push_back({base + i, base + end});
    i = end;
  }
}

}  // namespace

std::string_view pattern_text(KnownPattern pattern) {
  for (const Entry& e : kEntries) {
    if (e.pattern == pattern) return e.text;
  }
  return {};
}

std::optional<KnownPattern> find_known_pattern(std::string_view text) {
  for (const Entry& e : kEntries) {
    if (e.text == text) return e.pattern;
  }
  return std::nullopt;
}

void split_known(KnownPattern pattern, std::string_view text, size_t base, std::vector<Range>& out) {
  const Walker w(text);
  const size_t n = text.size();
  switch (pattern) {
    case KnownPattern::kGpt2:
      return cut(n, base, out, [&](size_t i) { return w.gpt2(i); });
    case KnownPattern::kCl100k:
      return cut(n, base, out, [&](size_t i) { return w.cl100k(i, 3); });
    case KnownPattern::kQwen2:
      return cut(n, base, out, [&](size_t i) { return w.cl100k(i, 1); });
    case KnownPattern::kO200k:
      return cut(n, base, out, [&](size_t i) { return w.o200k(i, true, 3); });
    case KnownPattern::kTekken:
      return cut(n, base, out, [&](size_t i) { return w.o200k(i, false, 1); });
  }
}

}  // namespace decant::text::bpe
