#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "app/conversation.h"
#include "cli/generation_options.h"
#include "cli/resolve_model.h"

namespace decant::cli {
namespace {

struct Options : GenerationOptions {
  std::string system;
};

}  // namespace

Run add_chat(CLI::App& app, Common& common) {
  auto o = std::make_shared<Options>();
  o->add_to(app);
  app.add_option("--system", o->system, "system message");
  return [o, &common]() -> Status {
    DECANT_ASSIGN(const std::string path, resolve_model(o->model, common));
    DECANT_ASSIGN(auto model, app::TextModel::load(path, o->load_options(common)));
    app::Conversation conversation(*model);
    if (!o->system.empty()) conversation.add("system", o->system);
    std::string line;
    for (;;) {
      if (!common.quiet) std::fprintf(stderr, "> ");
      if (!std::getline(std::cin, line)) return ok_status();
      if (line.empty()) continue;
      DECANT_RETURN_IF_ERROR(conversation
                                 .send(line, o->generate_options(),
                                       [](std::string_view piece) {
                                         std::fwrite(piece.data(), 1, piece.size(), stdout);
                                         std::fflush(stdout);
                                       })
                                 .status());
      std::printf("\n");
      std::fflush(stdout);
    }
  };
}

}  // namespace decant::cli
