#include <fmt/format.h>
#include <simdjson.h>

#include <utility>

#include "text/tokenizer/component_json.h"
#include "text/tokenizer/gguf_vocabulary.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_impl.h"

namespace decant::text {
namespace {

using bpe::BpeModel;
using bpe::Vocabulary;
using simdjson::dom::element;

constexpr size_t kMaxFile = size_t{1} << 30;

std::string_view text_field(const element& e, std::string_view key) {
  std::string_view value;
  return e[key].get(value) == simdjson::SUCCESS ? value : std::string_view();
}

bool flag_field(const element& e, std::string_view key) {
  bool value = false;
  return e[key].get(value) == simdjson::SUCCESS && value;
}

/// A missing section reads as null.
element section_of(const element& root, std::string_view key, const element& null_element) {
  element section;
  return root[key].get(section) == simdjson::SUCCESS ? section : null_element;
}

Result<Vocabulary> read_vocabulary(const element& model) {
  simdjson::dom::object tokens;
  if (model["vocab"].get(tokens) != simdjson::SUCCESS)
    return invalid_model("model: 'vocab' should be an object");
  size_t count = 0;
  size_t bytes = 0;
  for (const auto field : tokens) {
    ++count;
    bytes += field.key.size();
  }
  Vocabulary vocabulary;
  vocabulary.reserve(count, bytes);
  for (const auto field : tokens) {
    int64_t id = 0;
    if (field.value.get(id) != simdjson::SUCCESS) {
      return invalid_model(fmt::format("model: id of token '{}' should be an integer", field.key));
    }
    if (Status s = vocabulary.add(field.key, id); !s.ok()) return std::move(s).with_context("model");
  }
  return vocabulary;
}

/// Merges are "left right", or [left, right] in newer files (tokens may then hold blanks).
Result<std::vector<BpeModel::MergeText>> read_merges(const element& model) {
  simdjson::dom::array items;
  if (model["merges"].get(items) != simdjson::SUCCESS)
    return invalid_model("model: 'merges' should be an array");
  std::vector<BpeModel::MergeText> merges;
  merges.reserve(items.size());
  for (const element item : items) {
    std::string_view line;
    if (item.get(line) == simdjson::SUCCESS) {
      if (line.starts_with("#version")) continue;
      const size_t blank = line.find(' ');
      if (blank == std::string_view::npos || line.find(' ', blank + 1) != std::string_view::npos) {
        return invalid_model(fmt::format("model: merge '{}' should be two tokens and a blank", line));
      }
      merges.push_back({line.substr(0, blank), line.substr(blank + 1)});
      continue;
    }
    simdjson::dom::array pair;
    std::string_view left;
    std::string_view right;
    if (item.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
        pair.at(0).get(left) != simdjson::SUCCESS || pair.at(1).get(right) != simdjson::SUCCESS) {
      return invalid_model(fmt::format("model: merge {} should be a string or two strings", merges.size()));
    }
    merges.push_back({left, right});
  }
  return merges;
}

Result<BpeModel> read_model(const element& root) {
  element model;
  if (root["model"].get(model) != simdjson::SUCCESS) return invalid_model("there is no 'model' section");
  const std::string_view type = text_field(model, "type");
  if (!type.empty() && type != "BPE") {
    return unsupported(fmt::format("model type '{}' has no implementation; supported: BPE", type));
  }
  DECANT_ASSIGN(Vocabulary vocabulary, read_vocabulary(model));
  DECANT_ASSIGN(std::vector<BpeModel::MergeText> merges, read_merges(model));
  BpeModel::Options options;
  options.unk_token = text_field(model, "unk_token");
  options.continuing_subword_prefix = text_field(model, "continuing_subword_prefix");
  options.end_of_word_suffix = text_field(model, "end_of_word_suffix");
  options.fuse_unk = flag_field(model, "fuse_unk");
  options.byte_fallback = flag_field(model, "byte_fallback");
  options.ignore_merges = flag_field(model, "ignore_merges");
  auto built = BpeModel::create(std::move(vocabulary), merges, std::move(options));
  return built.ok() ? std::move(built) : std::move(built).status().with_context("model");
}

Result<std::vector<AddedToken>> read_added_tokens(const element& root) {
  std::vector<AddedToken> tokens;
  simdjson::dom::array items;
  if (root["added_tokens"].get(items) != simdjson::SUCCESS) return tokens;
  for (const element item : items) {
    std::string_view content;
    if (item["content"].get(content) != simdjson::SUCCESS) {
      return invalid_model(fmt::format("added token {} has no 'content'", tokens.size()));
    }
    AddedToken t;
    t.content = content;
    t.single_word = flag_field(item, "single_word");
    t.lstrip = flag_field(item, "lstrip");
    t.rstrip = flag_field(item, "rstrip");
    t.normalized = flag_field(item, "normalized");
    t.special = flag_field(item, "special");
    tokens.push_back(std::move(t));
  }
  return tokens;
}

void append_token_entry(const AddedToken& t, std::string& out) {
  out += fmt::format("{{\"id\":{},\"content\":", t.id);
  bpe::append_json_string(t.content, out);
  out += fmt::format(",\"single_word\":{},\"lstrip\":{},\"rstrip\":{},\"normalized\":{},\"special\":{}}}",
                     t.single_word, t.lstrip, t.rstrip, t.normalized, t.special);
}

void append_model(const BpeModel& model, std::string& out) {
  const auto text_or_null = [&](std::string_view key, const std::string& value) {
    out += fmt::format(",\"{}\":", key);
    if (value.empty()) {
      out += "null";
    } else {
      bpe::append_json_string(value, out);
    }
  };
  const BpeModel::Options& o = model.options();
  out += "{\"type\":\"BPE\",\"dropout\":null";
  text_or_null("unk_token", o.unk_token);
  text_or_null("continuing_subword_prefix", o.continuing_subword_prefix);
  text_or_null("end_of_word_suffix", o.end_of_word_suffix);
  out += fmt::format(",\"fuse_unk\":{},\"byte_fallback\":{},\"ignore_merges\":{},\"vocab\":{{", o.fuse_unk,
                     o.byte_fallback, o.ignore_merges);
  const Vocabulary& v = model.vocabulary();
  bool first = true;
  for (size_t i = 0; i < v.id_limit(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (!v.contains(id)) continue;
    if (!first) out += ',';
    first = false;
    bpe::append_json_string(v.token(id), out);
    out += fmt::format(":{}", id);
  }
  out += "},\"merges\":[";
  first = true;
  for (const auto& [left, right] : model.merges()) {
    out += first ? "[" : ",[";
    first = false;
    bpe::append_json_string(v.token(left), out);
    out += ',';
    bpe::append_json_string(v.token(right), out);
    out += ']';
  }
  out += "]}";
}

Result<std::shared_ptr<Tokenizer::Impl>> build(const element& root) {
  simdjson::dom::parser null_parser;
  element null_element;
  if (null_parser.parse(std::string_view("null")).get(null_element) != simdjson::SUCCESS) {
    return internal_error("simdjson cannot read null");
  }
  const element normalizer = section_of(root, "normalizer", null_element);
  const element pre_tokenizer = section_of(root, "pre_tokenizer", null_element);
  const element post_processor = section_of(root, "post_processor", null_element);
  const element decoder = section_of(root, "decoder", null_element);

  DECANT_ASSIGN(auto normalizer_steps, bpe::read_normalizer(normalizer));
  DECANT_ASSIGN(auto pre_tokenizer_steps, bpe::read_pre_tokenizer(pre_tokenizer));
  DECANT_ASSIGN(auto post, bpe::read_post_processor(post_processor));
  DECANT_ASSIGN(auto decoder_steps, bpe::read_decoder(decoder));
  DECANT_ASSIGN(BpeModel model, read_model(root));
  DECANT_ASSIGN(std::vector<AddedToken> tokens, read_added_tokens(root));

  bpe::Normalizer built_normalizer(std::move(normalizer_steps));
  DECANT_ASSIGN(bpe::AddedTokens added,
                bpe::AddedTokens::create(std::move(tokens), model.vocabulary(), built_normalizer));

  const bool on_bytes = !pre_tokenizer_steps.empty() &&
                        pre_tokenizer_steps.back().kind == bpe::PreTokenizerStep::kByteLevel &&
                        model.can_work_on_bytes();
  model.set_on_bytes(on_bytes);
  auto impl = std::make_shared<Tokenizer::Impl>(std::move(model), std::move(added));
  impl->normalizer = std::move(built_normalizer);
  impl->pre_tokenizer = bpe::PreTokenizer(std::move(pre_tokenizer_steps), on_bytes);
  impl->post_processor = std::move(post);
  impl->decoder = bpe::Decoder(std::move(decoder_steps));
  impl->sections = {simdjson::minify(normalizer), simdjson::minify(pre_tokenizer),
                    simdjson::minify(post_processor), simdjson::minify(decoder)};
  const int32_t unk = impl->model.vocabulary().find(impl->model.options().unk_token);
  if (unk != bpe::kNoToken && !impl->model.options().unk_token.empty()) impl->special_ids.unk = unk;
  int64_t pad = 0;
  if (root["padding"]["pad_id"].get(pad) == simdjson::SUCCESS && pad >= 0 && pad <= INT32_MAX) {
    impl->special_ids.pad = static_cast<int32_t>(pad);
  }
  return impl;
}

}  // namespace

Result<Tokenizer> Tokenizer::from_json(std::string_view json, std::string_view origin) {
  if (json.size() > kMaxFile)
    return unsupported(fmt::format("{}: {} bytes (at most 1 GB is read)", origin, json.size()));
  simdjson::dom::parser parser;
  element root;
  if (const auto error = parser.parse(json.data(), json.size()).get(root); error != simdjson::SUCCESS) {
    return invalid_model(fmt::format("{}: not valid JSON: {}", origin, simdjson::error_message(error)));
  }
  if (!root.is_object())
    return invalid_model(fmt::format("{}: a tokenizer.json should be a JSON object", origin));
  auto impl = build(root);
  if (!impl.ok()) return std::move(impl).status().with_context(origin);
  return Tokenizer(*std::move(impl));
}

Result<Tokenizer> Tokenizer::from_gguf(const GgufVocabulary& vocabulary, std::string_view origin) {
  DECANT_ASSIGN(const std::string json, gguf_to_tokenizer_json(vocabulary, origin));
  DECANT_ASSIGN(Tokenizer tokenizer, from_json(json, origin));
  SpecialTokenIds ids = tokenizer.special_ids();
  ids.bos = vocabulary.bos_id;
  ids.eos = vocabulary.eos_id;
  ids.pad = vocabulary.pad_id;
  ids.eot = vocabulary.eot_id;
  if (vocabulary.unk_id) ids.unk = vocabulary.unk_id;
  tokenizer.set_special_ids(ids);
  return tokenizer;
}

std::string Tokenizer::to_json() const {
  std::string out = "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[";
  bool first = true;
  for (const AddedToken& t : impl_->added.all()) {
    if (!first) out += ',';
    first = false;
    append_token_entry(t, out);
  }
  const Impl::Sections& s = impl_->sections;
  out +=
      fmt::format("],\"normalizer\":{},\"pre_tokenizer\":{},\"post_processor\":{},\"decoder\":{},\"model\":",
                  s.normalizer, s.pre_tokenizer, s.post_processor, s.decoder);
  append_model(impl_->model, out);
  out += "}\n";
  return out;
}

}  // namespace decant::text
