#include "text/tokenizer/gguf_pre_tokenizers.h"

#include <array>
#include <utility>

#include "text/tokenizer/component_json.h"
#include "text/tokenizer/known_patterns.h"

namespace decant::text::bpe {
namespace {

enum class Rule {
  kGpt2,        // GPT-2's pattern
  kDigitsGpt2,  // digits one by one, then GPT-2's pattern
  kDigitsGpt2Nfc,
  kLlama3,
  kCl100k,  // Llama 3's pattern, merges always applied
  kQwen2,
  kQwen2Nfc,
  kO200k,
  kTekken,
  kDeepseekCoder,
  kDeepseekV3,
  kFalcon,
  kDefault,  // what llama.cpp applies under the name "default"
};

constexpr std::array kNames = {
    std::pair<std::string_view, Rule>{"gpt-2", Rule::kGpt2},
    std::pair<std::string_view, Rule>{"phi-2", Rule::kGpt2},
    std::pair<std::string_view, Rule>{"mpt", Rule::kGpt2},
    std::pair<std::string_view, Rule>{"olmo", Rule::kGpt2},
    std::pair<std::string_view, Rule>{"jina-es", Rule::kGpt2},
    std::pair<std::string_view, Rule>{"jina-de", Rule::kGpt2},
    std::pair<std::string_view, Rule>{"roberta-bpe", Rule::kGpt2},
    std::pair<std::string_view, Rule>{"smollm", Rule::kDigitsGpt2},
    std::pair<std::string_view, Rule>{"starcoder", Rule::kDigitsGpt2},
    std::pair<std::string_view, Rule>{"refact", Rule::kDigitsGpt2},
    std::pair<std::string_view, Rule>{"codeshell", Rule::kDigitsGpt2},
    std::pair<std::string_view, Rule>{"command-r", Rule::kDigitsGpt2Nfc},
    std::pair<std::string_view, Rule>{"llama-bpe", Rule::kLlama3},
    std::pair<std::string_view, Rule>{"llama3", Rule::kLlama3},
    std::pair<std::string_view, Rule>{"llama-v3", Rule::kLlama3},
    std::pair<std::string_view, Rule>{"dbrx", Rule::kCl100k},
    std::pair<std::string_view, Rule>{"smaug-bpe", Rule::kCl100k},
    std::pair<std::string_view, Rule>{"qwen2", Rule::kQwen2Nfc},
    std::pair<std::string_view, Rule>{"deepseek-r1-qwen", Rule::kQwen2Nfc},
    std::pair<std::string_view, Rule>{"stablelm2", Rule::kQwen2},
    std::pair<std::string_view, Rule>{"gpt-4o", Rule::kO200k},
    std::pair<std::string_view, Rule>{"llama4", Rule::kO200k},
    std::pair<std::string_view, Rule>{"tekken", Rule::kTekken},
    std::pair<std::string_view, Rule>{"deepseek-coder", Rule::kDeepseekCoder},
    std::pair<std::string_view, Rule>{"deepseek-v3", Rule::kDeepseekV3},
    std::pair<std::string_view, Rule>{"falcon", Rule::kFalcon},
    std::pair<std::string_view, Rule>{"default", Rule::kDefault},
};

std::string split(std::string_view regex) {
  std::string out = R"({"type":"Split","pattern":{"Regex":)";
  append_json_string(regex, out);
  return out + R"(},"behavior":"Isolated","invert":false})";
}

std::string byte_level(bool use_regex) {
  return std::string(R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":)") +
         (use_regex ? "true}" : "false}");
}

std::string digits(bool individual) {
  return std::string(R"({"type":"Digits","individual_digits":)") + (individual ? "true}" : "false}");
}

std::string sequence(std::initializer_list<std::string> steps) {
  std::string out = R"({"type":"Sequence","pretokenizers":[)";
  bool first = true;
  for (const std::string& s : steps) {
    if (!first) out += ',';
    first = false;
    out += s;
  }
  return out + "]}";
}

std::string known(KnownPattern pattern) {
  return sequence({split(pattern_text(pattern)), byte_level(false)});
}

constexpr std::string_view kNfc = R"({"type":"NFC"})";
constexpr std::string_view kNone = "null";

GgufPreTokenizer describe(Rule rule) {
  switch (rule) {
    case Rule::kGpt2:
      return {byte_level(true), kNone, false, true};
    case Rule::kDigitsGpt2:
      return {sequence({digits(true), byte_level(true)}), kNone, false, true};
    case Rule::kDigitsGpt2Nfc:
      return {sequence({digits(true), byte_level(true)}), kNfc, false, true};
    case Rule::kLlama3:
      return {known(KnownPattern::kCl100k), kNone, true, false, true};
    case Rule::kCl100k:
      return {known(KnownPattern::kCl100k), kNone};
    case Rule::kQwen2:
      return {known(KnownPattern::kQwen2), kNone};
    case Rule::kQwen2Nfc:
      return {known(KnownPattern::kQwen2), kNfc};
    case Rule::kO200k:
      return {known(KnownPattern::kO200k), kNone, true};
    case Rule::kTekken:
      return {known(KnownPattern::kTekken), kNone, true, false, true};
    case Rule::kDeepseekCoder:
      return {sequence({split("[\r\n]"), split(R"(\s?\p{L}+)"), split(R"(\s?\p{P}+)"),
                        split("[一-龥ࠀ-一가-퟿]+"), digits(true), byte_level(false)}),
              kNone, false, true};
    case Rule::kDeepseekV3:
      return {sequence({split(R"(\p{N}{1,3})"), split("[一-龥぀-ゟ゠-ヿ]+"),
                        split("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
                              "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
                              "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"),
                        byte_level(false)}),
              kNone};
    case Rule::kFalcon:
      return {sequence({R"({"type":"Punctuation","behavior":"Contiguous"})", byte_level(true), digits(false),
                        split("[0-9][0-9][0-9]")}),
              kNone, false, true};
    case Rule::kDefault:
      return {sequence({split(R"([\p{P}\$\+<=>\^~\|]+)"),
                        split(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))"),
                        split(R"(\p{N}+)"), split("[0-9][0-9][0-9]"), byte_level(false)}),
              kNone, false, true};
  }
  return {};
}

}  // namespace

std::optional<GgufPreTokenizer> find_gguf_pre_tokenizer(std::string_view name) {
  if (name.empty()) return describe(Rule::kGpt2);
  for (const auto& [known_name, rule] : kNames) {
    if (known_name == name) return describe(rule);
  }
  return std::nullopt;
}

std::vector<std::string_view> gguf_pre_tokenizer_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, rule] : kNames) names.push_back(name);
  return names;
}

}  // namespace decant::text::bpe
