#include "formats/onnx/reader.h"

#include <fmt/format.h>

#include <exception>

#include "base/mapped_file.h"
#include "formats/onnx/adapters/adapters.h"
#include "formats/onnx/graph_builder.h"
#include "formats/onnx/messages.h"
#include "formats/onnx/tensor_loader.h"

namespace decant::onnx {
namespace {

constexpr int64_t kOldestOpset = 1;
constexpr int64_t kNewestOpset = 28;
constexpr int64_t kNewestIrVersion = 14;

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string producer_of(const ModelMessage& model) {
  std::string text(model.producer_name);
  if (!model.producer_version.empty())
    text += (text.empty() ? "" : " ") + std::string(model.producer_version);
  return text;
}

Status check_opset(int64_t version, std::string_view where) {
  if (version < kOldestOpset || version > kNewestOpset) {
    return unsupported(fmt::format("{}opset {} of ai.onnx; supported are {} to {}", where, version,
                                   kOldestOpset, kNewestOpset));
  }
  return ok_status();
}

Result<ModelMessage> read_header(ParseContext& context, Bytes bytes) {
  if (bytes.empty()) return invalid_model("the file is empty");
  DECANT_ASSIGN(ModelMessage model, parse_model(context, bytes));
  if (model.ir_version <= 0) return invalid_model("no IR version; this is no ONNX model, or a truncated one");
  if (model.ir_version > kNewestIrVersion) {
    return unsupported(
        fmt::format("IR version {}; supported are 1 to {}", model.ir_version, kNewestIrVersion));
  }
  if (!model.graph) return invalid_model("no graph; this is no ONNX model, or a truncated one");
  if (model.opset_imports.empty())
    return invalid_model("no opset import; this is no ONNX model, or a truncated one");
  if (auto it = model.opset_imports.find(""); it != model.opset_imports.end()) {
    DECANT_RETURN_IF_ERROR(check_opset(it->second, ""));
  }
  return model;
}

Result<std::unique_ptr<ir::Graph>> read(Bytes bytes, std::shared_ptr<const void> owner,
                                        const std::string& folder) {
  ParseContext context;
  context.base = bytes.data();
  DECANT_ASSIGN(const ModelMessage model, read_header(context, bytes));
  TensorLoader loader(std::move(owner), folder);
  GraphBuilder builder(context, loader, model);
  DECANT_ASSIGN(auto graph, builder.build());
  if (const std::string producer = producer_of(model); !producer.empty())
    graph->metadata["producer"] = producer;
  DECANT_RETURN_IF_ERROR(adapt_graph(*graph, [&](const ir::Node* node) { return builder.opset_of(node); }));
  return graph;
}

}  // namespace

Result<std::unique_ptr<ir::Graph>> read_model_bytes(std::span<const std::byte> bytes,
                                                    std::shared_ptr<const void> owner,
                                                    const std::string& folder, const std::string& name) {
  try {
    auto graph = read(bytes, std::move(owner), folder);
    if (!graph.ok()) return std::move(graph).status().with_context(name);
    return graph;
  } catch (const std::bad_alloc&) {
    return resource_error(name + ": not enough memory to hold the graph");
  } catch (const std::exception& e) {
    return internal_error(name + ": " + e.what());
  }
}

Result<std::unique_ptr<ir::Graph>> read_model(const std::string& path) {
  DECANT_ASSIGN(auto file, MappedFile::open(path));
  return read_model_bytes(file->bytes(), file, folder_of(path), path);
}

Result<ModelInfo> read_model_info(const std::string& path) {
  DECANT_ASSIGN(auto file, MappedFile::open(path));
  ParseContext context;
  context.base = file->bytes().data();
  auto model = read_header(context, file->bytes());
  if (!model.ok()) return std::move(model).status().with_context(path);
  return ModelInfo{model->ir_version, std::move(model->opset_imports), producer_of(*model)};
}

}  // namespace decant::onnx
