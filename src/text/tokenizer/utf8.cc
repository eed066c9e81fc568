#include "text/tokenizer/utf8.h"

namespace decant::text::bpe {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

size_t ascii_prefix(std::string_view bytes) {
  size_t n = 0;
  while (n < bytes.size() && static_cast<unsigned char>(bytes[n]) < 0x80) ++n;
  return n;
}

}  // namespace

Utf8Step utf8_step(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return {Utf8Step::kValid, 1};
  if (lead < 0xc2 || lead > 0xf4) return {Utf8Step::kInvalid, 1};
  const uint8_t needed = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and values past U+10FFFF.
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xed) high = 0x9f;
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;
  for (uint8_t i = 1; i < needed; ++i) {
    if (i >= bytes.size()) return {Utf8Step::kIncomplete, i};
    if (at(i) < low || at(i) > high) return {Utf8Step::kInvalid, i};
    low = 0x80;
    high = 0xbf;
  }
  return {Utf8Step::kValid, needed};
}

bool is_valid_utf8(std::string_view bytes) {
  while (true) {
    bytes.remove_prefix(ascii_prefix(bytes));
    if (bytes.empty()) return true;
    const Utf8Step step = utf8_step(bytes);
    if (step.kind != Utf8Step::kValid) return false;
    bytes.remove_prefix(step.length);
  }
}

size_t append_lossy(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const size_t ascii = ascii_prefix(bytes);
    out.append(bytes.substr(0, ascii));
    bytes.remove_prefix(ascii);
    if (bytes.empty()) break;
    const Utf8Step step = utf8_step(bytes);
    if (step.kind == Utf8Step::kIncomplete) return bytes.size();
    out.append(step.kind == Utf8Step::kValid ? bytes.substr(0, step.length) : kReplacement);
    bytes.remove_prefix(step.length);
  }
  return 0;
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  if (append_lossy(bytes, out) > 0) out.append(kReplacement);
  return out;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

}  // namespace decant::text::bpe
