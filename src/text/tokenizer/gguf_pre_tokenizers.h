#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace decant::text::bpe {

/// What a GGUF file's `tokenizer.ggml.pre` name stands for, in the terms of tokenizer.json.
struct GgufPreTokenizer {
  std::string pre_tokenizer;    ///< JSON of the section
  std::string_view normalizer;  ///< JSON of the section
  bool ignore_merges = false;
  bool trim_offsets = false;
  bool add_bos = false;  ///< when the file does not say
};

/// Nullopt for an unknown name. An empty name (files from before there was one) reads as GPT-2's.
std::optional<GgufPreTokenizer> find_gguf_pre_tokenizer(std::string_view name);
std::vector<std::string_view> gguf_pre_tokenizer_names();

}  // namespace decant::text::bpe
