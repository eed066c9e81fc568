#include "app/inspect.h"

#include <filesystem>

#include "app/layout.h"
#include "app/load_graph.h"
#include "app/text_files.h"
#include "passes/passes.h"
#include "runtime/kernel.h"
#include "runtime/plan_builder.h"

namespace decant::app {
namespace {

std::string type_of(const ir::Value& v) {
  return std::string(to_string(v.dtype)) + (v.shape ? ir::to_string(*v.shape) : "[...]");
}

std::string op_name(const ir::Node& node) {
  return node.domain().empty() ? node.op() : node.domain() + "::" + node.op();
}

void count_ops(const ir::Graph& graph, std::map<std::string, int64_t>& counts) {
  for (const auto& node : graph.nodes()) {
    ++counts[op_name(*node)];
    for (const auto& [key, attribute] : node->attributes) {
      const auto* sub = std::get_if<std::shared_ptr<ir::Graph>>(&attribute);
      if (sub && *sub) count_ops(**sub, counts);
    }
  }
}

/// Operators of the graph, and of its branches and bodies.
std::map<std::string, int64_t> count_ops(const ir::Graph& graph) {
  std::map<std::string, int64_t> counts;
  count_ops(graph, counts);
  return counts;
}

/// Operators that lifting makes, where there are more of them than the file had.
std::map<std::string, int64_t> count_lifted(const std::map<std::string, int64_t>& before,
                                            const std::map<std::string, int64_t>& after) {
  std::map<std::string, int64_t> counts;
  for (const char* op : {"Attention", "Gelu", "LayerNormalization", "RMSNormalization", "RotaryEmbedding",
                         "decant::GroupedMatMul", "SwiGLU", "Swish", "TensorScatter"}) {
    const auto now = after.find(op), then = before.find(op);
    const int64_t more = (now == after.end() ? 0 : now->second) - (then == before.end() ? 0 : then->second);
    if (more > 0) counts[op] = more;
  }
  return counts;
}

int64_t cache_bytes(const ir::Graph& graph) {
  int64_t sum = 0;
  for (const ir::State& s : graph.states) {
    if (s.kind != ir::State::Kind::kKeyValue || !s.input->shape) continue;
    int64_t n = static_cast<int64_t>(size_of(s.input->dtype));
    for (size_t axis = 0; axis < s.input->shape->size(); ++axis) {
      if (static_cast<int>(axis) != s.axis) n *= (*s.input->shape)[axis].as_constant().value_or(1);
    }
    sum += n;
  }
  return sum;
}

/// The file and what lies beside it under the same name (external data).
int64_t bytes_on_disk(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  int64_t sum = 0;
  if (fs::is_directory(path, error)) return 0;
  const std::string name = fs::path(path).filename().string();
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string other = entry.path().filename().string();
    const bool data = other.compare(0, name.size(), name) == 0 &&
                      (other.size() == name.size() || other[name.size()] == '.' || other[name.size()] == '_');
    if (data && entry.is_regular_file(error)) sum += static_cast<int64_t>(entry.file_size(error));
  }
  return sum;
}

Result<ComponentInfo> inspect_component(const Layout& layout, const Component& component) {
  ComponentInfo info;
  info.name = component.name;
  info.file = component.path;
  info.role = to_string(component.role);
  info.bytes_on_disk = bytes_on_disk(component.path);
  DECANT_ASSIGN(auto graph, load_graph(layout, component));
  info.ops = count_ops(*graph);
  for (const auto& v : graph->values()) {
    if (v->constant)
      info.weights[std::string(to_string(v->dtype))] += static_cast<int64_t>(v->constant->bytes());
  }
  auto branches = choose_cache_branch(*graph, true);
  if (!branches.ok()) return std::move(branches).status().with_context(component.path);
  DECANT_RETURN_IF_ERROR(passes::optimize_for_forward(*graph).with_context(component.path));
  if (*branches) info.inputs.emplace_back("use_cache_branch", "bool, fixed to true for what follows");
  for (const ir::Value* v : graph->inputs()) info.inputs.emplace_back(v->name, type_of(*v));
  for (const ir::Value* v : graph->outputs()) info.outputs.emplace_back(v->name, type_of(*v));
  for (const ir::State& s : graph->states) {
    info.states.push_back(s.input->name + " -> " + s.output->name +
                          (s.form == ir::State::Form::kGrowing ? " (growing" : " (fixed") + ", axis " +
                          std::to_string(s.axis) + ")");
  }
  info.compiled_ops = count_ops(*graph);
  info.lifted = count_lifted(info.ops, info.compiled_ops);
  for (const auto& node : graph->nodes()) {
    if (!runtime::is_view(*node) && !runtime::make_kernel(*node)) ++info.reference_ops[op_name(*node)];
  }
  info.cache_bytes_per_token = cache_bytes(*graph);
  return info;
}

}  // namespace

Result<Inspection> inspect(const std::string& path, const std::string& dtype) {
  DECANT_ASSIGN(const Layout layout, find_layout(path, dtype));
  Inspection result;
  result.layout = layout.description;
  result.dtype = layout.dtype;
  result.dtypes = layout.dtypes;
  result.missing = layout.missing;
  for (const Component& c : layout.components) {
    DECANT_ASSIGN(ComponentInfo info, inspect_component(layout, c));
    result.components.push_back(std::move(info));
  }
  if (auto files = TextFiles::load(layout); files.ok()) {
    for (const auto& entry : files->stop_tokens().entries())
      result.stop_tokens.emplace_back(entry.id, entry.sources);
  }
  return result;
}

}  // namespace decant::app
