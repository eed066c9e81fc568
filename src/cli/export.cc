#include <memory>

#include <CLI/CLI.hpp>

#include "app/export.h"
#include "cli/command.h"
#include "cli/quantization_options.h"
#include "cli/resolve_model.h"

namespace decant::cli {
namespace {

struct Options {
  app::ExportOptions request;
  std::string precision = "fp32", cache = "dynamic";
  int64_t max_cache_len = 0;
};

}  // namespace

Run add_export(CLI::App& app, Common& common) {
  auto o = std::make_shared<Options>();
  app.add_option("SOURCE", o->request.source, "a .gguf file, or a folder with config.json and safetensors")
      ->required();
  app.add_option("-o,--output", o->request.output, "folder to write")->required();
  app.add_option("--format", o->request.format, "onnx")
      ->check(CLI::IsMember({"onnx", "openvino", "pt2", "executorch"}));
  app.add_option("--precision", o->precision, "fp32, fp16, bf16, q8, q4, q4f16 or source")
      ->check(CLI::IsMember({"fp32", "fp16", "bf16", "q8", "q4", "q4f16", "int8", "source"}));
  app.add_option("--cache", o->cache, "dynamic, static or none")
      ->check(CLI::IsMember({"dynamic", "static", "none"}));
  app.add_option("--max-cache-len", o->max_cache_len, "fixes the static cache's length")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31));
  app.add_option("--opset", o->request.opset, "version of the ONNX operators")->check(CLI::Range(13, 28));
  add_quantization_options(app, o->request.quantization);
  return [o, &common]() -> Status {
    o->request.quantization.threads = common.threads;
    DECANT_ASSIGN(o->request.precision, app::parse_precision(o->precision));
    DECANT_ASSIGN(o->request.cache, app::parse_cache(o->cache));
    if (o->max_cache_len > 0) o->request.max_cache_len = o->max_cache_len;
    app::ExportReport report;
    DECANT_ASSIGN(o->request.source, resolve_model(o->request.source, common));
    DECANT_RETURN_IF_ERROR(app::export_model(o->request, &report));
    print_written({report.architecture, o->request.output, report.files, report.weights}, common);
    return ok_status();
  };
}

}  // namespace decant::cli
