#include "app/export_manifest.h"

#include <nlohmann/json.hpp>

#include "app/export.h"
#include "decant/version.h"
#include "formats/huggingface/config.h"
#include "ir/graph.h"

namespace decant::app {
namespace {

using Json = nlohmann::ordered_json;

/// A tree of dicts: names split at dots. An empty object is a leaf.
Json name_tree(const std::vector<ir::Value*>& values) {
  Json tree = Json::object();
  for (const ir::Value* value : values) {
    Json* at = &tree;
    for (size_t begin = 0; begin <= value->name.size();) {
      const size_t end = std::min(value->name.find('.', begin), value->name.size());
      at = &(*at)[value->name.substr(begin, end - begin)];
      if (at->is_null()) *at = Json::object();
      begin = end + 1;
    }
  }
  return tree;
}

/// torch.utils._pytree's form of a nest of dicts; contexts are JSON texts themselves.
Json spec_node(const Json& tree) {
  if (tree.empty()) return Json{{"type", nullptr}, {"context", nullptr}, {"children_spec", Json::array()}};
  Json keys = Json::array(), children = Json::array();
  for (const auto& [key, child] : tree.items()) {
    keys.push_back(key);
    children.push_back(spec_node(child));
  }
  return Json{{"type", "builtins.dict"}, {"context", keys.dump()}, {"children_spec", children}};
}

std::string spec_text(const Json& node) { return Json::array({1, node}).dump(); }

/// (args, kwargs) with no positional arguments.
Json call_spec(const Json& kwargs) {
  auto tuple = [](Json children) {
    return Json{{"type", "builtins.tuple"}, {"context", "null"}, {"children_spec", std::move(children)}};
  };
  return tuple(Json::array({tuple(Json::array()), spec_node(kwargs)}));
}

/// Sizes of a run that the manifest shows as an example where the graph leaves them open.
int64_t example_size(const std::string& symbol) { return symbol == "max_cache_len" ? 16 : 2; }

Json describe_leaf(const ir::Value& value) {
  Json shape = Json::array();
  for (const ir::Dim& dim : value.shape.value_or(ir::Shape{})) {
    const auto size =
        dim.evaluate([](const std::string& symbol) { return std::optional(example_size(symbol)); });
    shape.push_back(size.ok() ? *size : 0);
  }
  return Json{{"rank", shape.size()}, {"shape", shape}, {"dtype", std::string(to_string(value.dtype))}};
}

Json describe_inputs(const ir::Graph& graph) {
  Json kwargs = Json::object();
  for (const ir::Value* value : graph.inputs()) {
    const size_t dot = value->name.find('.');
    if (dot == std::string::npos) {
      kwargs[value->name] = describe_leaf(*value);
    } else {
      kwargs[value->name.substr(0, dot)]["leaves"][value->name.substr(dot + 1)] = describe_leaf(*value);
    }
  }
  return kwargs;
}

const char* cache_name(models::CacheForm form) {
  switch (form) {
    case models::CacheForm::kNone:
      return "none";
    case models::CacheForm::kDynamic:
      return "dynamic";
    case models::CacheForm::kStatic:
      return "static";
  }
  return "";
}

Json describe_states(const ir::Graph& graph) {
  Json states = Json::array();
  for (const ir::State& state : graph.states) {
    states.push_back(Json{{"input", state.input->name},
                          {"output", state.output->name},
                          {"kind", state.kind == ir::State::Kind::kKeyValue ? "key_value" : "counter"},
                          {"form", state.form == ir::State::Form::kGrowing ? "growing" : "fixed"},
                          {"axis", state.axis}});
  }
  return states;
}

}  // namespace

std::string architecture_name(const huggingface::ModelConfig& config) {
  const std::vector<std::string> names = config.architectures();
  if (!names.empty()) return names[0];
  const auto type = config.model_type();
  return type.ok() ? *type : std::string();
}

std::string export_manifest(const ir::Graph& graph, const huggingface::ModelConfig& config,
                            const ExportOptions& options, const std::string& model_file) {
  Json own{{"version", version()}, {"cache", cache_name(options.cache)}};
  if (options.precision.packs()) own["precision"] = options.precision.name;
  own["max_cache_len"] = options.max_cache_len ? Json(*options.max_cache_len) : Json(nullptr);
  own["states"] = describe_states(graph);
  Json metadata{
      {"architecture", architecture_name(config)},
      {"packages", Json{{"decant", version()}}},
      {"export_config", Json{{"dynamic", true},
                             {"dynamic_shapes", nullptr},
                             {"export_format", "onnx"},
                             {"opset_version", options.opset},
                             {"optimize", true},
                             {"ort_fusions", nullptr},
                             {"prefer_deferred_runtime_asserts_over_guards", false},
                             {"strict", false}}},
      {"export_dtype", std::string(to_string(options.precision.dtype))},
      {"export_device", "cpu"},
      {"kwargs", describe_inputs(graph)},
      {"in_spec", spec_text(call_spec(name_tree(graph.inputs())))},
      {"out_spec", spec_text(spec_node(name_tree(graph.outputs())))},
      {"in_constants", Json::object()},
      {"out_constants", Json::array()},
      {"decant", std::move(own)},
  };
  Json manifest{{"schema_version", 1}, {"export_format", "onnx"}};
  manifest["components"]["model"] = Json{{"file", model_file}, {"metadata", std::move(metadata)}};
  return manifest.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace decant::app
