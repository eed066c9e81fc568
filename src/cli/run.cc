#include "cli/run.h"

#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cli/command.h"
#include "decant/version.h"

namespace decant::cli {
namespace {

/// 1: the model or the input, 3: the machine. (2, wrong usage, is found while options are parsed.)
int exit_code(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kResource:
    case StatusCode::kDeadline:
      return 3;
    default:
      return 1;
  }
}

struct Entry {
  const char* name;
  const char* help;
  Run (*add)(CLI::App&, Common&);
};

constexpr Entry kCommands[] = {
    {"export", "write a model in a format that other runtimes run", &add_export},
    {"forward", "run one graph once on tensors from a file", &add_forward},
    {"generate", "generate text", &add_generate},
    {"chat", "talk to a model", &add_chat},
    {"tokenize", "text to token ids and back, as JSON lines", &add_tokenize},
    {"render", "chat templates to text, as JSON lines", &add_render},
    {"inspect", "say what a model is made of", &add_inspect},
    {"bench", "measure speed", &add_bench},
};

}  // namespace

int run(int argc, const char* const* argv) {
  CLI::App app("decant: Hugging Face models from where they were written to where they run");
  app.set_version_flag("--version", "decant " + std::string(version()));
  app.require_subcommand(1);
  app.fallthrough();
  Common common;
  app.add_option("--threads", common.threads, "threads to compute with")->check(CLI::Range(1, 256));
  app.add_option("--isa", common.isa, "instruction set, as DECANT_ISA");
  app.add_flag("--quiet", common.quiet, "no messages but errors");
  app.add_flag("--json", common.json, "one JSON object a line");
  std::vector<std::pair<CLI::App*, Run>> commands;
  for (const Entry& e : kCommands) {
    CLI::App* sub = app.add_subcommand(e.name, e.help);
    commands.emplace_back(sub, e.add(*sub, common));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? 0 : 2;
  }
  if (!common.quiet) {
    set_log_hook([](LogLevel level, std::string_view message) {
      if (level != LogLevel::kDebug)
        std::fprintf(stderr, "decant: %.*s\n", static_cast<int>(message.size()), message.data());
    });
  }
  for (auto& [sub, command] : commands) {
    if (!sub->parsed()) continue;
    const Status status = command();
    if (!status.ok()) std::fprintf(stderr, "decant: %s\n", status.to_string().c_str());
    return exit_code(status);
  }
  return 2;
}

}  // namespace decant::cli
