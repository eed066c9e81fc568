#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
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
  /// Encoder-decoder models: what the decoder starts with, and what must (position, id) or must not follow.
  std::optional<int64_t> decoder_start_token_id;
  std::optional<int64_t> forced_bos_token_id;
  std::vector<std::pair<int64_t, int64_t>> forced_decoder_ids;  ///< entries without an id (null) are left out
  std::vector<int64_t> suppress_tokens;
  std::vector<int64_t> begin_suppress_tokens;
  std::string json;  ///< the text it came from; empty when there was no file

  static Result<GenerationConfig> parse(std::string json, const std::string& source);
  /// Reads `folder`/generation_config.json; without that file, the ids (of tokens, forced and suppressed
  /// ones) of `folder`/config.json if there is one, else an empty config. decoder_start_token_id and
  /// forced_bos_token_id come from config.json too where generation_config.json leaves them out.
  static Result<GenerationConfig> load(const std::string& folder);
};

}  // namespace decant::huggingface
