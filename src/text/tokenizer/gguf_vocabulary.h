#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace decant::text {

/// The tokenizer.ggml.* metadata of a GGUF file, as it stands there.
struct GgufVocabulary {
  std::string model;                ///< "gpt2" (byte-level BPE) or "llama" (SentencePiece BPE)
  std::string pre;                  ///< name of the pre-tokenizer; empty when the file has none
  std::vector<std::string> tokens;  ///< by id
  std::vector<std::string> merges;  ///< "left right", best first; may be empty for "llama"
  std::vector<float> scores;        ///< by id; needed for "llama" without merges
  std::vector<int32_t>
      token_types;  ///< by id: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
  std::optional<int32_t> bos_id, eos_id, unk_id, pad_id, eot_id;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

/// The tokenizer.json that describes the same tokenizer. Control and user-defined tokens become added tokens.
/// Fails for an unknown model or `pre` (the message lists the known ones) and for ids out of range.
Result<std::string> gguf_to_tokenizer_json(const GgufVocabulary& vocabulary, std::string_view origin);

/// The names of pre-tokenizers that gguf_to_tokenizer_json knows, for messages and documentation.
std::vector<std::string_view> known_gguf_pre_tokenizers();

}  // namespace decant::text
