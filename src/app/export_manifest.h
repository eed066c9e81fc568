#pragma once

#include <string>

namespace decant::ir {
class Graph;
}
namespace decant::huggingface {
class ModelConfig;
}

namespace decant::app {

struct ExportOptions;

/// The text of export.json, in the layout of Transformers' exporters (schema version 1): one component
/// "model" whose inputs and outputs are described as pytree specs over nested dicts, so that a leaf's path,
/// joined with dots, is its name in the graph. Own keys stand under "decant" of the component's metadata: the
/// cache form, and the states as pairs of input and output names. `graph` is typed.
std::string export_manifest(const ir::Graph& graph, const huggingface::ModelConfig& config,
                            const ExportOptions& options, const std::string& model_file);

/// "LlamaForCausalLM": the first of the config's `architectures`, else its model_type.
std::string architecture_name(const huggingface::ModelConfig& config);

}  // namespace decant::app
