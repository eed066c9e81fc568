#include "decant/chat_template.h"

#include <filesystem>

#include "app/hub_model.h"
#include "app/text_files.h"
#include "base/file_writer.h"
#include "base/status.h"
#include "text/template/chat_template.h"

namespace decant {
namespace {

constexpr uint64_t kMaxSourceBytes = uint64_t{64} << 20;

using Variables = std::vector<std::pair<text::Value, text::Value>>;

}  // namespace

struct ChatTemplate::Impl {
  text::ChatTemplate chat;
  Variables special_tokens;
};

ChatTemplate::ChatTemplate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Result<ChatTemplate> ChatTemplate::parse(std::string source, std::string name) {
  DECANT_ASSIGN(text::ChatTemplate chat, text::ChatTemplate::parse(std::move(source), std::move(name)));
  return ChatTemplate(std::shared_ptr<const Impl>(new Impl{std::move(chat), {}}));
}

Result<ChatTemplate> ChatTemplate::load(const std::string& path) {
  DECANT_ASSIGN(const std::string local, app::local_model(path));
  if (std::filesystem::path(local).extension() == ".jinja") {
    DECANT_ASSIGN(std::string source, read_file(local, kMaxSourceBytes));
    return parse(std::move(source), local);
  }
  DECANT_ASSIGN(const app::TextFiles files, app::open_text_files(local));
  DECANT_ASSIGN(text::ChatTemplate chat, files.chat_template());
  Variables special_tokens;
  for (const auto& [name, token] : files.special_tokens())
    special_tokens.emplace_back(text::Value::string(name), text::Value::string(token));
  return ChatTemplate(std::shared_ptr<const Impl>(new Impl{std::move(chat), std::move(special_tokens)}));
}

Result<std::string> ChatTemplate::render(std::string_view variables) const {
  DECANT_ASSIGN(const text::Value given, text::parse_json(variables));
  if (!given.is_dict())
    return invalid_argument("the variables of a chat template are an object with \"messages\"");
  Variables all = impl_->special_tokens;
  all.insert(all.end(), given.entries().begin(), given.entries().end());
  DECANT_ASSIGN(const text::Rendered rendered,
                impl_->chat.render_chat(text::Value::dict(std::move(all)), {}));
  return rendered.text;
}

const std::string& ChatTemplate::source() const { return impl_->chat.source(); }

}  // namespace decant
