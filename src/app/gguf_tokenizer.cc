#include "app/gguf_tokenizer.h"

#include <nlohmann/json.hpp>

#include "formats/gguf/gguf_file.h"
#include "text/tokenizer/gguf_vocabulary.h"

namespace decant::app {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";

Status read_id(const gguf::GgufFile& file, const char* key, size_t limit, std::optional<int32_t>& out) {
  const std::string name = std::string("tokenizer.ggml.") + key;
  if (!file.has(name)) return ok_status();
  DECANT_ASSIGN(const int64_t id, file.get_i64(name));
  // Converters write -1 or 2^32 - 1 for "none".
  if (id == -1 || id == 0xffffffff) return ok_status();
  if (id < 0 || static_cast<uint64_t>(id) >= limit) {
    return invalid_model(file.path() + ": " + name + " is " + std::to_string(id) + ", the vocabulary has " +
                         std::to_string(limit) + " tokens");
  }
  out = static_cast<int32_t>(id);
  return ok_status();
}

Status read_flag(const gguf::GgufFile& file, const char* key, std::optional<bool>& out) {
  const std::string name = std::string("tokenizer.ggml.") + key;
  if (!file.has(name)) return ok_status();
  DECANT_ASSIGN(out, file.get_bool(name));
  return ok_status();
}

Result<std::vector<std::string>> read_strings(const gguf::GgufFile& file, const std::string& key) {
  DECANT_ASSIGN(const std::vector<std::string_view> views, file.get_strings(key));
  return std::vector<std::string>(views.begin(), views.end());
}

}  // namespace

Result<text::GgufVocabulary> gguf_vocabulary(const gguf::GgufFile& file) {
  text::GgufVocabulary v;
  DECANT_ASSIGN(const std::string_view model, file.get_string("tokenizer.ggml.model"));
  DECANT_ASSIGN(const std::string_view pre, file.get_string("tokenizer.ggml.pre", ""));
  v.model = model;
  v.pre = pre;
  DECANT_ASSIGN(v.tokens, read_strings(file, kTokens));
  if (file.has("tokenizer.ggml.merges")) {
    DECANT_ASSIGN(v.merges, read_strings(file, "tokenizer.ggml.merges"));
  }
  if (file.has("tokenizer.ggml.scores")) {
    DECANT_ASSIGN(v.scores, file.get_floats("tokenizer.ggml.scores"));
  }
  if (file.has("tokenizer.ggml.token_type")) {
    DECANT_ASSIGN(const std::vector<int64_t> types, file.get_ints("tokenizer.ggml.token_type"));
    v.token_types.assign(types.begin(), types.end());
  }
  const size_t n = v.tokens.size();
  DECANT_RETURN_IF_ERROR(read_id(file, "bos_token_id", n, v.bos_id));
  DECANT_RETURN_IF_ERROR(read_id(file, "eos_token_id", n, v.eos_id));
  DECANT_RETURN_IF_ERROR(read_id(file, "unknown_token_id", n, v.unk_id));
  DECANT_RETURN_IF_ERROR(read_id(file, "padding_token_id", n, v.pad_id));
  DECANT_RETURN_IF_ERROR(read_id(file, "eot_token_id", n, v.eot_id));
  DECANT_RETURN_IF_ERROR(read_flag(file, "add_bos_token", v.add_bos));
  DECANT_RETURN_IF_ERROR(read_flag(file, "add_eos_token", v.add_eos));
  DECANT_RETURN_IF_ERROR(read_flag(file, "add_space_prefix", v.add_space_prefix));
  return v;
}

Result<std::string> tokenizer_config_from_gguf(const gguf::GgufFile& file, const text::GgufVocabulary& v) {
  nlohmann::ordered_json json;
  auto token = [&](const char* key, std::optional<int32_t> id) {
    if (id) json[key] = v.tokens[static_cast<size_t>(*id)];
  };
  if (v.add_bos) json["add_bos_token"] = *v.add_bos;
  if (v.add_eos) json["add_eos_token"] = *v.add_eos;
  token("bos_token", v.bos_id);
  if (file.has("tokenizer.chat_template")) {
    DECANT_ASSIGN(const std::string_view chat_template, file.get_string("tokenizer.chat_template"));
    json["chat_template"] = std::string(chat_template);
  }
  json["clean_up_tokenization_spaces"] = false;
  token("eos_token", v.eos_id);
  token("pad_token", v.pad_id);
  json["tokenizer_class"] = "PreTrainedTokenizerFast";
  token("unk_token", v.unk_id);
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace decant::app
