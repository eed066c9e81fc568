#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/template/errors.h"
#include "text/template/render_options.h"
#include "text/template/value.h"

namespace decant::text {

struct Program;

struct Rendered {
  std::string text;
  /// What the template's generation blocks wrote: [begin, end) in code points of `text`.
  std::vector<std::pair<size_t, size_t>> generation_spans;
};

/// A chat template in Jinja's language, rendered as Hugging Face transformers renders it: a sandbox where
/// only namespaces change, trim_blocks and lstrip_blocks on, break and continue, tojson as Python's
/// json.dumps. What a template may use up is bounded (RenderLimits), so a template from a file cannot hang or
/// crash the process. A parsed template is immutable and may be rendered from several threads.
///
///   DECANT_ASSIGN(auto t, ChatTemplate::parse(source, "chat_template.jinja"));
///   DECANT_ASSIGN(Value variables, parse_json(R"({"messages": [...], "add_generation_prompt": true})"));
///   DECANT_ASSIGN(Rendered r, t.render_chat(variables, {}));
class ChatTemplate {
 public:
  /// `origin` names the source in messages. Errors: syntax, with line and column, also in `error` when given.
  static Result<ChatTemplate> parse(std::string source, std::string origin, TemplateError* error = nullptr);

  /// Renders with these variables (a dict) as they are.
  Result<Rendered> render(const Value& variables, const RenderOptions& options,
                          TemplateError* error = nullptr) const;

  /// Renders a conversation. Of the variables, `messages` gets its reasoning under each of the names
  /// templates read it by, `tools`, `documents` and `add_generation_prompt` are none, none and false when
  /// absent, and `continue_final_message` (a bool, or the name of a message's field) is taken out: when set,
  /// the text ends where the last message's own text ends, ready to be continued.
  Result<Rendered> render_chat(const Value& variables, const RenderOptions& options,
                               TemplateError* error = nullptr) const;

  const std::string& source() const { return source_; }

 private:
  ChatTemplate(std::string source, std::string origin, std::shared_ptr<const Program> program);

  std::string source_;
  std::string origin_;
  std::shared_ptr<const Program> program_;
};

}  // namespace decant::text
