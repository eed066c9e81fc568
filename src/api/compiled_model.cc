#include "decant/compiled_model.h"

#include <algorithm>
#include <cstring>

#include "api/model_impl.h"
#include "base/status.h"
#include "passes/passes.h"

namespace decant {
namespace {

int position(const std::vector<TensorInfo>& infos, std::string_view name) {
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::string names_of(const std::vector<TensorInfo>& infos) {
  std::string names;
  for (const TensorInfo& i : infos) names += (names.empty() ? "'" : ", '") + i.name + "'";
  return names;
}

Status unknown(const char* what, std::string_view name, const std::vector<TensorInfo>& infos) {
  return invalid_argument("no " + std::string(what) + " '" + std::string(name) + "'; there are " +
                          names_of(infos));
}

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() &&
         std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end()) &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

/// Points at the tensor's own dims and elements. Plans write to the states among their inputs only.
runtime::Arg arg_of(const Tensor& t) {
  return {t.dtype(), const_cast<void*>(t.data()), t.dims().data(), static_cast<int32_t>(t.rank()),
          t.elements()};
}

TensorView view_of(const runtime::Arg& a) { return {a.dtype, a.shape(), a.data, a.elements}; }

size_t bytes_of(const runtime::Arg& a) {
  return bytes_of(a.dtype, static_cast<uint64_t>(a.elements)).value_or(0);
}

}  // namespace

Result<std::shared_ptr<CompiledModel::Impl>> CompiledModel::Impl::create(std::shared_ptr<api::Core> core,
                                                                         const CompileOptions& options) {
  auto impl = std::make_shared<Impl>();
  impl->core = std::move(core);
  impl->options = options;
  impl->options.max_plans = std::max<size_t>(1, options.max_plans);
  impl->inputs = impl->core->inputs;
  impl->outputs = impl->core->outputs;
  for (const std::string& name : options.static_inputs) {
    const int i = position(impl->inputs, name);
    if (i < 0) return unknown("input", name, impl->inputs);
    impl->static_inputs.push_back(static_cast<size_t>(i));
  }
  if (options.fixed_caches && !options.static_inputs.empty())
    return unsupported("fixed_caches together with static inputs");
  if (options.static_inputs.empty()) {
    const std::lock_guard lock(impl->core->running);
    DECANT_ASSIGN(const Entry* entry, impl->compile({}));
    if (options.fixed_caches) impl->inputs = api::infos(entry->plan->graph().inputs());
  }
  for (const auto& [name, dims] : options.example_shapes) {
    if (position(impl->inputs, name) < 0) return unknown("input", name, impl->inputs);
  }
  return impl;
}

Result<CompiledModel::Impl::Entry*> CompiledModel::Impl::find_or_compile(std::span<const Tensor> tensors) {
  for (auto it = entries.begin(); it != entries.end(); ++it) {
    bool match = true;
    for (size_t i = 0; match && i < static_inputs.size(); ++i)
      match = same(it->key[i], tensors[static_inputs[i]]);
    if (!match) continue;
    entries.splice(entries.begin(), entries, it);
    return &entries.front();
  }
  std::vector<Tensor> key;
  for (size_t i : static_inputs) {
    const Tensor& t = tensors[i];
    DECANT_ASSIGN(Tensor copy,
                  Tensor::copy_bytes(t.dtype(), {t.dims().begin(), t.dims().end()}, t.data(), t.bytes()));
    key.push_back(std::move(copy));
  }
  return compile(std::move(key));
}

Result<CompiledModel::Impl::Entry*> CompiledModel::Impl::compile(std::vector<Tensor> key) {
  std::unique_ptr<ir::Graph> graph = core->graph->clone();
  for (size_t i = 0; i < static_inputs.size(); ++i) {
    auto owner = std::make_shared<Tensor>(key[i]);
    const ir::Tensor value =
        ir::Tensor::view(owner->dtype(), {owner->dims().begin(), owner->dims().end()}, owner->data(), owner);
    DECANT_RETURN_IF_ERROR(passes::bind_input(*graph, inputs[static_inputs[i]].name, value));
  }
  if (options.fixed_caches) {
    DECANT_RETURN_IF_ERROR(passes::optimize_with_fixed_caches(*graph).with_context(core->path));
  } else {
    DECANT_RETURN_IF_ERROR(passes::optimize_for_forward(*graph).with_context(core->path));
  }
  for (const auto& [role, values] :
       {std::pair("input", &graph->inputs()), std::pair("output", &graph->outputs())}) {
    for (const ir::Value* v : *values) {
      if (v->kind == ir::ValueKind::kTensor && v->dtype != DType::kString) continue;
      return unsupported(core->path + ": " + role + " '" + v->name + "' is a " +
                         std::string(to_string(v->kind)) + " of " + std::string(to_string(v->dtype)) +
                         "; tensors of numbers and bools are passed only");
    }
  }
  Entry entry;
  entry.key = std::move(key);
  DECANT_ASSIGN(entry.plan, runtime::Plan::compile(std::move(graph), core->engine));
  const ir::Graph& compiled = entry.plan->graph();
  const std::vector<TensorInfo> known = options.fixed_caches ? api::infos(compiled.inputs()) : inputs;
  for (const ir::Value* v : compiled.inputs()) {
    const int i = position(known, v->name);
    if (i < 0) return internal_error("input '" + v->name + "' appeared while compiling");
    entry.sources.push_back(static_cast<size_t>(i));
  }
  entry.state_input.assign(compiled.outputs().size(), -1);
  for (const ir::State& s : compiled.states) {
    for (size_t o = 0; o < compiled.outputs().size(); ++o) {
      if (compiled.outputs()[o] != s.output || !entry.plan->in_place(o)) continue;
      const auto& in = compiled.inputs();
      entry.state_input[o] = static_cast<int>(std::find(in.begin(), in.end(), s.input) - in.begin());
    }
  }
  if (!options.example_shapes.empty()) DECANT_RETURN_IF_ERROR(reserve(entry));
  entries.push_front(std::move(entry));
  if (entries.size() > options.max_plans) entries.pop_back();
  ++compile_count;
  return &entries.front();
}

Status CompiledModel::Impl::reserve(Entry& entry) const {
  const int64_t zero = 0;
  std::vector<runtime::Arg> args;
  for (const ir::Value* v : entry.plan->graph().inputs()) {
    auto it = options.example_shapes.find(v->name);
    static const std::vector<int64_t> kScalar;
    const std::vector<int64_t>* dims = it == options.example_shapes.end() ? nullptr : &it->second;
    if (!dims && v->shape && v->shape->empty()) dims = &kScalar;
    if (!dims) return invalid_argument("example_shapes names no shape for input '" + v->name + "'");
    int64_t elements = 1;
    for (int64_t d : *dims) {
      if (d < 0 || __builtin_mul_overflow(elements, d, &elements))
        return invalid_argument("the example shape of input '" + v->name + "' is impossible");
    }
    // Scalars give symbols their values: zero here. Nothing else is read.
    args.push_back({v->dtype, elements == 1 ? const_cast<int64_t*>(&zero) : nullptr, dims->data(),
                    static_cast<int32_t>(dims->size()), elements});
  }
  return entry.plan->reserve(args);
}

CompiledModel::CompiledModel(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

std::span<const TensorInfo> CompiledModel::inputs() const { return impl_->inputs; }
std::span<const TensorInfo> CompiledModel::outputs() const { return impl_->outputs; }

int64_t CompiledModel::compile_count() const {
  const std::lock_guard lock(impl_->core->running);
  return impl_->compile_count;
}

Result<NamedTensors> CompiledModel::run(const NamedTensors& inputs, const RunOptions& options) const {
  Binding binding = bind();
  for (const auto& [name, tensor] : inputs) DECANT_RETURN_IF_ERROR(binding.set_input(name, tensor));
  return binding.run_once(options);
}

struct Binding::Impl {
  std::shared_ptr<CompiledModel::Impl> model;
  std::vector<Tensor> inputs, outputs;  ///< by position; undefined where nothing is set
  std::vector<Tensor> private_states;   ///< by output: where a state is updated when its buffer is not bound
  std::vector<runtime::Arg> args;
  std::vector<TensorView> results;
  std::vector<bool> in_place;

  Status run(const RunOptions& options);
  Status place_states(const CompiledModel::Impl::Entry& entry);
  Status deliver(const CompiledModel::Impl::Entry& entry);
};

Binding CompiledModel::bind() const {
  auto binding = std::make_unique<Binding::Impl>();
  binding->model = impl_;
  binding->inputs.resize(impl_->inputs.size());
  binding->outputs.resize(impl_->outputs.size());
  binding->private_states.resize(impl_->outputs.size());
  binding->results.resize(impl_->outputs.size());
  binding->in_place.resize(impl_->outputs.size());
  binding->args.reserve(impl_->inputs.size());
  return Binding(std::move(binding));
}

Binding::Binding(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Binding::Binding(Binding&&) noexcept = default;
Binding& Binding::operator=(Binding&&) noexcept = default;
Binding::~Binding() = default;

Status Binding::set_input(std::string_view name, const Tensor& tensor) {
  const int i = position(impl_->model->inputs, name);
  if (i < 0) return unknown("input", name, impl_->model->inputs);
  if (tensor.dtype() == DType::kUndefined)
    return invalid_argument("input '" + std::string(name) + "': no tensor");
  impl_->inputs[static_cast<size_t>(i)] = tensor;
  return ok_status();
}

Status Binding::set_output(std::string_view name, const Tensor& tensor) {
  const int i = position(impl_->model->outputs, name);
  if (i < 0) return unknown("output", name, impl_->model->outputs);
  if (!tensor.writable())
    return invalid_argument("output '" + std::string(name) + "': its tensor may not be written");
  impl_->outputs[static_cast<size_t>(i)] = tensor;
  return ok_status();
}

Status Binding::clear_output(std::string_view name) {
  const int i = position(impl_->model->outputs, name);
  if (i < 0) return unknown("output", name, impl_->model->outputs);
  impl_->outputs[static_cast<size_t>(i)] = Tensor();
  return ok_status();
}

Status Binding::run(const RunOptions& options) {
  const std::lock_guard lock(impl_->model->core->running);
  return impl_->run(options);
}

/// States that the plan updates in place get memory that may be written: the bound output, or a buffer of our
/// own, holding what the input holds.
Status Binding::Impl::place_states(const CompiledModel::Impl::Entry& entry) {
  for (size_t o = 0; o < entry.state_input.size(); ++o) {
    in_place[o] = false;
    if (entry.state_input[o] < 0) continue;
    runtime::Arg& state = args[static_cast<size_t>(entry.state_input[o])];
    Tensor* target = &outputs[o];
    if (target->dtype() == DType::kUndefined) {
      target = &private_states[o];
      if (target->dtype() != state.dtype || !std::ranges::equal(target->dims(), state.shape())) {
        DECANT_ASSIGN(*target, Tensor::zeros(state.dtype, {state.shape().begin(), state.shape().end()}));
      }
    }
    if (target->data() == state.data) {
      in_place[o] = true;
      continue;
    }
    if (target->dtype() != state.dtype || !std::ranges::equal(target->dims(), state.shape()))
      continue;  // the run or the delivery reports it
    std::memmove(target->mutable_data(), state.data, target->bytes());
    state.data = target->mutable_data();
  }
  return ok_status();
}

Status Binding::Impl::deliver(const CompiledModel::Impl::Entry& entry) {
  for (size_t o = 0; o < results.size(); ++o) {
    const runtime::Arg& out = entry.plan->output(o);
    results[o] = view_of(out);
    Tensor& bound = outputs[o];
    if (bound.dtype() == DType::kUndefined) continue;
    if (bound.dtype() != out.dtype || !std::ranges::equal(bound.dims(), out.shape())) {
      return invalid_argument("output '" + model->outputs[o].name + "' is " +
                              ir::describe(out.dtype, out.shape()) + ", the tensor bound to it " +
                              ir::describe(bound.dtype(), bound.dims()));
    }
    if (out.data != bound.data() && bytes_of(out) > 0)
      std::memmove(bound.mutable_data(), out.data, bytes_of(out));
    results[o] = bound.view();
  }
  return ok_status();
}

Status Binding::Impl::run(const RunOptions& options) {
  std::fill(results.begin(), results.end(), TensorView());
  std::string missing;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() == DType::kUndefined)
      missing += (missing.empty() ? "'" : ", '") + model->inputs[i].name + "'";
  }
  if (!missing.empty()) return invalid_argument("no tensor for the inputs " + missing);
  DECANT_ASSIGN(CompiledModel::Impl::Entry * entry, model->find_or_compile(inputs));
  args.clear();
  for (size_t source : entry->sources) args.push_back(arg_of(inputs[source]));
  DECANT_RETURN_IF_ERROR(place_states(*entry));
  DECANT_RETURN_IF_ERROR(entry->plan->run(args, options));
  return deliver(*entry);
}

Result<NamedTensors> Binding::run_once(const RunOptions& options) {
  const std::lock_guard lock(impl_->model->core->running);
  DECANT_RETURN_IF_ERROR(impl_->run(options));
  NamedTensors out;
  for (size_t o = 0; o < impl_->results.size(); ++o) {
    const TensorView& v = impl_->results[o];
    DECANT_ASSIGN(Tensor t,
                  Tensor::copy_bytes(v.dtype, {v.dims.begin(), v.dims.end()}, v.data,
                                     bytes_of(v.dtype, static_cast<uint64_t>(v.elements)).value_or(0)));
    out.emplace(impl_->model->outputs[o].name, std::move(t));
  }
  return out;
}

TensorView Binding::output(std::string_view name) const {
  const int i = position(impl_->model->outputs, name);
  return i < 0 ? TensorView() : impl_->results[static_cast<size_t>(i)];
}

bool Binding::in_place(std::string_view name) const {
  const int i = position(impl_->model->outputs, name);
  return i >= 0 && impl_->in_place[static_cast<size_t>(i)];
}

}  // namespace decant
