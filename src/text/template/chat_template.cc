#include "text/template/chat_template.h"

#include "text/template/ast.h"
#include "text/template/conversation.h"
#include "text/template/interpreter.h"
#include "text/template/parser.h"

namespace decant::text {
namespace {

constexpr size_t kMaxSourceBytes = 4u << 20;

Status report(const Status& status, const std::string& origin, Position at, TemplateError* error) {
  if (error != nullptr) *error = to_template_error(status, at);
  return with_position(status, origin, at);
}

}  // namespace

ChatTemplate::ChatTemplate(std::string source, std::string origin, std::shared_ptr<const Program> program)
    : source_(std::move(source)), origin_(std::move(origin)), program_(std::move(program)) {}

Result<ChatTemplate> ChatTemplate::parse(std::string source, std::string origin, TemplateError* error) {
  if (source.size() > kMaxSourceBytes) {
    return report(limit_error("a template of over 4 MiB"), origin, {}, error);
  }
  Position at;
  auto program = parse_template(source, at);
  if (!program.ok()) return report(program.status(), origin, at, error);
  return ChatTemplate(std::move(source), std::move(origin),
                      std::make_shared<const Program>(std::move(*program)));
}

Result<Rendered> ChatTemplate::render(const Value& variables, const RenderOptions& options,
                                      TemplateError* error) const {
  Rendered rendered;
  Interpreter interpreter(*program_, variables, options);
  Status status = interpreter.run(rendered.text, rendered.generation_spans);
  if (!status.ok()) return report(status, origin_, interpreter.error_at(), error);
  return rendered;
}

Result<Rendered> ChatTemplate::render_chat(const Value& variables, const RenderOptions& options,
                                           TemplateError* error) const {
  auto chat = prepare_chat(variables, source_);
  if (!chat.ok()) return report(chat.status(), origin_, {}, error);
  DECANT_ASSIGN(Rendered rendered, render(chat->variables, options, error));
  if (!chat->continues) return rendered;
  Status status = cut_after_final_message(*chat, rendered.text);
  if (!status.ok()) return report(status, origin_, {}, error);
  return rendered;
}

}  // namespace decant::text
