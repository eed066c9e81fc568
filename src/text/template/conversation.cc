#include "text/template/conversation.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "text/template/errors.h"
#include "text/template/unicode.h"

namespace decant::text {
namespace {

using Entries = std::vector<std::pair<Value, Value>>;

// Names a message's reasoning goes by; templates read the first, or the second.
constexpr std::string_view kReasoning[] = {"reasoning_content", "thinking", "reasoning"};
// Marks the end of the message that is to be continued; its trailing blank shows whether the template strips.
constexpr std::string_view kTag = "CONTINUE_FINAL_MESSAGE_TAG ";

void put(Entries& entries, std::string_view name, Value value) {
  entries.emplace_back(Value::string(std::string(name)), std::move(value));
}

Value with_reasoning_names(const Value& message) {
  const Value* reasoning = nullptr;
  for (std::string_view name : kReasoning) {
    const Value* v = message.find(name);
    if (reasoning == nullptr && v != nullptr && !v->is_none()) reasoning = v;
  }
  if (reasoning == nullptr) return message;
  Entries entries;
  put(entries, "thinking", *reasoning);
  entries.insert(entries.end(), message.entries().begin(), message.entries().end());
  put(entries, "reasoning_content", *reasoning);
  return Value::dict(std::move(entries));
}

Value replaced(const Value& dict, std::string_view name, Value value) {
  Entries entries = dict.entries();
  put(entries, name, std::move(value));
  return Value::dict(std::move(entries));
}

Value tagged(const Value& text) { return Value::string(std::string(text.as_string()) + std::string(kTag)); }

// Tags the last block of a message's content that has a text.
Result<Value> tag_blocks(const Value& content, std::string& final_text) {
  std::vector<Value> blocks = content.items();
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    const Value* text = block->is_dict() ? block->find("text") : nullptr;
    if (text == nullptr || !text->is_string()) continue;
    final_text = text->as_string();
    *block = replaced(*block, "text", tagged(*text));
    return Value::list(std::move(blocks));
  }
  return value_error(
      "continue_final_message is set but we could not find any text to continue in the final message!");
}

Result<Value> tag_final_message(const Value& message, const std::string& field, std::string_view source,
                                std::string& final_text) {
  const Value* found = message.find(field);
  if (found == nullptr || found->is_none()) {
    return value_error("continue_final_message is set but the final message has no \"" + field +
                       "\" to continue!");
  }
  const Value content = *found;
  std::vector<std::string_view> fields = {field};
  if (std::find(std::begin(kReasoning), std::end(kReasoning), field) != std::end(kReasoning)) {
    fields.clear();
    for (std::string_view name : kReasoning) {
      const Value* v = message.find(name);
      if (v != nullptr && equal(*v, content)) fields.push_back(name);
    }
  }
  const auto read_by_template = [&](std::string_view name) {
    return source.find(name) != std::string_view::npos;
  };
  if (std::none_of(fields.begin(), fields.end(), read_by_template)) {
    return value_error("continue_final_message is set to \"" + field +
                       "\" but this is not an accepted field in the chat_template");
  }
  if (content.is_sequence()) {
    DECANT_ASSIGN(Value blocks, tag_blocks(content, final_text));
    return replaced(message, field, std::move(blocks));
  }
  if (!content.is_string()) return type_error("the final message's text is no text");
  final_text = content.as_string();
  Value result = message;
  for (std::string_view name : fields) result = replaced(result, name, tagged(content));
  return result;
}

Result<Value> prepare_messages(const Value& messages, PreparedChat& chat, const std::string& field,
                               std::string_view source) {
  if (!messages.is_sequence()) return type_error("messages must be a list of messages");
  std::vector<Value> out;
  for (const Value& message : messages.items()) {
    if (!message.is_dict()) return type_error("Chat messages should be dicts");
    out.push_back(with_reasoning_names(message));
  }
  if (chat.continues) {
    if (out.empty()) return value_error("continue_final_message is set but the conversation is empty!");
    DECANT_ASSIGN(out.back(), tag_final_message(out.back(), field, source, chat.final_text));
  }
  return Value::list(std::move(out));
}

}  // namespace

Result<PreparedChat> prepare_chat(const Value& variables, std::string_view template_source) {
  if (!variables.is_dict()) return type_error("template variables must be a dict");
  PreparedChat chat;
  std::string field = "content";
  if (const Value* flag = variables.find("continue_final_message")) {
    chat.continues = truthy(*flag);
    if (chat.continues && flag->is_string()) field = flag->as_string();
  }
  const Value* prompt = variables.find("add_generation_prompt");
  if (chat.continues && prompt != nullptr && truthy(*prompt)) {
    return value_error("continue_final_message and add_generation_prompt are not compatible");
  }
  if (const Value* documents = variables.find("documents");
      documents != nullptr && documents->is_sequence()) {
    for (const Value& document : documents->items()) {
      if (!document.is_dict())
        return type_error("Documents should be a list of dicts with 'title' and 'text' keys!");
    }
  }
  Entries entries;
  put(entries, "tools", Value::none());
  put(entries, "documents", Value::none());
  put(entries, "add_generation_prompt", Value::boolean(false));
  for (const auto& [key, value] : variables.entries()) {
    if (key.is_string() && (key.as_string() == "continue_final_message" || key.as_string() == "messages"))
      continue;
    entries.emplace_back(key, value);
  }
  if (const Value* messages = variables.find("messages")) {
    DECANT_ASSIGN(Value prepared, prepare_messages(*messages, chat, field, template_source));
    put(entries, "messages", std::move(prepared));
  } else if (chat.continues) {
    return value_error("continue_final_message is set but there are no messages");
  }
  chat.variables = Value::dict(std::move(entries));
  return chat;
}

Status cut_after_final_message(const PreparedChat& chat, std::string& text) {
  const std::string_view tag = kTag.substr(0, kTag.size() - 1);
  const std::string_view wanted = strip(chat.final_text, StripSide::kBoth);
  const size_t at = text.rfind(tag);
  if (at == std::string::npos || text.find(wanted) == std::string::npos) {
    return value_error(
        "continue_final_message is set but the final message does not appear in the chat after applying "
        "the chat template!");
  }
  const bool spacing_kept = std::string_view(text).substr(at).starts_with(kTag);
  text.resize(at);
  if (!spacing_kept) text.resize(strip(text, StripSide::kRight).size());
  return ok_status();
}

}  // namespace decant::text
