#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "decant/export.h"
#include "decant/status.h"

namespace decant {

/// A chat template in Jinja's language, rendered as Hugging Face Transformers renders it, within bounds on
/// what a template may use up. Immutable, cheap to copy, thread-safe.
class DECANT_EXPORT ChatTemplate {
 public:
  /// `path`: a .jinja file, a folder with a template, a .gguf file, or "hf://owner/name[@revision]". The
  /// special tokens beside a template (bos_token, ...) become its variables. kNotFound when there is none.
  static Result<ChatTemplate> load(const std::string& path);
  /// `name` stands for the template in messages.
  static Result<ChatTemplate> parse(std::string source, std::string name = "chat template");

  /// `variables`: a JSON object with "messages" and what else the template reads: "tools", "documents",
  /// "add_generation_prompt" (none, none and false when absent), "continue_final_message" (true: the text
  /// ends where the last message ends). Errors tell line and column of the template.
  Result<std::string> render(std::string_view variables) const;

  const std::string& source() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace decant
