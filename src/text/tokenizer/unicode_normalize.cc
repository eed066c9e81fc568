#include "text/tokenizer/unicode_normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "text/tokenizer/utf8.h"

namespace decant::text::bpe {
namespace {

/// A character being normalized. `change` is 0 where it stands for one input character, 1 where it was inserted, and
/// below 0 where it also swallowed that many followers: the bookkeeping that `tokenizers` derives its offsets from.
struct Item {
  char32_t c;
  int change;
  uint8_t combining;
};

bool composes(NormalForm form) { return form == NormalForm::kNfc || form == NormalForm::kNfkc; }
bool is_compatibility(NormalForm form) { return form == NormalForm::kNfkc || form == NormalForm::kNfkd; }

uint8_t combining_class(char32_t c) {
  return static_cast<uint8_t>(utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class);
}

size_t decompose(char32_t c, bool compatibility, std::array<utf8proc_int32_t, 32>& out) {
  int boundary = 0;
  const int options = UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0);
  const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), out.data(), out.size(),
                                         static_cast<utf8proc_option_t>(options), &boundary);
  if (n >= 1 && n <= static_cast<utf8proc_ssize_t>(out.size())) return static_cast<size_t>(n);
  out[0] = static_cast<utf8proc_int32_t>(c);
  return 1;
}

/// The single character that the two compose to, or 0.
char32_t compose_pair(char32_t a, char32_t b) {
  std::array<utf8proc_int32_t, 4> buffer{static_cast<utf8proc_int32_t>(a), static_cast<utf8proc_int32_t>(b)};
  const auto n = utf8proc_normalize_utf32(buffer.data(), 2,
                                          static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  return n == 1 ? static_cast<char32_t>(buffer[0]) : 0;
}

/// Whether the character may change, or interact with what stands before it, under the form. A character that does not
/// is a boundary: text on both sides of it is normalized apart.
bool is_active(NormalForm form, char32_t c) {
  if (c < (is_compatibility(form) ? 0xa0u : composes(form) ? 0x300u : 0xc0u)) return false;
  if (c >= 0x4e00 && c <= 0x9fff) return false;
  if (c >= 0xac00 && c <= 0xd7a3) return !composes(form);
  if ((c >= 0x1161 && c <= 0x1175) || (c >= 0x11a8 && c <= 0x11c2)) return composes(form) || is_compatibility(form);
  const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
  if (property->combining_class != 0) return true;
  if (composes(form) && (property->category == UTF8PROC_CATEGORY_MC || property->category == UTF8PROC_CATEGORY_MN)) {
    return true;
  }
  std::array<utf8proc_int32_t, 32> parts;
  return decompose(c, is_compatibility(form), parts) != 1 || static_cast<char32_t>(parts[0]) != c;
}

void decompose_run(NormalForm form, const std::vector<char32_t>& in, std::vector<Item>& items) {
  std::array<utf8proc_int32_t, 32> parts;
  for (const char32_t c : in) {
    const size_t n = decompose(c, is_compatibility(form), parts);
    for (size_t i = 0; i < n; ++i) {
      const auto part = static_cast<char32_t>(parts[i]);
      items.push_back({part, i == 0 ? 0 : 1, combining_class(part)});
    }
  }
  for (size_t i = 0; i < items.size();) {  // canonical ordering of each run of marks
    size_t end = i;
    while (end < items.size() && items[end].combining != 0) ++end;
    std::stable_sort(items.begin() + static_cast<ptrdiff_t>(i), items.begin() + static_cast<ptrdiff_t>(end),
                     [](const Item& a, const Item& b) { return a.combining < b.combining; });
    i = end + 1;
  }
}

void compose_run(std::vector<Item>& items) {
  size_t out = 0;
  constexpr size_t kNone = ~size_t{0};
  size_t starter = kNone;
  int last_class = -1;  // class of the last item kept behind the starter; -1: none
  for (const Item item : items) {
    if (starter != kNone && last_class < item.combining && (last_class != 0 || item.combining != 0)) {
      if (const char32_t composed = compose_pair(items[starter].c, item.c); composed != 0) {
        items[starter].c = composed;
        items[starter].change += item.change - 1;
        continue;
      }
    }
    items[out] = item;
    if (item.combining == 0) {
      starter = out;
      last_class = -1;
    } else {
      last_class = item.combining;
    }
    ++out;
  }
  items.resize(out);
}

/// Writes the items that stand for the characters of `range`, with the spans of those characters.
void emit(const AlignedText& in, Range range, const std::vector<Item>& items, AlignedText& out) {
  size_t cursor = range.begin;
  for (const Item& item : items) {
    Span span;
    if (item.change > 0) {
      if (cursor > 0) span = in.span_at(cursor - 1);
    } else {
      span = in.span_at(cursor);
      for (int take = 1 - item.change; take > 0 && cursor < range.end; --take) cursor += utf8_length(in.text[cursor]);
    }
    std::string bytes;
    append_utf8(bytes, item.c);
    out.append(bytes, span);
  }
}

bool is_ascii(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

void normalize_unicode(NormalForm form, AlignedText& text) {
  if (is_ascii(text.text)) return;
  AlignedText out;
  out.aligned = text.aligned;
  std::vector<char32_t> run;
  std::vector<Item> items;
  size_t copied = 0;     // everything before is in `out`
  size_t boundary = 0;   // start of the last inactive character
  for (size_t i = 0, n = 0; i < text.text.size();) {
    const char32_t c = decode_valid(text.text.data() + i, n);
    if (!is_active(form, c)) {
      boundary = i;
      i += n;
      continue;
    }
    // The run: the boundary character (which may compose with what follows it) and all active ones behind it.
    size_t end = i;
    while (end < text.text.size() && is_active(form, decode_valid(text.text.data() + end, n))) end += n;
    const size_t begin = std::max(boundary, copied);
    out.append(text, {copied, begin});
    run.clear();
    items.clear();
    for (size_t k = begin; k < end; k += n) run.push_back(decode_valid(text.text.data() + k, n));
    decompose_run(form, run, items);
    if (composes(form)) compose_run(items);
    emit(text, {begin, end}, items, out);
    copied = boundary = i = end;
  }
  if (copied == 0) return;
  out.append(text, {copied, text.text.size()});
  text = std::move(out);
}

void lowercase(AlignedText& text) {
  AlignedText out;
  out.aligned = text.aligned;
  out.text.reserve(text.text.size());
  for (size_t i = 0, n = 0; i < text.text.size(); i += n) {
    const char32_t c = decode_valid(text.text.data() + i, n);
    std::string bytes;
    if (c == 0x130) {  // the one code point whose full lower case has two
      bytes = "i\xcc\x87";
    } else {
      append_utf8(bytes, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
    out.append(bytes, text.span_at(i));
  }
  text = std::move(out);
}

void strip_accents(AlignedText& text) {
  AlignedText out;
  out.aligned = text.aligned;
  for (size_t i = 0, n = 0; i < text.text.size(); i += n) {
    const char32_t c = decode_valid(text.text.data() + i, n);
    if (utf8proc_category(static_cast<utf8proc_int32_t>(c)) != UTF8PROC_CATEGORY_MN) out.append(text, {i, i + n});
  }
  text = std::move(out);
}

}  // namespace decant::text::bpe
