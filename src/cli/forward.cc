#include <chrono>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/forward.h"
#include "cli/command.h"
#include "cli/generation_options.h"
#include "cli/resolve_model.h"

namespace decant::cli {
namespace {

struct Options {
  std::string model, inputs, outputs, component, dtype, backend = "cpu", mode = "exact", compute_type;
  int repeat = 1;
  bool profile = false;
  double time_limit = 0;
};

}  // namespace

Run add_forward(CLI::App& app, Common& common) {
  auto o = std::make_shared<Options>();
  app.add_option("MODEL", o->model, "an export's folder, or an .onnx file")->required();
  app.add_option("--inputs", o->inputs, "safetensors file with the graph's inputs by name")->required();
  app.add_option("--outputs", o->outputs, "safetensors file to write")->required();
  app.add_option("--component", o->component, "which graph of the export");
  app.add_option("--dtype", o->dtype,
                 "which of a repository's files: fp32, fp16, q8, int8, uint8, q4, q4f16, bnb4, ...");
  app.add_option("--backend", o->backend, "cpu, or reference: the graph as written on the reference kernels")
      ->check(CLI::IsMember({"cpu", "reference"}));
  add_mode(app, o->mode);
  add_compute_type(app, o->compute_type);
  app.add_option("--repeat", o->repeat, "run several times; with --json prints the timings")
      ->check(CLI::Range(1, 1000000));
  app.add_flag("--profile", o->profile, "print the seconds of each operator, the slowest first");
  app.add_option("--time-limit", o->time_limit, "seconds after which the runs end with an error")
      ->check(CLI::Range(0.0, 1e9));
  return [o, &common]() -> Status {
    app::ForwardOptions options;
    options.component = o->component;
    options.dtype = o->dtype;
    options.reference = o->backend == "reference";
    options.threads = common.threads;
    options.isa = common.isa;
    options.repeat = o->repeat;
    options.compute_type = compute_type(o->compute_type);
    if (o->time_limit > 0) {
      options.limits = RunOptions::within(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
          std::chrono::duration<double>(o->time_limit)));
    }
    options.precision = precision(o->mode);
    std::vector<double> seconds;
    std::vector<std::pair<std::string, double>> profile;
    DECANT_ASSIGN(const std::string model, resolve_model(o->model, common, o->dtype));
    DECANT_RETURN_IF_ERROR(
        app::forward(model, o->inputs, o->outputs, options, &seconds, o->profile ? &profile : nullptr));
    for (const auto& [op, time] : profile) {
      if (!common.json) std::printf("%9.4f s  %s\n", time, op.c_str());
    }
    if (common.json) {
      nlohmann::ordered_json line;
      line["outputs"] = o->outputs;
      line["seconds"] = seconds;
      if (o->profile) {
        for (const auto& [op, time] : profile) line["profile"][op] = time;
      }
      std::printf("%s\n", line.dump().c_str());
    }
    return ok_status();
  };
}

}  // namespace decant::cli
