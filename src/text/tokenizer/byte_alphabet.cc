#include "text/tokenizer/byte_alphabet.h"

#include <array>

#include "text/tokenizer/utf8.h"

namespace decant::text::bpe {
namespace {

constexpr bool is_printable(int b) {
  return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xff && b != 0xad);
}
constexpr int kAlphabetEnd = 0x100 + 68;

struct Tables {
  std::array<char16_t, 256> to_char{};
  std::array<int16_t, kAlphabetEnd> to_byte{};
  constexpr Tables() {
    for (auto& b : to_byte) b = -1;
    int next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const int c = is_printable(b) ? b : next++;
      to_char[static_cast<size_t>(b)] = static_cast<char16_t>(c);
      to_byte[static_cast<size_t>(c)] = static_cast<int16_t>(b);
    }
  }
};
constexpr Tables kTables;

}  // namespace

char32_t byte_to_char(uint8_t byte) { return kTables.to_char[byte]; }

int char_to_byte(char32_t c) { return c < kTables.to_byte.size() ? kTables.to_byte[c] : -1; }

void append_byte_alphabet(std::string_view bytes, std::string& out) {
  for (const char b : bytes) append_utf8(out, byte_to_char(static_cast<uint8_t>(b)));
}

void append_token_bytes(std::string_view token, std::string& out) {
  const size_t before = out.size();
  for (size_t i = 0, n = 0; i < token.size(); i += n) {
    const int byte = char_to_byte(decode_valid(token.data() + i, n));
    if (byte < 0) {
      out.resize(before);
      out.append(token);
      return;
    }
    out.push_back(static_cast<char>(byte));
  }
}

}  // namespace decant::text::bpe
