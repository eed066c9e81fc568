#include "formats/onnx/external_files.h"

#include <algorithm>

#include "base/mapped_file.h"
#include "formats/onnx/messages.h"

namespace decant::onnx {
namespace {

Status add_tensor(ParseContext& context, Bytes bytes, std::vector<std::string>& out) {
  DECANT_ASSIGN(const TensorMessage tensor, parse_tensor(context, bytes));
  for (const auto& [key, value] : tensor.external) {
    if (key == "location" && std::ranges::find(out, value) == out.end()) out.emplace_back(value);
  }
  return ok_status();
}

void add_nodes(const std::vector<NodeMessage>& nodes, std::vector<Bytes>& tensors,
               std::vector<Bytes>& graphs) {
  for (const NodeMessage& node : nodes) {
    for (const AttributeMessage& attribute : node.attributes) {
      if (!attribute.tensor.empty()) tensors.push_back(attribute.tensor);
      if (!attribute.graph.empty()) graphs.push_back(attribute.graph);
    }
  }
}

}  // namespace

Result<std::vector<std::string>> external_files(const std::string& path) {
  DECANT_ASSIGN(const auto file, MappedFile::open(path));
  ParseContext context{file->bytes().data()};
  DECANT_ASSIGN(const ModelMessage model, parse_model(context, file->bytes()));
  std::vector<std::string> out;
  std::vector<Bytes> tensors, graphs;
  if (model.graph) graphs.push_back(*model.graph);
  for (const Bytes bytes : model.functions) {
    DECANT_ASSIGN(const FunctionMessage function, parse_function(context, bytes));
    add_nodes(function.nodes, tensors, graphs);
  }
  while (!graphs.empty()) {
    const Bytes bytes = graphs.back();
    graphs.pop_back();
    DECANT_ASSIGN(const GraphMessage graph, parse_graph(context, bytes));
    tensors.insert(tensors.end(), graph.initializers.begin(), graph.initializers.end());
    add_nodes(graph.nodes, tensors, graphs);
  }
  for (const Bytes bytes : tensors) DECANT_RETURN_IF_ERROR(add_tensor(context, bytes, out));
  return out;
}

}  // namespace decant::onnx
