#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace decant::huggingface {

/// tokenizer_config.json and the chat templates beside it.
struct TokenizerConfig {
  /// Name and Jinja source. `chat_template` as one string, and chat_template.jinja, have the name "default";
  /// the list form and additional_chat_templates/NAME.jinja have names of their own. Files win over the JSON
  /// entry, as in Transformers.
  std::vector<std::pair<std::string, std::string>> chat_templates;

  /// Their text, also where the file has {"content": ...} objects.
  std::optional<std::string> bos_token, eos_token, unk_token, pad_token;
  std::optional<bool> add_bos_token, add_eos_token;
  std::optional<bool> clean_up_tokenization_spaces;
  std::optional<int64_t> model_max_length;  ///< absent when the file has the "very large integer" placeholder
  std::string tokenizer_class;              ///< empty when absent
  std::string json;                         ///< the text it came from; empty when there was no file

  /// Null when there is no such template.
  const std::string* chat_template(const std::string& name = "default") const;

  static Result<TokenizerConfig> parse(std::string json, const std::string& source);
  /// Reads `folder`/tokenizer_config.json, and special_tokens_map.json for tokens it lacks, then the template
  /// files. All of them may be missing.
  static Result<TokenizerConfig> load(const std::string& folder);
};

}  // namespace decant::huggingface
