#include "app/conversation.h"

namespace decant::app {

void Conversation::add(const char* role, std::string_view content) {
  messages_.push_back(
      text::Value::dict({{text::Value::string("role"), text::Value::string(role)},
                         {text::Value::string("content"), text::Value::string(std::string(content))}}));
}

Result<std::vector<int32_t>> Conversation::next_ids() {
  const text::Value variables =
      text::Value::dict({{text::Value::string("messages"), text::Value::list(messages_)},
                         {text::Value::string("add_generation_prompt"), text::Value::boolean(true)}});
  DECANT_ASSIGN(const text::Rendered rendered, model_.files().render_chat(variables, {}));
  DECANT_ASSIGN(const text::Tokenizer* tokenizer, model_.files().tokenizer());
  DECANT_ASSIGN(std::vector<int32_t> ids, tokenizer->encode(rendered.text, false));
  DECANT_ASSIGN(const int64_t shared,
                model_.session().keep_prefix(std::vector<int64_t>(ids.begin(), ids.end())));
  ids.erase(ids.begin(), ids.begin() + shared);
  return ids;
}

Result<Generation> Conversation::send(std::string_view content, const GenerateOptions& options,
                                      const std::function<void(std::string_view)>& on_text) {
  add("user", content);
  auto ids = next_ids();
  auto generation = ids.ok() ? model_.generate(*ids, options, on_text) : Result<Generation>(ids.status());
  if (!generation.ok()) {
    messages_.pop_back();
    return generation;
  }
  add("assistant", generation->text);
  return generation;
}

}  // namespace decant::app
