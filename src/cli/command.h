#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace CLI {
class App;
}

namespace decant::cli {

/// Options that every command takes.
struct Common {
  int threads = 0;  ///< 0: the machine's physical cores, within the process's limits
  std::string isa;  ///< empty: the best
  bool quiet = false;
  bool json = false;
};

/// A command adds its options to its sub-command and returns what to do once they are parsed.
using Run = std::function<Status()>;

Run add_bench(CLI::App& app, Common& common);
Run add_chat(CLI::App& app, Common& common);
Run add_export(CLI::App& app, Common& common);
Run add_forward(CLI::App& app, Common& common);
Run add_generate(CLI::App& app, Common& common);
Run add_inspect(CLI::App& app, Common& common);
Run add_render(CLI::App& app, Common& common);
Run add_tokenize(CLI::App& app, Common& common);

}  // namespace decant::cli
