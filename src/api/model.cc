#include "decant/model.h"

#include "api/custom_op.h"
#include "api/load.h"
#include "api/model_impl.h"
#include "app/hub_model.h"
#include "app/layout.h"
#include "app/load_graph.h"
#include "base/status.h"
#include "ir/op.h"
#include "passes/passes.h"

namespace decant {
namespace {

Result<const app::Component*> choose(const app::Layout& layout, const std::string& path,
                                     const std::string& name) {
  const app::Component* component = name.empty() ? layout.main() : layout.find(name);
  if (component) return component;
  std::string names;
  for (const app::Component& c : layout.components) names += (names.empty() ? "" : ", ") + c.name;
  const std::string message = path + ": choose one of its components: " + names;
  return name.empty() ? invalid_argument(message) : not_found(message);
}

}  // namespace

namespace api {

std::vector<TensorInfo> infos(const std::vector<ir::Value*>& values) {
  std::vector<TensorInfo> out;
  for (const ir::Value* v : values) {
    TensorInfo info{v->name, {v->dtype, std::nullopt}};
    if (v->shape) info.type.dims = dims_of(*v->shape);
    out.push_back(std::move(info));
  }
  return out;
}

std::string path_of(const HubModel& model) {
  return "hf://" + model.repository + (model.revision.empty() ? "" : "@" + model.revision) +
         (model.file.empty() ? "" : "/" + model.file);
}

Result<std::string> local_path(const std::string& path, const LoadOptions& options) {
  app::HubOptions hub;
  hub.dtype = options.dtype;
  hub.on_progress = options.on_download;
  return app::local_model(path, hub);
}

}  // namespace api

Model::Model(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<Model> Model::load(const std::string& model, const LoadOptions& options) {
  DECANT_ASSIGN(const std::string path, api::local_path(model, options));
  DECANT_ASSIGN(const api::CustomOps custom, api::CustomOps::create(options.custom_ops));
  DECANT_ASSIGN(const app::Layout layout, app::find_layout(path, options.dtype));
  DECANT_ASSIGN(const app::Component* component, choose(layout, path, options.component));
  auto core = std::make_shared<api::Core>();
  core->path = component->path;
  core->layout = layout.description;
  DECANT_ASSIGN(core->graph, app::load_graph(layout, *component));
  ir::Graph& graph = *core->graph;
  custom.attach(graph);
  DECANT_RETURN_IF_ERROR(passes::correct_labels(graph).status());
  DECANT_RETURN_IF_ERROR(passes::name_scalar_inputs(graph).status());
  DECANT_RETURN_IF_ERROR(ir::infer_types(graph).with_context(component->path));
  DECANT_ASSIGN(core->engine, runtime::Engine::create(options.threads, options.isa));
  core->inputs = api::infos(graph.inputs());
  core->outputs = api::infos(graph.outputs());
  auto impl = std::make_shared<Impl>();
  impl->core = std::move(core);
  return Model(std::move(impl));
}

Result<Model> Model::load(const HubModel& model, const LoadOptions& options) {
  return load(api::path_of(model), options);
}

std::span<const TensorInfo> Model::inputs() const { return impl_->core->inputs; }
std::span<const TensorInfo> Model::outputs() const { return impl_->core->outputs; }
const std::string& Model::layout() const { return impl_->core->layout; }

Result<CompiledModel> Model::compile(const CompileOptions& options) const {
  DECANT_ASSIGN(auto compiled, CompiledModel::Impl::create(impl_->core, options));
  return CompiledModel(std::move(compiled));
}

Result<NamedTensors> Model::run(const NamedTensors& inputs, const RunOptions& options) const {
  std::shared_ptr<CompiledModel::Impl> whole;
  {
    const std::lock_guard lock(impl_->lock);
    if (!impl_->whole) {
      DECANT_ASSIGN(impl_->whole, CompiledModel::Impl::create(impl_->core, {}));
    }
    whole = impl_->whole;
  }
  return CompiledModel(std::move(whole)).run(inputs, options);
}

}  // namespace decant
