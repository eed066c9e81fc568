#include <string_view>

#include "text/tokenizer/tokenizer.h"

// The first byte cuts the input in two: a tokenizer.json, and a text to encode and decode with it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t text_bytes = data[0] < all.size() ? data[0] : all.size();
  const std::string_view text = all.substr(all.size() - text_bytes);
  const auto tokenizer =
      decant::text::Tokenizer::from_json(all.substr(0, all.size() - text_bytes), "tokenizer.json");
  if (!tokenizer.ok()) return 0;
  for (const std::string_view sample : {text, std::string_view("The 3 cats\xE2\x80\x99 toys, etc.")}) {
    const auto encoding = tokenizer->encode(sample);
    if (encoding.ok()) (void)tokenizer->decode(encoding->ids);
  }
  return 0;
}
