#include "app/export.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "app/export_manifest.h"
#include "app/output_folder.h"
#include "app/source.h"
#include "base/file_writer.h"
#include "decant/version.h"
#include "formats/onnx/lower/lower.h"
#include "formats/onnx/writer.h"
#include "models/architecture.h"

namespace decant::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelFile = "model.onnx";
/// The name that Transformers' loader of exports insists on.
constexpr const char* kWeightsFile = "model.onnx.data";

/// The source's config with the dtype that the weights now have.
Result<std::string> exported_config(const Source& source, DType dtype) {
  auto json = nlohmann::ordered_json::parse(source.config.json(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return invalid_model(source.config.source() + ": not a JSON object");
  json.erase("torch_dtype");
  json["dtype"] = std::string(to_string(dtype));
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<models::CacheForm> parse_cache(std::string_view text) {
  if (text == "dynamic") return models::CacheForm::kDynamic;
  if (text == "static") return models::CacheForm::kStatic;
  if (text == "none") return models::CacheForm::kNone;
  return invalid_argument("cache '" + std::string(text) + "'; possible: dynamic, static, none");
}

Status export_model(const ExportOptions& options, ExportReport* report) {
  if (options.format != "onnx") return unsupported("export format '" + options.format + "'; possible: onnx");
  DECANT_ASSIGN(Source source, open_source(options.source));
  const auto config = config_view(source.config);
  auto captured = models::capture(
      *config, *source.weights,
      {.dtype = options.precision.dtype, .cache = options.cache, .max_cache_len = options.max_cache_len});
  if (!captured.ok()) return std::move(captured).status().with_context(options.source);
  const std::unique_ptr<ir::Graph> graph = *std::move(captured);
  graph->name = "main_graph";
  const std::string manifest = export_manifest(*graph, source.config, options, kModelFile);
  Quantized quantized;
  if (auto packed = quantize(*graph, options.precision, options.quantization); packed.ok()) {
    quantized = *std::move(packed);
  } else {
    return std::move(packed).status().with_context(options.source);
  }
  DECANT_RETURN_IF_ERROR(onnx::lower_to_opset(*graph, options.opset));
  DECANT_ASSIGN(const std::string config_json, exported_config(source, options.precision.dtype));

  const fs::path folder(options.output);
  DECANT_RETURN_IF_ERROR(prepare_output(folder));
  onnx::WriteOptions write;
  write.opset = options.opset;
  write.external_data_name = kWeightsFile;
  write.producer_version = std::string(version());
  DECANT_RETURN_IF_ERROR(onnx::write_model(*graph, (folder / kModelFile).string(), write));
  const std::vector<std::pair<std::string, const std::string*>> texts = {
      {"config.json", &config_json},
      {"generation_config.json", &source.generation_config_json},
      {"tokenizer.json", &source.tokenizer_json},
      {"tokenizer_config.json", &source.tokenizer_config_json},
      {kManifestFile, &manifest},
  };
  std::vector<std::string> written = {kModelFile, kWeightsFile};
  for (const auto& [name, text] : texts) {
    if (text->empty()) continue;
    DECANT_RETURN_IF_ERROR(write_file((folder / name).string(), *text));
    written.push_back(name);
  }
  if (!report) return ok_status();
  report->architecture = architecture_name(source.config);
  report->weights = report_of(quantized);
  for (std::string& name : written) {
    std::error_code error;
    const uint64_t bytes = fs::file_size(folder / name, error);
    if (!error) report->files.emplace_back(std::move(name), bytes);
  }
  return ok_status();
}

}  // namespace decant::app
