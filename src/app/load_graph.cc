#include "app/load_graph.h"

#include <algorithm>

#include "app/source.h"
#include "formats/onnx/reader.h"
#include "ir/op.h"
#include "models/architecture.h"
#include "passes/passes.h"

namespace decant::app {
namespace {

Status use_usual_names(ir::Graph& graph, const Component& component) {
  size_t found = 0;
  for (const auto& v : graph.values()) {
    auto it = component.usual_names.find(v->name);
    if (it == component.usual_names.end()) continue;
    v->name = it->second;
    ++found;
  }
  if (!component.usual_names.empty() && found == 0) {
    return invalid_model(component.path +
                         ": none of the names in the folder's configuration is in the graph (" +
                         component.usual_names.begin()->first + ", ...)");
  }
  if (component.head_size == 0) return ok_status();
  for (ir::Value* v : graph.inputs()) {
    const bool cache = !passes::state_output_name(v->name).empty() && v->shape && v->shape->size() == 4;
    if (cache && !(*v->shape)[3].is_constant()) (*v->shape)[3] = ir::Dim(component.head_size);
  }
  return ok_status();
}

Result<ir::Tensor> flag(const ir::Value& input, bool value) {
  std::vector<int64_t> dims;
  for (size_t i = 0; input.shape && i < input.shape->size(); ++i) dims.push_back(1);
  DECANT_ASSIGN(ir::Tensor t, ir::Tensor::allocate(DType::kBool, dims));
  *static_cast<uint8_t*>(t.mutable_data()) = value;
  return t;
}

}  // namespace

Result<std::unique_ptr<ir::Graph>> load_graph(const Layout& layout, const Component& component) {
  if (layout.kind == Layout::Kind::kOnnx) return onnx::read_model(component.path);
  DECANT_ASSIGN(const Source source, open_source(component.path));
  models::CaptureOptions options;
  options.cache = models::CacheForm::kStatic;
  DECANT_ASSIGN(const auto dtype, source.config.dtype());
  if (dtype && (*dtype == DType::kFloat16 || *dtype == DType::kBFloat16)) options.dtype = *dtype;
  return models::capture(*config_view(source.config), *source.weights, options);
}

Result<bool> choose_cache_branch(ir::Graph& graph, bool with_past) {
  const auto& inputs = graph.inputs();
  const auto branch = std::find_if(inputs.begin(), inputs.end(), [](const ir::Value* v) {
    return v->name == "use_cache_branch" && v->dtype == DType::kBool;
  });
  if (branch == inputs.end()) return false;
  DECANT_RETURN_IF_ERROR(ir::infer_types(graph));
  DECANT_ASSIGN(const ir::Tensor value, flag(**branch, with_past));
  DECANT_RETURN_IF_ERROR(passes::bind_input(graph, "use_cache_branch", value));
  DECANT_RETURN_IF_ERROR(passes::inline_branches(graph).status());
  DECANT_RETURN_IF_ERROR(ir::infer_types(graph));
  return true;
}

Result<std::unique_ptr<ir::Graph>> load_for_generation(const Layout& layout, const Component& component,
                                                       bool with_past, bool* branches) {
  DECANT_ASSIGN(auto graph, load_graph(layout, component));
  if (layout.kind != Layout::Kind::kOnnx) return graph;
  DECANT_RETURN_IF_ERROR(use_usual_names(*graph, component));
  auto chosen = choose_cache_branch(*graph, with_past);
  if (!chosen.ok()) return std::move(chosen).status().with_context(component.path);
  if (branches) *branches = *chosen;
  DECANT_RETURN_IF_ERROR(passes::drop_unused_inputs(*graph).status());
  return graph;
}

}  // namespace decant::app
