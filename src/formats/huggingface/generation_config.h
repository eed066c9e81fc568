#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace decant::huggingface {

/// generation_config.json. An absent (or null) field keeps no value: the caller's default applies.
struct GenerationConfig {
  std::vector<int64_t> eos_token_ids;  ///< `eos_token_id`: one or a list
  std::optional<int64_t> bos_token_id;
  std::optional<int64_t> pad_token_id;
  std::optional<bool> do_sample;
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<int64_t> max_length;
  std::optional<int64_t> max_new_tokens;
  std::string json;  ///< the text it came from; empty when there was no file

  static Result<GenerationConfig> parse(std::string json, const std::string& source);
  /// Reads `folder`/generation_config.json; without that file, the token ids of `folder`/config.json if there
  /// is one, else an empty config.
  static Result<GenerationConfig> load(const std::string& folder);
};

}  // namespace decant::huggingface
