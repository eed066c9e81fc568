#include "text/tokenizer/unicode_normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "text/tokenizer/utf8.h"

namespace decant::text::bpe {
namespace {

/// A character being normalized. `change` is 0 where it stands for one input character, 1 where it was
/// inserted, and below 0 where it also swallowed that many followers: the bookkeeping that `tokenizers`
/// derives its offsets from.
struct Item {
  char32_t c;
  int change;
  uint8_t combining;
};

/// `tokenizers` normalizes by the tables of Unicode 9. Characters that got a decomposition or a combining
/// class later stay as they are there, and vocabularies were trained that way. First and last of each range.
constexpr std::array<std::pair<char32_t, char32_t>, 51> kNewer = {{
    {0x7fd, 0x7fd},     {0x897, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},     {0xc3c, 0xc3c},
    {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},   {0x1abf, 0x1aeb},   {0x1df6, 0x1dfa},
    {0x32ff, 0x32ff},   {0xa7f1, 0xa7f4},   {0xa82c, 0xa82c},   {0xab69, 0xab69},   {0x105c9, 0x105c9},
    {0x105e4, 0x105e4}, {0x10781, 0x107ba}, {0x10d24, 0x10d27}, {0x10d69, 0x10d6d}, {0x10eab, 0x10eac},
    {0x10efa, 0x10eff}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b},
    {0x11383, 0x11391}, {0x113b8, 0x113d0}, {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x11930, 0x11943},
    {0x119e0, 0x119e0}, {0x11a34, 0x11a34}, {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d45},
    {0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x16121, 0x1612f}, {0x16d63, 0x16d6a}, {0x16ff0, 0x16ff1},
    {0x1ccd6, 0x1ccf9}, {0x1df95, 0x1df95}, {0x1e030, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae},
    {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef}, {0x1e5ee, 0x1e5ef}, {0x1e6e3, 0x1e6f5}, {0x1f16c, 0x1f16c},
    {0x1fbf0, 0x1fbf9},
}};

bool is_newer(char32_t c) {
  const auto after =
      std::upper_bound(kNewer.begin(), kNewer.end(), c,
                       [](char32_t wanted, const auto& range) { return wanted < range.first; });
  return after != kNewer.begin() && c <= std::prev(after)->second;
}

bool composes(NormalForm form) { return form == NormalForm::kNfc || form == NormalForm::kNfkc; }
bool is_compatibility(NormalForm form) { return form == NormalForm::kNfkc || form == NormalForm::kNfkd; }

uint8_t combining_class(char32_t c) {
  if (is_newer(c)) return 0;
  return static_cast<uint8_t>(utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class);
}

size_t decompose(char32_t c, bool compatibility, std::array<utf8proc_int32_t, 32>& out) {
  out[0] = static_cast<utf8proc_int32_t>(c);
  if (is_newer(c)) return 1;
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
  if (is_newer(a) || is_newer(b)) return 0;
  std::array<utf8proc_int32_t, 4> buffer{static_cast<utf8proc_int32_t>(a), static_cast<utf8proc_int32_t>(b)};
  const auto n = utf8proc_normalize_utf32(buffer.data(), 2,
                                          static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  return n == 1 ? static_cast<char32_t>(buffer[0]) : 0;
}

/// Whether the character may change, or interact with what stands before it, under the form. A character that
/// does not is a boundary: text on both sides of it is normalized apart.
bool is_active(NormalForm form, char32_t c) {
  if (c < (is_compatibility(form) ? 0xa0u : composes(form) ? 0x300u : 0xc0u)) return false;
  if (c >= 0x4e00 && c <= 0x9fff) return false;
  if (c >= 0xac00 && c <= 0xd7a3) return !composes(form);
  if ((c >= 0x1161 && c <= 0x1175) || (c >= 0x11a8 && c <= 0x11c2))
    return composes(form) || is_compatibility(form);
  if (is_newer(c)) return false;
  const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
  if (property->combining_class != 0) return true;
  if (composes(form) &&
      (property->category == UTF8PROC_CATEGORY_MC || property->category == UTF8PROC_CATEGORY_MN)) {
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
      for (int take = 1 - item.change; take > 0 && cursor < range.end; --take)
        cursor += utf8_length(in.text[cursor]);
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
  size_t copied = 0;    // everything before is in `out`
  size_t boundary = 0;  // start of the last inactive character
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
    if (utf8proc_category(static_cast<utf8proc_int32_t>(c)) != UTF8PROC_CATEGORY_MN)
      out.append(text, {i, i + n});
  }
  text = std::move(out);
}

}  // namespace decant::text::bpe
