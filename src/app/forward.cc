#include "app/forward.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>

#include "app/layout.h"
#include "app/load_graph.h"
#include "formats/safetensors/safetensors_file.h"
#include "formats/safetensors/safetensors_writer.h"
#include "ir/op.h"
#include "passes/passes.h"
#include "runtime/plan.h"

namespace decant::app {
namespace {

ir::Tensor tensor_of(const safetensors::Tensor& t) {
  return ir::Tensor::view(t.dtype, t.dims, t.bytes.data(), t.file);
}

/// Inputs by position. A growing cache that was not given is empty; batch and other dims are one.
Result<std::vector<ir::Tensor>> gather_inputs(const ir::Graph& graph,
                                              const safetensors::SafetensorsFile& file,
                                              const std::set<std::string>& bound = {}) {
  std::vector<ir::Tensor> inputs;
  std::string missing, unknown;
  for (const ir::Value* v : graph.inputs()) {
    if (const safetensors::Tensor* t = file.find(v->name)) {
      inputs.push_back(tensor_of(*t));
    } else {
      missing += (missing.empty() ? "'" : ", '") + v->name + "'";
    }
  }
  for (const safetensors::Tensor& t : file.tensors()) {
    bool known = bound.count(t.name) != 0;
    for (const ir::Value* v : graph.inputs()) known = known || v->name == t.name;
    if (!known) unknown += (unknown.empty() ? "'" : ", '") + t.name + "'";
  }
  if (!missing.empty()) {
    return invalid_argument(file.path() + ": the graph's inputs " + missing + " are missing" +
                            (unknown.empty() ? "" : "; unknown there: " + unknown));
  }
  if (!unknown.empty()) return invalid_argument(file.path() + ": the graph has no inputs " + unknown);
  return inputs;
}

/// Fixes the inputs that choose branches and drops what only other branches read; returns the names of both.
Result<std::set<std::string>> bind_conditions(ir::Graph& graph, const safetensors::SafetensorsFile& file) {
  std::set<std::string> names;
  for (const auto& node : graph.nodes()) {
    if (!node->is("If")) continue;
    const ir::Value* condition = node->input(0);
    for (const ir::Value* v : graph.inputs()) {
      if (v == condition && v->dtype == DType::kBool && file.find(v->name)) names.insert(v->name);
    }
  }
  if (names.empty()) return names;
  DECANT_RETURN_IF_ERROR(ir::infer_types(graph));
  for (const std::string& name : names)
    DECANT_RETURN_IF_ERROR(passes::bind_input(graph, name, tensor_of(*file.find(name))));
  // What only the branch not taken reads may have any shape, or be left out.
  std::set<std::string> before, after;
  for (const ir::Value* v : graph.inputs()) before.insert(v->name);
  DECANT_RETURN_IF_ERROR(passes::inline_branches(graph).status());
  DECANT_RETURN_IF_ERROR(passes::drop_unused_inputs(graph).status());
  for (const ir::Value* v : graph.inputs()) after.insert(v->name);
  std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                      std::inserter(names, names.end()));
  return names;
}

Status write_outputs(const std::string& path, const std::vector<NamedOutput>& outputs) {
  std::vector<safetensors::NamedTensor> tensors;
  for (const NamedOutput& o : outputs) {
    tensors.push_back(
        {o.name, o.tensor.dtype(), o.tensor.dims(), {o.tensor.data_as<std::byte>(), o.tensor.bytes()}});
  }
  return safetensors::write_safetensors(path, tensors);
}

}  // namespace

Status forward(const std::string& model, const std::string& inputs_path, const std::string& outputs_path,
               const ForwardOptions& options, std::vector<double>* seconds,
               std::vector<std::pair<std::string, double>>* profile) {
  DECANT_ASSIGN(const Layout layout, find_layout(model, options.dtype));
  const Component* component = options.component.empty() ? layout.main() : layout.find(options.component);
  if (!component) {
    std::string names;
    for (const Component& c : layout.components) names += " " + c.name;
    return invalid_argument(model + ": choose one of its components with --component:" + names);
  }
  DECANT_ASSIGN(auto graph, load_graph(layout, *component));
  DECANT_ASSIGN(auto file, safetensors::SafetensorsFile::open(inputs_path));
  std::vector<std::string> output_names;
  for (const ir::Value* v : graph->outputs()) output_names.push_back(v->name);

  std::vector<NamedOutput> outputs;
  auto now = [] { return std::chrono::steady_clock::now(); };
  if (options.reference) {
    DECANT_RETURN_IF_ERROR(passes::name_scalar_inputs(*graph).status());
    DECANT_RETURN_IF_ERROR(ir::infer_types(*graph));
    DECANT_ASSIGN(std::vector<ir::Tensor> inputs, gather_inputs(*graph, *file));
    const auto begin = now();
    DECANT_ASSIGN(std::vector<ir::Tensor> results, ir::evaluate_graph(*graph, inputs, options.limits));
    if (seconds) seconds->push_back(std::chrono::duration<double>(now() - begin).count());
    for (size_t i = 0; i < results.size(); ++i) outputs.push_back({output_names[i], results[i]});
    return write_outputs(outputs_path, outputs);
  }

  auto bound = bind_conditions(*graph, *file);
  if (!bound.ok()) return std::move(bound).status().with_context(component->path);
  DECANT_RETURN_IF_ERROR(passes::optimize_for_forward(*graph).with_context(component->path));
  if (options.compute_type == DType::kFloat16 || options.compute_type == DType::kBFloat16)
    DECANT_RETURN_IF_ERROR(passes::hold_weights(*graph, options.compute_type).status());
  DECANT_ASSIGN(std::vector<ir::Tensor> inputs, gather_inputs(*graph, *file, *bound));
  DECANT_ASSIGN(auto engine, runtime::Engine::create(options.threads, options.isa));
  runtime::PlanOptions plan_options;
  plan_options.states_in_place = false;  // inputs are a mapped, read-only file
  plan_options.precision = options.precision;
  DECANT_ASSIGN(auto plan, runtime::Plan::compile(std::move(graph), engine, plan_options));
  std::vector<runtime::Arg> args;
  for (const ir::Tensor& t : inputs) {
    args.push_back({t.dtype(), const_cast<void*>(t.data()), t.dims().data(), static_cast<int32_t>(t.rank()),
                    t.elements()});
  }
  plan->set_profiling(profile != nullptr);
  for (int i = 0; i < options.repeat; ++i) {
    const auto begin = now();
    DECANT_RETURN_IF_ERROR(plan->run(args, options.limits));
    if (seconds) seconds->push_back(std::chrono::duration<double>(now() - begin).count());
  }
  if (profile) {
    for (const runtime::Plan::Profile& p : plan->profile()) profile->emplace_back(p.op, p.seconds);
  }
  for (size_t i = 0; i < output_names.size(); ++i) {
    const runtime::Arg& out = plan->output(i);
    if (out.datum || out.dtype == DType::kString) {
      return unsupported("output '" + output_names[i] + "' is no tensor that a safetensors file holds");
    }
    outputs.push_back(
        {output_names[i], ir::Tensor::view(out.dtype, {out.dims, out.dims + out.rank}, out.data, nullptr)});
  }
  return write_outputs(outputs_path, outputs);
}

}  // namespace decant::app
