#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/bench.h"
#include "cli/command.h"
#include "cli/generation_options.h"
#include "cli/resolve_model.h"

namespace decant::cli {

Run add_bench(CLI::App& app, Common& common) {
  auto o = std::make_shared<app::BenchOptions>();
  app.add_option("MODEL", o->model, "an export's folder, an .onnx or .gguf file")->required();
  app.add_option("--prompt-tokens", o->prompt_tokens, "lengths of prompts, separated by commas")
      ->delimiter(',');
  app.add_option("--new-tokens", o->new_tokens, "tokens decoded in a sample")->check(CLI::Range(1, 1 << 20));
  app.add_option("--context", o->context, "positions in the cache when decoding begins")
      ->check(CLI::Range(1, 1 << 24));
  app.add_option("--repeat", o->repeat, "samples of each case")->check(CLI::Range(1, 1000));
  app.add_option("--dtype", o->dtype, "which of a repository's files");
  auto mode = std::make_shared<std::string>("exact");
  add_mode(app, *mode);
  app.add_flag("--profile", o->profile, "also the time by operator, to standard error");
  return [o, mode, &common]() -> Status {
    o->threads = common.threads;
    o->isa = common.isa;
    o->precision = precision(*mode);
    DECANT_ASSIGN(o->model, resolve_model(o->model, common, o->dtype));
    return app::bench(*o, [&](const app::BenchCase& c) {
      const auto [lo, hi] = std::minmax_element(c.tokens_per_second.begin(), c.tokens_per_second.end());
      if (!common.json) {
        std::printf(
            "%-8s %5lld tokens  %9.1f tokens/s [%.1f, %.1f]  %5.1f %% of the read bandwidth  %s, %d "
            "threads\n",
            c.name.c_str(), static_cast<long long>(c.tokens), c.median(), *lo, *hi, 100 * c.bandwidth_share(),
            c.isa.c_str(), c.threads);
        return;
      }
      nlohmann::ordered_json line;
      line["case"] = c.name;
      line["tokens"] = c.tokens;
      line["tokens_per_s"] = {{"median", c.median()}, {"min", *lo}, {"max", *hi}};
      line["bytes_per_token"] = c.bytes_per_token;
      line["bandwidth_share"] = c.bandwidth_share();
      line["read_bandwidth"] = c.read_bandwidth();
      line["isa"] = c.isa;
      line["threads"] = c.threads;
      line["model_sha256"] = c.model_sha256;
      std::printf("%s\n", line.dump().c_str());
      std::fflush(stdout);
    });
  };
}

}  // namespace decant::cli
