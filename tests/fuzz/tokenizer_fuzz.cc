// A tokenizer.json, a zero byte, a text: loads the one, encodes the other, decodes the ids. Input without a
// zero byte is taken as a text for a fixed tokenizer.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/tokenizer/tokenizer.h"

namespace {

using decant::text::DecodeStream;
using decant::text::EncodeOptions;
using decant::text::Tokenizer;

constexpr std::string_view kFixed =
    R"({"added_tokens":[{"id":9,"content":"ab","lstrip":true,"normalized":true,
  "special":true}],"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Lowercase"}]},
  "pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},
  {"type":"ByteLevel","add_prefix_space":true,"use_regex":true}]},
  "post_processor":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true},"decoder":{"type":"ByteLevel"},
  "model":{"type":"BPE","vocab":{"a":0,"b":1,"Ġ":2,"Ġa":3,"aa":4,"Ã":5,"Ã¢":6},"merges":["a a","Ġ a"]}})";

void check(bool ok) {
  if (!ok) std::abort();
}

void exercise(const Tokenizer& tokenizer, std::string_view text) {
  auto encoding = tokenizer.encode(text, EncodeOptions{.add_special = true, .offsets = true});
  auto ids = tokenizer.encode(text, true);
  check(encoding.ok() == ids.ok());
  if (!ids.ok()) return;
  check(encoding->ids == *ids && encoding->offsets.size() == ids->size());
  DecodeStream stream(tokenizer, false);
  for (const int32_t id : *ids) stream.push(id);
  stream.flush();
  tokenizer.decode(*ids, true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\0');
  if (cut == std::string_view::npos) {
    static const auto fixed = Tokenizer::from_json(kFixed, "fixed");
    check(fixed.ok());
    exercise(*fixed, input);
    return 0;
  }
  auto tokenizer = Tokenizer::from_json(input.substr(0, cut), "fuzz");
  if (!tokenizer.ok()) return 0;
  exercise(*tokenizer, input.substr(cut + 1, 4096));
  auto again = Tokenizer::from_json(tokenizer->to_json(), "again");
  check(again.ok());
  return 0;
}
