#include "app/gguf_source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "app/gguf_rope.h"
#include "formats/gguf/gguf_file.h"

namespace decant::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxSize = int64_t{1} << 31;

/// What Transformers calls the models of a GGUF architecture, with and without a sliding window.
struct Family {
  const char *gguf, *model_type, *class_name, *windowed_type, *windowed_class;
};
constexpr Family kFamilies[] = {
    {"llama", "llama", "LlamaForCausalLM", "mistral", "MistralForCausalLM"},
    {"qwen2", "qwen2", "Qwen2ForCausalLM", nullptr, nullptr},
    {"qwen3", "qwen3", "Qwen3ForCausalLM", nullptr, nullptr},
};

const Family* family_of(std::string_view architecture) {
  const auto* it = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                [&](const Family& family) { return architecture == family.gguf; });
  return it == std::end(kFamilies) ? nullptr : it;
}

/// What the config says about sizes, as read and checked.
struct Sizes {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t intermediate = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocabulary = 0;
  int64_t context = 0;
};

/// Reads keys of one architecture and names the file in errors.
class Source {
 public:
  Source(const gguf::GgufFile& file, std::string architecture)
      : file_(file), prefix_(std::move(architecture) + ".") {}

  const gguf::GgufFile& file() const { return file_; }
  std::string key(std::string_view name) const { return prefix_ + std::string(name); }
  bool has(std::string_view name) const { return file_.has(key(name)); }

  /// A size in [1, 2^31].
  Result<int64_t> size(std::string_view name) const {
    DECANT_ASSIGN(const uint64_t value, file_.get_u64(key(name)));
    if (value == 0 || value > static_cast<uint64_t>(kMaxSize)) {
      return error("metadata key '" + key(name) + "' is " + std::to_string(value));
    }
    return static_cast<int64_t>(value);
  }
  Result<int64_t> size(std::string_view name, int64_t fallback) const {
    return has(name) ? size(name) : fallback;
  }
  Result<double> number(std::string_view name, double fallback) const {
    return file_.get_f64(key(name), fallback);
  }

  Status error(const std::string& text) const { return invalid_model(file_.path() + ": " + text); }
  Status no_support(const std::string& text) const { return unsupported(file_.path() + ": " + text); }

  /// The tensor exists with these dims.
  Status expect(const std::string& name, const std::vector<int64_t>& dims) const {
    const gguf::Tensor* tensor = file_.find(name);
    if (tensor == nullptr) return error("there is no tensor '" + name + "'");
    if (tensor->dims == dims) return ok_status();
    return error("tensor '" + name + "' has the shape " + text_of(tensor->dims) + ", its metadata says " +
                 text_of(dims));
  }

 private:
  static std::string text_of(const std::vector<int64_t>& dims) {
    std::string text = "[";
    for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
    text += "]";
    return text;
  }

  const gguf::GgufFile& file_;
  std::string prefix_;
};

Result<Sizes> read_sizes(const Source& source) {
  Sizes sizes;
  DECANT_ASSIGN(sizes.layers, source.size("block_count"));
  DECANT_ASSIGN(sizes.hidden, source.size("embedding_length"));
  DECANT_ASSIGN(sizes.intermediate, source.size("feed_forward_length"));
  DECANT_ASSIGN(sizes.heads, source.size("attention.head_count"));
  DECANT_ASSIGN(sizes.kv_heads, source.size("attention.head_count_kv", sizes.heads));
  DECANT_ASSIGN(sizes.context, source.size("context_length"));
  if (sizes.heads % sizes.kv_heads != 0) {
    return source.error(std::to_string(sizes.heads) + " attention heads cannot share " +
                        std::to_string(sizes.kv_heads) + " key-value heads");
  }
  DECANT_ASSIGN(const int64_t rotary, source.size("rope.dimension_count", 0));
  const int64_t derived = rotary > 0 ? rotary : sizes.hidden / sizes.heads;
  DECANT_ASSIGN(sizes.head_dim, source.size("attention.key_length", derived));
  DECANT_ASSIGN(const int64_t value_dim, source.size("attention.value_length", sizes.head_dim));
  if (value_dim != sizes.head_dim) return source.no_support("keys and values of different lengths");
  if (rotary != 0 && rotary != sizes.head_dim) {
    return source.no_support("rotary embedding of " + std::to_string(rotary) + " of " +
                             std::to_string(sizes.head_dim) + " dimensions");
  }

  const gguf::Tensor* embedding = source.file().find("token_embd.weight");
  if (embedding == nullptr || embedding->dims.size() != 2)
    return source.error("there is no matrix 'token_embd.weight'");
  sizes.vocabulary = embedding->dims[0];
  DECANT_ASSIGN(const int64_t announced, source.size("vocab_size", sizes.vocabulary));
  if (announced != sizes.vocabulary) {
    return source.error("the vocabulary has " + std::to_string(announced) + " entries, 'token_embd.weight' " +
                        std::to_string(sizes.vocabulary) + " rows");
  }
  return sizes;
}

Status check_tensors(const Source& source, const Sizes& sizes) {
  DECANT_RETURN_IF_ERROR(source.expect("token_embd.weight", {sizes.vocabulary, sizes.hidden}));
  DECANT_RETURN_IF_ERROR(source.expect("blk.0.attn_q.weight", {sizes.heads * sizes.head_dim, sizes.hidden}));
  DECANT_RETURN_IF_ERROR(
      source.expect("blk.0.attn_k.weight", {sizes.kv_heads * sizes.head_dim, sizes.hidden}));
  DECANT_RETURN_IF_ERROR(source.expect("blk.0.ffn_up.weight", {sizes.intermediate, sizes.hidden}));
  const auto norm = [](int64_t layer) { return "blk." + std::to_string(layer) + ".attn_norm.weight"; };
  DECANT_RETURN_IF_ERROR(source.expect(norm(sizes.layers - 1), {sizes.hidden}));
  if (source.file().find(norm(sizes.layers)) != nullptr) {
    return source.error("there are more layers than the " + std::to_string(sizes.layers) +
                        " of its metadata");
  }
  return ok_status();
}

/// The rope_scaling object; null when there is no scaling.
Result<Json> read_rope_scaling(const Source& source, const Sizes& sizes, double theta) {
  std::optional<int64_t> trained;
  if (source.has("rope.scaling.original_context_length")) {
    DECANT_ASSIGN(trained, source.size("rope.scaling.original_context_length"));
  }
  if (const gguf::Tensor* tensor = source.file().find("rope_freqs.weight")) {
    if (tensor->encoding != Encoding::kDense || tensor->dtype != DType::kFloat32) {
      return source.no_support("'rope_freqs.weight' is not stored as float32");
    }
    DECANT_RETURN_IF_ERROR(source.expect("rope_freqs.weight", {sizes.head_dim / 2}));
    std::vector<float> divisors(tensor->bytes.size() / sizeof(float));
    std::memcpy(divisors.data(), tensor->bytes.data(), tensor->bytes.size());
    const auto rope = fit_llama3_rope(divisors, theta, trained);
    if (!rope) return source.no_support("'rope_freqs.weight' does not follow the llama3 formula");
    if (rope->factor == 1.0) return Json();
    return Json{{"rope_type", "llama3"},
                {"factor", rope->factor},
                {"low_freq_factor", rope->low_freq_factor},
                {"high_freq_factor", rope->high_freq_factor},
                {"original_max_position_embeddings", rope->original_max_position_embeddings}};
  }

  DECANT_ASSIGN(const double old_factor, source.number("rope.scale_linear", 1.0));
  DECANT_ASSIGN(const double factor, source.number("rope.scaling.factor", old_factor));
  DECANT_ASSIGN(const std::string_view type,
                source.file().get_string(source.key("rope.scaling.type"), factor == 1.0 ? "none" : "linear"));
  if (type == "none") return Json();
  if (!(factor > 0)) return source.error("its rope scaling factor is not above 0");
  if (type == "linear") {
    if (factor == 1.0) return Json();
    return Json{{"rope_type", "linear"}, {"factor", factor}};
  }
  if (type != "yarn") {
    return source.no_support("rope scaling type '" + std::string(type.substr(0, 40)) +
                             "'; known are none, linear, yarn and llama3 (as rope_freqs.weight)");
  }
  DECANT_ASSIGN(const double attention, source.number("rope.scaling.attn_factor", 1.0));
  if (attention != 1.0) return source.no_support("yarn rope scaling with an attention factor of its own");
  Json scaling{{"rope_type", "yarn"}, {"factor", factor}};
  if (trained) scaling["original_max_position_embeddings"] = *trained;
  for (const char* name : {"beta_fast", "beta_slow"}) {
    const std::string key = std::string("rope.scaling.yarn_") + name;
    if (!source.has(key)) continue;
    DECANT_ASSIGN(scaling[name], source.number(key, 0));
  }
  return scaling;
}

/// The dtype of the matrices where all are dense and of one kind; else what block encodings decode to.
std::string_view dtype_of(const gguf::GgufFile& file) {
  std::optional<DType> common;
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (tensor.dims.size() < 2) continue;
    if (tensor.encoding != Encoding::kDense || !is_float(tensor.dtype) ||
        common.value_or(tensor.dtype) != tensor.dtype) {
      return "float32";
    }
    common = tensor.dtype;
  }
  return to_string(common.value_or(DType::kFloat32));
}

/// A token id of the metadata that is inside the vocabulary; absent otherwise.
Result<std::optional<int64_t>> token_id(const gguf::GgufFile& file, const char* name) {
  const std::string key = std::string("tokenizer.ggml.") + name;
  if (!file.has(key)) return std::optional<int64_t>();
  DECANT_ASSIGN(const int64_t id, file.get_i64(key));
  const gguf::Tensor* embedding = file.find("token_embd.weight");
  const bool inside = id >= 0 && (embedding == nullptr || embedding->dims.empty() || id < embedding->dims[0]);
  return inside ? std::optional<int64_t>(id) : std::nullopt;
}

/// Adds bos_token_id, eos_token_id (a number, or a list where there are several) and pad_token_id.
Status add_token_ids(const gguf::GgufFile& file, const std::vector<const char*>& end_names, Json& json) {
  DECANT_ASSIGN(const auto bos, token_id(file, "bos_token_id"));
  DECANT_ASSIGN(const auto pad, token_id(file, "padding_token_id"));
  std::vector<int64_t> ends;
  for (const char* name : end_names) {
    DECANT_ASSIGN(const auto id, token_id(file, name));
    if (id && std::find(ends.begin(), ends.end(), *id) == ends.end()) ends.push_back(*id);
  }
  json["bos_token_id"] = bos ? Json(*bos) : Json();
  json["eos_token_id"] = ends.size() > 1 ? Json(ends) : ends.size() == 1 ? Json(ends[0]) : Json();
  if (pad) json["pad_token_id"] = *pad;
  return ok_status();
}

Result<std::string> dump(const Json& json, const gguf::GgufFile& file) {
  try {
    return json.dump(2) + "\n";
  } catch (const std::exception& e) {
    return invalid_model(file.path() + ": its metadata is not valid UTF-8: " + e.what());
  }
}

}  // namespace

Result<std::string> hf_config_from_gguf(const gguf::GgufFile& file) {
  DECANT_ASSIGN(const std::string_view architecture, file.get_string("general.architecture"));
  const Family* const family = family_of(architecture);
  if (!family) {
    return unsupported(file.path() + ": architecture '" + std::string(architecture.substr(0, 40)) +
                       "' has no mapping to a config; known are llama, qwen2, qwen3");
  }
  const Source source(file, std::string(architecture));
  DECANT_ASSIGN(const uint64_t experts, file.get_u64(source.key("expert_count"), 0));
  if (experts > 0) return source.no_support("a mixture of " + std::to_string(experts) + " experts");
  DECANT_ASSIGN(const Sizes sizes, read_sizes(source));
  DECANT_RETURN_IF_ERROR(check_tensors(source, sizes));
  DECANT_ASSIGN(const double epsilon, file.get_f64(source.key("attention.layer_norm_rms_epsilon")));
  DECANT_ASSIGN(const double theta, source.number("rope.freq_base", 10000.0));
  if (!(theta > 0) || !(epsilon >= 0)) return source.error("its rope base or norm epsilon is negative");
  DECANT_ASSIGN(const uint64_t window, file.get_u64(source.key("attention.sliding_window"), 0));
  DECANT_ASSIGN(const Json scaling, read_rope_scaling(source, sizes, theta));

  Json json;
  if (window > 0 && family->windowed_type == nullptr)
    return source.no_support("a sliding window in the architecture '" + std::string(architecture) + "'");
  json["architectures"] = Json::array({window > 0 ? family->windowed_class : family->class_name});
  json["model_type"] = window > 0 ? family->windowed_type : family->model_type;
  json["hidden_size"] = sizes.hidden;
  json["intermediate_size"] = sizes.intermediate;
  json["num_hidden_layers"] = sizes.layers;
  json["num_attention_heads"] = sizes.heads;
  json["num_key_value_heads"] = sizes.kv_heads;
  json["head_dim"] = sizes.head_dim;
  json["hidden_act"] = "silu";
  json["vocab_size"] = sizes.vocabulary;
  json["max_position_embeddings"] = sizes.context;
  json["rms_norm_eps"] = epsilon;
  json["rope_theta"] = theta;
  json["rope_scaling"] = scaling;
  if (window > 0) json["sliding_window"] = window;
  json["attention_bias"] = file.find("blk.0.attn_q.bias") != nullptr;
  json["mlp_bias"] = file.find("blk.0.ffn_up.bias") != nullptr;
  json["tie_word_embeddings"] = file.find("output.weight") == nullptr;
  json["use_cache"] = true;
  DECANT_RETURN_IF_ERROR(add_token_ids(file, {"eos_token_id"}, json));
  json["torch_dtype"] = dtype_of(file);
  return dump(json, file);
}

Result<std::string> hf_generation_config_from_gguf(const gguf::GgufFile& file) {
  Json json = Json::object();
  DECANT_RETURN_IF_ERROR(add_token_ids(file, {"eos_token_id", "eot_token_id", "eom_token_id"}, json));
  return dump(json, file);
}

}  // namespace decant::app
