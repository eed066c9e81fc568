#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/generation_options.h"
#include "cli/resolve_model.h"

namespace decant::cli {
namespace {

struct Options : GenerationOptions {
  std::string system;
};

text::Value message(const char* role, const std::string& content) {
  return text::Value::dict({{text::Value::string("role"), text::Value::string(role)},
                            {text::Value::string("content"), text::Value::string(content)}});
}

/// Keeps the cache between turns: what the sequence already holds of the newly rendered conversation is not
/// run again.
class Conversation {
 public:
  explicit Conversation(app::TextModel& model) : model_(model) {}

  void add(const char* role, const std::string& content) { messages_.push_back(message(role, content)); }

  Result<std::vector<int32_t>> next_ids() {
    text::Value variables =
        text::Value::dict({{text::Value::string("messages"), text::Value::list(messages_)},
                           {text::Value::string("add_generation_prompt"), text::Value::boolean(true)}});
    DECANT_ASSIGN(const text::Rendered rendered, model_.files().render_chat(variables, {}));
    DECANT_ASSIGN(const text::Tokenizer* tokenizer, model_.files().tokenizer());
    DECANT_ASSIGN(std::vector<int32_t> ids, tokenizer->encode(rendered.text, false));
    size_t shared = 0;
    while (shared < held_.size() && shared + 1 < ids.size() && held_[shared] == ids[shared]) ++shared;
    DECANT_RETURN_IF_ERROR(model_.session().rewind(static_cast<int64_t>(shared)));
    held_ = ids;
    return std::vector<int32_t>(ids.begin() + static_cast<std::ptrdiff_t>(shared), ids.end());
  }

  /// The ids that generation added to the cache; the last one of a generation that did not stop is not there
  /// yet.
  void keep(const app::Generation& g) {
    held_.insert(held_.end(), g.ids.begin(), g.ids.end());
    held_.resize(std::min(held_.size(), static_cast<size_t>(model_.session().length())));
  }

 private:
  app::TextModel& model_;
  std::vector<text::Value> messages_;
  std::vector<int32_t> held_;
};

}  // namespace

Run add_chat(CLI::App& app, Common& common) {
  auto o = std::make_shared<Options>();
  o->add_to(app);
  app.add_option("--system", o->system, "system message");
  return [o, &common]() -> Status {
    DECANT_ASSIGN(const std::string path, resolve_model(o->model, common));
    DECANT_ASSIGN(auto model, app::TextModel::load(path, o->load_options(common)));
    Conversation conversation(*model);
    if (!o->system.empty()) conversation.add("system", o->system);
    std::string line;
    for (;;) {
      if (!common.quiet) std::fprintf(stderr, "> ");
      if (!std::getline(std::cin, line)) return ok_status();
      if (line.empty()) continue;
      conversation.add("user", line);
      DECANT_ASSIGN(const std::vector<int32_t> ids, conversation.next_ids());
      DECANT_ASSIGN(const app::Generation g,
                    model->generate(ids, o->generate_options(), [](std::string_view piece) {
                      std::fwrite(piece.data(), 1, piece.size(), stdout);
                      std::fflush(stdout);
                    }));
      std::printf("\n");
      std::fflush(stdout);
      conversation.keep(g);
      conversation.add("assistant", g.text);
    }
  };
}

}  // namespace decant::cli
