#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/layout.h"
#include "base/status.h"
#include "formats/huggingface/generation_config.h"
#include "text/streaming/stop_tokens.h"
#include "text/template/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace decant::app {

/// What turns text into ids and back, from the files beside a model (or inside a GGUF file). Parts that have
/// no file are absent; asking for one is an error that says which file was looked for.
class TextFiles {
 public:
  static Result<TextFiles> load(const Layout& layout);

  Result<const text::Tokenizer*> tokenizer() const;

  /// The parsed chat template; `error` gets the place of a fault in it.
  Result<text::ChatTemplate> chat_template(text::TemplateError* error = nullptr) const;
  /// bos_token, eos_token, unk_token and pad_token, as far as they are known, with their text.
  const std::vector<std::pair<std::string, std::string>>& special_tokens() const { return special_tokens_; }

  /// Renders a conversation with the model's chat template; `variables` is a dict with "messages", as `decant
  /// render` takes it. Special tokens of the tokenizer are variables, unless `variables` has them.
  Result<text::Rendered> render_chat(const text::Value& variables, const text::RenderOptions& options,
                                     text::TemplateError* error = nullptr) const;

  /// The same for JSON: a list of messages, or an object with "messages" and further variables. A generation
  /// prompt is added unless the object says otherwise.
  Result<text::Rendered> render_conversation(std::string_view json) const;

  /// Union of generation_config.json, config.json and the tokenizer's own end token.
  const text::StopTokens& stop_tokens() const { return stop_tokens_; }

  /// generation_config.json, as far as it is read.
  const huggingface::GenerationConfig& generation() const { return generation_; }

  /// max_position_embeddings of config.json, where there is one.
  std::optional<int64_t> max_positions() const { return max_positions_; }
  const std::string& chat_template_origin() const { return chat_template_origin_; }

 private:
  struct Texts;
  static Result<Texts> read(const Layout& layout);

  std::string where_;
  std::optional<text::Tokenizer> tokenizer_;
  std::optional<std::string> chat_template_;
  std::string chat_template_origin_;
  std::vector<std::pair<std::string, std::string>> special_tokens_;
  text::StopTokens stop_tokens_;
  huggingface::GenerationConfig generation_;
  std::optional<int64_t> max_positions_;
};

/// The text files of a model, or of a folder that has nothing else.
Result<TextFiles> open_text_files(const std::string& path);

/// The tokenizer of a model, a folder, or a tokenizer.json.
Result<text::Tokenizer> open_tokenizer(const std::string& path);

}  // namespace decant::app
