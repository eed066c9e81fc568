#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/inspect.h"
#include "cli/command.h"
#include "cli/resolve_model.h"

namespace decant::cli {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const app::Inspection& i) {
  ordered_json out;
  out["layout"] = i.layout;
  out["dtype"] = i.dtype;
  out["dtypes"] = i.dtypes;
  if (!i.missing.empty()) out["missing_for_generation"] = i.missing;
  for (const app::ComponentInfo& c : i.components) {
    ordered_json j;
    j["name"] = c.name;
    j["role"] = c.role;
    j["file"] = c.file;
    j["inputs"] = ordered_json::array();
    for (const auto& [name, type] : c.inputs) j["inputs"].push_back({{"name", name}, {"type", type}});
    j["outputs"] = ordered_json::array();
    for (const auto& [name, type] : c.outputs) j["outputs"].push_back({{"name", name}, {"type", type}});
    j["states"] = c.states;
    j["ops"] = c.ops;
    j["ops_compiled"] = c.compiled_ops;
    j["lifted"] = c.lifted;
    j["reference_ops"] = c.reference_ops;
    j["weights"] = c.weights;
    j["bytes_on_disk"] = c.bytes_on_disk;
    j["cache_bytes_per_token"] = c.cache_bytes_per_token;
    out["components"].push_back(j);
  }
  out["stop_tokens"] = ordered_json::array();
  for (const auto& [id, sources] : i.stop_tokens)
    out["stop_tokens"].push_back({{"id", id}, {"from", sources}});
  return out;
}

void print_counts(const char* title, const std::map<std::string, int64_t>& counts) {
  std::printf("  %s:", title);
  for (const auto& [name, n] : counts) std::printf(" %s %lld", name.c_str(), static_cast<long long>(n));
  std::printf("\n");
}

}  // namespace

Run add_inspect(CLI::App& app, Common& common) {
  auto model = std::make_shared<std::string>(), dtype = std::make_shared<std::string>();
  app.add_option("MODEL", *model, "an export's folder, an .onnx or .gguf file, or a checkpoint's folder")
      ->required();
  app.add_option("--dtype", *dtype,
                 "which of a repository's files: fp32, fp16, q8, int8, uint8, q4, q4f16, bnb4, ...");
  return [model, dtype, &common]() -> Status {
    DECANT_ASSIGN(const std::string path, resolve_model(*model, common, *dtype));
    DECANT_ASSIGN(const app::Inspection i, app::inspect(path, *dtype));
    if (common.json) {
      std::printf("%s\n", to_json(i).dump().c_str());
      return ok_status();
    }
    std::printf("layout: %s\n", i.layout.c_str());
    if (i.dtypes.size() > 1) {
      std::printf("dtype: %s; there are", i.dtype.c_str());
      for (const std::string& d : i.dtypes) std::printf(" %s", d.c_str());
      std::printf("\n");
    }
    if (!i.missing.empty()) std::printf("missing for text generation: %s\n", i.missing.c_str());
    for (const app::ComponentInfo& c : i.components) {
      std::printf("component %s, %s (%s), %lld bytes on disk\n", c.name.c_str(), c.role.c_str(),
                  c.file.c_str(), static_cast<long long>(c.bytes_on_disk));
      for (const auto& [name, type] : c.inputs) std::printf("  input  %s: %s\n", name.c_str(), type.c_str());
      for (const auto& [name, type] : c.outputs) std::printf("  output %s: %s\n", name.c_str(), type.c_str());
      for (const std::string& s : c.states) std::printf("  state  %s\n", s.c_str());
      print_counts("operators", c.ops);
      print_counts("after compiling", c.compiled_ops);
      if (!c.reference_ops.empty()) print_counts("on slow reference kernels", c.reference_ops);
      print_counts("weight bytes by type", c.weights);
      if (c.cache_bytes_per_token)
        std::printf("  cache: %lld bytes a token\n", static_cast<long long>(c.cache_bytes_per_token));
    }
    for (const auto& [id, sources] : i.stop_tokens) std::printf("stop token %d (%s)\n", id, sources.c_str());
    return ok_status();
  };
}

}  // namespace decant::cli
