#include "app/conversation.h"

#include <algorithm>

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
  size_t shared = 0;
  while (shared < held_.size() && shared + 1 < ids.size() && held_[shared] == ids[shared]) ++shared;
  DECANT_RETURN_IF_ERROR(model_.session().rewind(static_cast<int64_t>(shared)));
  held_.resize(shared);
  return std::vector<int32_t>(ids.begin() + static_cast<std::ptrdiff_t>(shared), ids.end());
}

Result<Generation> Conversation::send(std::string_view content, const GenerateOptions& options,
                                      const std::function<void(std::string_view)>& on_text) {
  add("user", content);
  auto ids = next_ids();
  auto generation = ids.ok() ? model_.generate(*ids, options, on_text) : Result<Generation>(ids.status());
  if (!generation.ok()) {
    messages_.pop_back();
    held_.clear();
    return generation;
  }
  // The last id of a generation that was cut off is not in the sequence yet.
  held_.insert(held_.end(), ids->begin(), ids->end());
  held_.insert(held_.end(), generation->ids.begin(), generation->ids.end());
  held_.resize(std::min(held_.size(), static_cast<size_t>(model_.session().length())));
  add("assistant", generation->text);
  return generation;
}

}  // namespace decant::app
