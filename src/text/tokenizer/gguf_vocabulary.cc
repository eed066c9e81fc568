#include "text/tokenizer/gguf_vocabulary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/log.h"
#include "text/tokenizer/component_json.h"
#include "text/tokenizer/gguf_pre_tokenizers.h"
#include "text/tokenizer/utf8.h"
#include "text/tokenizer/vocabulary.h"

namespace decant::text {
namespace {

constexpr size_t kMaxTokens = size_t{1} << 24;
constexpr size_t kMaxSplitToken = 256;  // longer tokens are not taken apart when merges are derived

enum TokenType : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4 };

using bpe::append_json_string;

/// The pieces of a tokenizer.json as they come together.
struct Parts {
  std::string normalizer = "null";
  std::string pre_tokenizer = "null";
  std::string decoder;
  std::string merges;
  std::string unk_token = "null";
  bool is_sentencepiece = false;
  bool ignore_merges = false;
  bool trim_offsets = false;
  bool add_bos = false;
  bool add_eos = false;
};

Status check(const GgufVocabulary& v) {
  if (v.tokens.empty()) return invalid_model("tokenizer.ggml.tokens is missing or empty");
  if (v.tokens.size() > kMaxTokens) return unsupported(fmt::format("{} tokens", v.tokens.size()));
  if (!v.token_types.empty() && v.token_types.size() != v.tokens.size()) {
    return invalid_model(fmt::format("tokenizer.ggml.token_type has {} entries for {} tokens",
                                     v.token_types.size(), v.tokens.size()));
  }
  for (size_t i = 0; i < v.tokens.size(); ++i) {
    if (!bpe::is_valid_utf8(v.tokens[i])) return invalid_model(fmt::format("token {} is not valid UTF-8", i));
  }
  for (const auto& merge : v.merges) {
    if (!bpe::is_valid_utf8(merge)) return invalid_model("a merge is not valid UTF-8");
  }
  const auto check_id = [&](std::string_view name, std::optional<int32_t> id) -> Status {
    if (id && (*id < 0 || static_cast<size_t>(*id) >= v.tokens.size())) {
      return invalid_model(
          fmt::format("tokenizer.ggml.{}_token_id is {}, with {} tokens", name, *id, v.tokens.size()));
    }
    return ok_status();
  };
  DECANT_RETURN_IF_ERROR(check_id("bos", v.bos_id));
  DECANT_RETURN_IF_ERROR(check_id("eos", v.eos_id));
  DECANT_RETURN_IF_ERROR(check_id("unknown", v.unk_id));
  DECANT_RETURN_IF_ERROR(check_id("padding", v.pad_id));
  return check_id("eot", v.eot_id);
}

std::string json_pairs(const std::vector<std::pair<std::string_view, std::string_view>>& merges) {
  std::string out = "[";
  for (const auto& [left, right] : merges) {
    out += out.size() > 1 ? ",[" : "[";
    append_json_string(left, out);
    out += ',';
    append_json_string(right, out);
    out += ']';
  }
  return out + "]";
}

/// Some converters keep merges whose tokens they dropped. Those can never apply, and are left out.
Result<std::string> merges_as_written(const GgufVocabulary& v) {
  bpe::Vocabulary tokens;
  tokens.reserve(v.tokens.size(), 8 * v.tokens.size());
  for (size_t i = 0; i < v.tokens.size(); ++i)
    DECANT_RETURN_IF_ERROR(tokens.add(v.tokens[i], static_cast<int64_t>(i)));
  const auto has = [&](std::string_view token) { return tokens.find(token) != bpe::kNoToken; };
  std::vector<std::pair<std::string_view, std::string_view>> merges;
  merges.reserve(v.merges.size());
  std::string joined;
  for (const std::string& line : v.merges) {
    const size_t blank = line.find(' ', 1);  // a left token may be a blank itself
    if (blank == std::string::npos)
      return invalid_model(fmt::format("merge '{}' should be two tokens and a blank", line));
    const std::string_view left = std::string_view(line).substr(0, blank);
    const std::string_view right = std::string_view(line).substr(blank + 1);
    joined.assign(left).append(right);
    if (has(left) && has(right) && has(joined)) merges.emplace_back(left, right);
  }
  if (merges.size() < v.merges.size()) {
    log(LogLevel::kWarning,
        fmt::format("{} of {} merges need tokens that the vocabulary lacks, and are left out",
                    v.merges.size() - merges.size(), v.merges.size()));
  }
  return json_pairs(merges);
}

/// SentencePiece keeps scores, not merges: every way to put a token together from two others is a merge, the
/// higher score first. Order of ties as in Transformers' converter, which is what published tokenizer.json
/// files come from.
Result<std::string> merges_from_scores(const GgufVocabulary& v) {
  if (v.scores.size() != v.tokens.size()) {
    return invalid_model(
        fmt::format("a 'llama' vocabulary needs merges or a score for each of its {} tokens, but has "
                    "{} scores",
                    v.tokens.size(), v.scores.size()));
  }
  std::unordered_map<std::string_view, int32_t> ids;
  ids.reserve(v.tokens.size());
  for (size_t i = 0; i < v.tokens.size(); ++i) ids[v.tokens[i]] = static_cast<int32_t>(i);
  struct Candidate {
    float score;
    size_t left_length, right_length;  // in characters
    int32_t left, right;
  };
  std::vector<Candidate> merges;
  std::vector<Candidate> local;
  for (size_t i = 0; i < v.tokens.size(); ++i) {
    const std::string_view token = v.tokens[i];
    if (token.size() > kMaxSplitToken) continue;
    local.clear();
    const auto characters = static_cast<size_t>(std::count_if(
        token.begin(), token.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
    size_t left_length = 0;
    for (size_t at = 0; at < token.size();) {
      at += bpe::utf8_length(token[at]);
      ++left_length;
      if (at >= token.size()) break;
      const auto left = ids.find(token.substr(0, at));
      if (left == ids.end()) continue;
      const auto right = ids.find(token.substr(at));
      if (right == ids.end()) continue;
      local.push_back({v.scores[i], left_length, characters - left_length, left->second, right->second});
    }
    std::sort(local.begin(), local.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.left, a.right) < std::tie(b.left, b.right);
    });
    merges.insert(merges.end(), local.begin(), local.end());
  }
  std::erase_if(merges, [](const Candidate& c) { return c.score != c.score; });
  std::stable_sort(merges.begin(), merges.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.score, a.left_length, a.right_length) >
           std::tie(b.score, b.left_length, b.right_length);
  });
  std::vector<std::pair<std::string_view, std::string_view>> texts;
  texts.reserve(merges.size());
  for (const Candidate& c : merges) {
    texts.emplace_back(v.tokens[static_cast<size_t>(c.left)], v.tokens[static_cast<size_t>(c.right)]);
  }
  return json_pairs(texts);
}

Status describe_byte_level(const GgufVocabulary& v, Parts& parts) {
  auto rule = bpe::find_gguf_pre_tokenizer(v.pre);
  if (!rule) {
    return unsupported(fmt::format("tokenizer.ggml.pre '{}' is unknown; known: {}", v.pre,
                                   fmt::join(known_gguf_pre_tokenizers(), ", ")));
  }
  parts.normalizer = rule->normalizer;
  parts.pre_tokenizer = std::move(rule->pre_tokenizer);
  parts.decoder = R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true})";
  parts.ignore_merges = rule->ignore_merges;
  parts.trim_offsets = rule->trim_offsets;
  parts.add_bos = v.add_bos.value_or(rule->add_bos);
  parts.add_eos = v.add_eos.value_or(false);
  DECANT_ASSIGN(parts.merges, merges_as_written(v));
  return ok_status();
}

Status describe_sentencepiece(const GgufVocabulary& v, Parts& parts) {
  const bool prefix = v.add_space_prefix.value_or(true);
  constexpr std::string_view kBlank = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})";
  parts.is_sentencepiece = true;
  parts.normalizer = fmt::format(R"({{"type":"Sequence","normalizers":[{}{}]}})",
                                 prefix ? R"({"type":"Prepend","prepend":"▁"},)" : "", kBlank);
  parts.decoder =
      fmt::format(R"({{"type":"Sequence","decoders":[{{"type":"Replace","pattern":{{"String":"▁"}},)"
                  R"("content":" "}},{{"type":"ByteFallback"}},{{"type":"Fuse"}}{}]}})",
                  prefix ? R"(,{"type":"Strip","content":" ","start":1,"stop":0})" : "");
  parts.add_bos = v.add_bos.value_or(true);
  parts.add_eos = v.add_eos.value_or(false);
  if (v.unk_id) {
    parts.unk_token.clear();
    append_json_string(v.tokens[static_cast<size_t>(*v.unk_id)], parts.unk_token);
  }
  if (v.merges.empty()) {
    DECANT_ASSIGN(parts.merges, merges_from_scores(v));
  } else {
    DECANT_ASSIGN(parts.merges, merges_as_written(v));
  }
  return ok_status();
}

std::string added_tokens(const GgufVocabulary& v) {
  std::string out = "[";
  for (size_t i = 0; i < v.token_types.size(); ++i) {
    const int32_t type = v.token_types[i];
    if ((type != kUnknown && type != kControl && type != kUserDefined) || v.tokens[i].empty()) continue;
    out += fmt::format(R"({}{{"id":{},"content":)", out.size() > 1 ? "," : "", i);
    append_json_string(v.tokens[i], out);
    out +=
        fmt::format(R"(,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":{}}})",
                    type != kUserDefined);
  }
  return out + "]";
}

Result<std::string> post_processor(const GgufVocabulary& v, const Parts& parts) {
  std::string single;
  std::string pair_tail;
  std::string specials;
  const auto add_special = [&](std::string_view name, std::optional<int32_t> id,
                               std::string& list) -> Status {
    if (!id)
      return invalid_model(fmt::format("tokenizer.ggml.add_{0}_token is set without a {0}_token_id", name));
    std::string text;
    append_json_string(v.tokens[static_cast<size_t>(*id)], text);
    list += fmt::format(R"({{"SpecialToken":{{"id":{},"type_id":0}}}},)", text);
    if (specials.find(text + ":") == std::string::npos) {
      specials += fmt::format(R"({}{}:{{"id":{},"ids":[{}],"tokens":[{}]}})", specials.empty() ? "" : ",",
                              text, text, *id, text);
    }
    return ok_status();
  };
  std::string before;
  std::string after;
  if (parts.add_bos) DECANT_RETURN_IF_ERROR(add_special("bos", v.bos_id, before));
  if (parts.add_eos) DECANT_RETURN_IF_ERROR(add_special("eos", v.eos_id, after));
  const std::string byte_level =
      fmt::format(R"({{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":{},"use_regex":true}})",
                  parts.trim_offsets);
  if (before.empty() && after.empty()) return parts.is_sentencepiece ? "null" : byte_level;
  const auto sequence = [&](std::string_view name, int type) {
    std::string list =
        before + fmt::format(R"({{"Sequence":{{"id":"{}","type_id":{}}}}},)", name, type) + after;
    list.pop_back();
    return list;
  };
  const std::string single_list = sequence("A", 0);
  const std::string text =
      fmt::format(R"({{"type":"TemplateProcessing","single":[{}],"pair":[{},{}],"special_tokens":{{{}}}}})",
                  single_list, single_list, sequence("B", 1), specials);
  if (parts.is_sentencepiece) return text;
  return fmt::format(R"({{"type":"Sequence","processors":[{},{}]}})", byte_level, text);
}

Result<std::string> assemble(const GgufVocabulary& v) {
  DECANT_RETURN_IF_ERROR(check(v));
  Parts parts;
  if (v.model == "gpt2") {
    DECANT_RETURN_IF_ERROR(describe_byte_level(v, parts));
  } else if (v.model == "llama") {
    DECANT_RETURN_IF_ERROR(describe_sentencepiece(v, parts));
  } else {
    return unsupported(
        fmt::format("tokenizer.ggml.model '{}' has no implementation; supported: gpt2, llama", v.model));
  }
  DECANT_ASSIGN(const std::string post, post_processor(v, parts));
  std::string out = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":)" + added_tokens(v);
  out += fmt::format(R"(,"normalizer":{},"pre_tokenizer":{},"post_processor":{},"decoder":{})",
                     parts.normalizer, parts.pre_tokenizer, post, parts.decoder);
  out += fmt::format(
      R"(,"model":{{"type":"BPE","dropout":null,"unk_token":{},"continuing_subword_prefix":null,)"
      R"("end_of_word_suffix":null,"fuse_unk":{},"byte_fallback":{},"ignore_merges":{},"vocab":{{)",
      parts.unk_token, parts.is_sentencepiece, parts.is_sentencepiece, parts.ignore_merges);
  for (size_t i = 0; i < v.tokens.size(); ++i) {
    if (i > 0) out += ',';
    append_json_string(v.tokens[i], out);
    out += fmt::format(":{}", i);
  }
  return out + "},\"merges\":" + parts.merges + "}}\n";
}

}  // namespace

Result<std::string> gguf_to_tokenizer_json(const GgufVocabulary& vocabulary, std::string_view origin) {
  auto json = assemble(vocabulary);
  if (!json.ok()) return std::move(json).status().with_context(origin);
  return json;
}

std::vector<std::string_view> known_gguf_pre_tokenizers() { return bpe::gguf_pre_tokenizer_names(); }

}  // namespace decant::text
