#include "runtime/plan.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <new>

#include "base/checked.h"
#include "base/memory_limit.h"
#include "ir/control_flow.h"
#include "ir/op.h"
#include "runtime/plan_builder.h"

namespace decant::runtime {
namespace {

constexpr size_t kAlignment = 64;
/// Room for sizes that grow by a position a step (masks), so that decoding does not reallocate.
constexpr size_t kArenaSlack = size_t{256} << 10;

size_t align_up(size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

void free_arena(std::byte* p) { ::operator delete (p, std::align_val_t{kAlignment}); }

Arg arg_of(const ir::Datum& datum) {
  Arg arg;
  if (!datum.is_tensor()) {
    arg.datum = &datum;
    if (datum.is_sequence() && !datum.items().empty()) arg.dtype = datum.items()[0].dtype();
    return arg;
  }
  const ir::Tensor& t = datum.tensor();
  arg.dtype = t.dtype();
  arg.data = const_cast<void*>(t.data());
  arg.dims = t.dims().data();
  arg.rank = static_cast<int32_t>(t.rank());
  arg.elements = t.elements();
  return arg;
}

/// A view: it owns nothing.
ir::Datum datum_of(const Arg& arg) {
  if (arg.datum) return *arg.datum;
  return ir::Tensor::view(arg.dtype, {arg.dims, arg.dims + arg.rank}, arg.data, nullptr);
}

std::string describe(const Arg& arg) {
  return arg.datum ? ir::describe(*arg.datum) : ir::describe(arg.dtype, arg.shape());
}

/// Whether an input may be given for a value whose shape is not planned.
bool fits(const ir::Value& v, const Arg& arg) {
  switch (v.kind) {
    case ir::ValueKind::kTensor:
      return arg.datum == nullptr && arg.dtype == v.dtype;
    case ir::ValueKind::kSequence:
      return arg.datum && arg.datum->is_sequence();
    case ir::ValueKind::kOptional:
      return arg.datum ? arg.datum->is_empty() : arg.dtype == v.dtype;
    case ir::ValueKind::kOptionalSequence:
      return arg.datum != nullptr;
  }
  return false;
}

Status dim_error(const ir::Value& v, const Arg& arg, size_t axis, int64_t expected) {
  return invalid_argument("input '" + v.name + "' is " + ir::describe(arg.dtype, arg.shape()) + ": dim " +
                          std::to_string(axis) + " is " + std::to_string(arg.dims[axis]) + ", expected " +
                          (*v.shape)[axis].to_string() + " = " + std::to_string(expected));
}

}  // namespace

Result<std::shared_ptr<Engine>> Engine::create(int threads, std::string_view isa_name) {
  DECANT_ASSIGN(const Isa isa, select_isa(isa_name.empty() ? std::nullopt : std::optional(isa_name)));
  if (!kernels::kernel_table(isa))
    return unsupported("this build has no kernels for " + std::string(to_string(isa)));
  return std::make_shared<Engine>(isa, threads > 0 ? threads : default_thread_count());
}

Result<std::unique_ptr<Plan>> Plan::compile(std::unique_ptr<ir::Graph> graph, std::shared_ptr<Engine> engine,
                                            const PlanOptions& options) {
  auto plan = std::unique_ptr<Plan>(new Plan());
  plan->graph_ = std::move(graph);
  plan->engine_ = std::move(engine);
  DECANT_RETURN_IF_ERROR(PlanBuilder(*plan, options).build());
  DECANT_RETURN_IF_ERROR(plan->finish());
  return plan;
}

Status Plan::finish() {
  size_t dims = 0;
  for (Slot& slot : values_) {
    slot.dims_at = dims;
    dims += slot.dim_slots.size();
  }
  dims_.resize(dims);
  for (size_t v = 0; v < values_.size(); ++v) {
    Slot& slot = values_[v];
    Arg& arg = args_[v];
    if (slot.storage == Storage::kConstant) {
      arg = arg_of(slot.datum);
    } else if (slot.storage != Storage::kDynamic) {
      arg.dims = dims_.data() + slot.dims_at;
      arg.rank = static_cast<int32_t>(slot.dim_slots.size());
    }
  }
  bound_symbols_.resize(symbol_sources_.size(), -1);
  return ok_status();
}

Plan::~Plan() {
  if (arena_) free_arena(arena_);
}

Status Plan::bind_inputs(std::span<const Arg> inputs, bool* changed) {
  const auto& declared = declared_;
  if (inputs.size() != declared.size()) {
    return invalid_argument("the graph takes " + std::to_string(declared.size()) + " inputs, " +
                            std::to_string(inputs.size()) + " were given");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Value& v = *declared[i];
    const Arg& arg = inputs[i];
    const auto index = static_cast<size_t>(input_values_[i]);
    if (values_[index].storage == Storage::kDynamic) {
      if (!fits(v, arg)) {
        return invalid_argument("input '" + v.name + "' is " + describe(arg) + ", expected a " +
                                std::string(to_string(v.kind)) + " of " + std::string(to_string(v.dtype)));
      }
      if (v.shape && !arg.datum && v.kind == ir::ValueKind::kTensor &&
          arg.rank != static_cast<int32_t>(v.shape->size())) {
        return invalid_argument("input '" + v.name + "' is " + describe(arg) + ", expected " +
                                std::string(to_string(v.dtype)) + ir::to_string(*v.shape));
      }
      args_[index] = arg;
      continue;
    }
    if (arg.datum || arg.dtype != v.dtype || arg.rank != static_cast<int32_t>(v.shape->size())) {
      return invalid_argument("input '" + v.name + "' is " + describe(arg) + ", expected " +
                              std::string(to_string(v.dtype)) + ir::to_string(*v.shape));
    }
    args_[index].data = arg.data;
  }
  *changed = !ready_;
  for (size_t s = 0; s < symbol_sources_.size(); ++s) {
    const SymbolSource& source = symbol_sources_[s];
    const Arg& arg = inputs[static_cast<size_t>(source.input)];
    int64_t value = 0;
    if (source.axis >= 0) {
      value = arg.dims[source.axis];
    } else if (arg.elements == 1) {
      value = ir::Tensor::view(arg.dtype, {}, arg.data, nullptr).int_at(0);
    }
    if (value < 0) {
      return invalid_argument("input '" + declared[static_cast<size_t>(source.input)]->name +
                              "': a length or dim is negative");
    }
    if (bound_symbols_[s] == value && !*changed) continue;
    bound_symbols_[s] = value;
    dims_program_.set(source.slot, value);
    *changed = true;
  }
  for (InheritedSymbol& s : inherited_) {
    const int64_t value = outer_->dims_program_.at(s.outer_slot);
    if (s.bound == value && !*changed) continue;
    s.bound = value;
    dims_program_.set(s.slot, value);
    *changed = true;
  }
  if (*changed) DECANT_RETURN_IF_ERROR(dims_program_.evaluate());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Slot& slot = values_[static_cast<size_t>(input_values_[i])];
    for (size_t axis = 0; axis < slot.dim_slots.size(); ++axis) {
      const int64_t expected = dims_program_.at(slot.dim_slots[axis]);
      if (inputs[i].dims[axis] != expected) return dim_error(*declared[i], inputs[i], axis, expected);
    }
  }
  return ok_status();
}

Status Plan::resize() {
  std::fill(buffer_bytes_.begin(), buffer_bytes_.end(), 0);
  for (size_t v = 0; v < values_.size(); ++v) {
    const Slot& slot = values_[v];
    if (slot.storage == Storage::kConstant || slot.storage == Storage::kDynamic) continue;
    for (size_t d = 0; d < slot.dim_slots.size(); ++d)
      dims_[slot.dims_at + d] = dims_program_.at(slot.dim_slots[d]);
    Arg& arg = args_[v];
    const auto elements = checked_elements(arg.shape());
    const auto bytes = elements ? bytes_of(arg.dtype, *elements) : std::nullopt;
    if (!bytes || *bytes > uint64_t{1} << 46) {
      return invalid_argument("a tensor of " + ir::describe(arg.dtype, arg.shape()) +
                              " is impossible for these inputs");
    }
    arg.elements = static_cast<int64_t>(*elements);
    if (slot.storage == Storage::kArena) {
      int64_t& buffer = buffer_bytes_[static_cast<size_t>(slot.buffer)];
      buffer = std::max(buffer, static_cast<int64_t>(*bytes));
    }
  }
  for (int v : aliases_) {
    const Arg &view = args_[static_cast<size_t>(v)],
              &whole = args_[static_cast<size_t>(values_[static_cast<size_t>(v)].root)];
    if (view.elements != whole.elements) {
      return invalid_argument("a reshape of " + ir::describe(whole.dtype, whole.shape()) + " to " +
                              ir::describe(view.dtype, view.shape()) +
                              " does not keep the number of elements");
    }
  }
  scratch_bytes_ = 0;
  for (Step& step : steps_) {
    if (!step.kernel) continue;
    for (size_t i = 0; i < step.inputs.size(); ++i)
      step.input_args[i] = step.inputs[i] < 0 ? Arg{} : args_[static_cast<size_t>(step.inputs[i])];
    for (size_t i = 0; i < step.outputs.size(); ++i)
      step.output_args[i] = step.outputs[i] < 0 ? Arg{} : args_[static_cast<size_t>(step.outputs[i])];
    scratch_bytes_ = std::max(
        scratch_bytes_, step.kernel->scratch_bytes(step.input_args, step.output_args, engine_->pool.size()));
  }
  size_t total = align_up(scratch_bytes_);
  for (int64_t b : buffer_bytes_) total += align_up(static_cast<size_t>(b));
  if (total > arena_bytes_) {
    if (arena_) free_arena(arena_);
    arena_ = nullptr;
    arena_bytes_ = 0;
    total += total / 8 + kArenaSlack;
    if (total <= memory_limit())
      arena_ = static_cast<std::byte*>(::operator new (total, std::align_val_t{kAlignment}, std::nothrow));
    if (!arena_)
      return resource_error("no memory for " + std::to_string(total) +
                            " bytes of activations; use a shorter prompt or a smaller batch");
    arena_bytes_ = total;
  }
  std::byte* at = arena_ + align_up(scratch_bytes_);
  size_t offset = 0;
  for (size_t b = 0; b < buffer_bytes_.size(); ++b) {
    buffer_offsets_[b] = offset;
    offset += align_up(static_cast<size_t>(buffer_bytes_[b]));
  }
  for (size_t v = 0; v < values_.size(); ++v) {
    if (values_[v].storage == Storage::kArena)
      args_[v].data = at + buffer_offsets_[static_cast<size_t>(values_[v].buffer)];
  }
  return ok_status();
}

Status Plan::reserve(std::span<const Arg> inputs) {
  bool changed = false;
  ready_ = false;
  DECANT_RETURN_IF_ERROR(bind_inputs(inputs, &changed));
  return resize();
}

Status Plan::run_data(std::span<const ir::Datum> inputs, const RunOptions& options) {
  std::vector<Arg> args;
  for (const ir::Datum& d : inputs) args.push_back(arg_of(d));
  return run(args, options);
}

Result<ir::Datum> Plan::output_datum(size_t i) const { return ir::owned(datum_of(output(i))); }

Status Plan::run(std::span<const Arg> inputs, const RunOptions& options) {
  options_ = &options;
  bool changed = false;
  ready_ = ready_ && arena_ != nullptr;
  if (Status s = bind_inputs(inputs, &changed); !s.ok()) {
    ready_ = false;
    return s;
  }
  if (changed) {
    ready_ = false;
    DECANT_RETURN_IF_ERROR(resize());
    ready_ = true;
  }
  for (int v : aliases_)
    args_[static_cast<size_t>(v)].data =
        args_[static_cast<size_t>(values_[static_cast<size_t>(v)].root)].data;
  for (Step& step : steps_) {
    if (options.limited()) {
      if (Status s = options.check(); !s.ok()) return std::move(s).with_context(step.node->describe());
    }
    if (!profiling_) {
      DECANT_RETURN_IF_ERROR(run_step(step));
      continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    DECANT_RETURN_IF_ERROR(run_step(step));
    step.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ++step.calls;
  }
  return ok_status();
}

Status Plan::run_step(Step& step) {
  for (size_t i = 0; i < step.inputs.size(); ++i)
    step.input_args[i] = step.inputs[i] < 0 ? Arg{} : args_[static_cast<size_t>(step.inputs[i])];
  for (size_t i = 0; i < step.outputs.size(); ++i)
    step.output_args[i] = step.outputs[i] < 0 ? Arg{} : args_[static_cast<size_t>(step.outputs[i])];
  if (!step.bodies.empty()) return run_control_flow(step);
  if (!step.kernel) return run_reference(step);
  Call call{step.input_args, step.output_args, {arena_, align_up(scratch_bytes_)}, engine_->context()};
  if (Status s = step.kernel->run(call); !s.ok()) {
    // A kernel may find out from its operands' values only that it does not cover them.
    if (s.code() == StatusCode::kUnsupported) return run_reference(step);
    return std::move(s).with_context(step.node->describe());
  }
  return ok_status();
}

Status Plan::run_reference(Step& step) {
  std::vector<ir::Datum> held(step.inputs.size());
  std::vector<const ir::Datum*> inputs(step.inputs.size(), nullptr);
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (step.inputs[i] < 0) continue;
    held[i] = datum_of(step.input_args[i]);
    inputs[i] = &held[i];
  }
  DECANT_ASSIGN(std::vector<ir::Datum> results, ir::evaluate_node_data(*step.node, inputs));
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] < 0) continue;
    if (i >= results.size())
      return internal_error(step.node->describe() + ": the reference kernel gave too few outputs");
    DECANT_RETURN_IF_ERROR(store(step, i, std::move(results[i])));
  }
  return ok_status();
}

Status Plan::store(const Step& step, size_t output, ir::Datum result) {
  const auto v = static_cast<size_t>(step.outputs[output]);
  Arg& arg = args_[v];
  if (values_[v].storage == Storage::kDynamic) {
    // A view result may share an input's memory that the arena reuses: keep an own copy of what is not owned.
    DECANT_ASSIGN(values_[v].datum, ir::owned(std::move(result)));
    values_[v].holds = true;
    arg = arg_of(values_[v].datum);
    return ok_status();
  }
  if (!result.is_tensor() || arg.dtype != result.tensor().dtype() ||
      !std::equal(arg.dims, arg.dims + arg.rank, result.tensor().dims().begin(),
                  result.tensor().dims().end())) {
    return internal_error(step.node->describe() + ": computed " + ir::describe(result) + ", planned " +
                          ir::describe(arg.dtype, arg.shape()));
  }
  if (result.tensor().bytes()) std::memcpy(arg.data, result.tensor().data(), result.tensor().bytes());
  return ok_status();
}

Status Plan::run_control_flow(Step& step) {
  const size_t count = step.node->inputs().size();
  std::vector<ir::Datum> held(count);
  std::vector<const ir::Datum*> inputs(count, nullptr);
  for (size_t i = 0; i < count; ++i) {
    if (step.inputs[i] < 0) continue;
    held[i] = datum_of(step.input_args[i]);
    inputs[i] = &held[i];
  }
  if (step.node->is("If")) return run_branch(step, inputs);
  const ir::RunBody body = [&](std::span<const ir::Datum> arguments) {
    return run_body(step, step.bodies[0], arguments);
  };
  auto results = step.node->is("Loop")   ? ir::run_loop(*step.node, inputs, body, *options_)
                 : step.node->is("Scan") ? ir::run_scan(*step.node, inputs, body, *options_)
                                         : ir::run_sequence_map(*step.node, inputs, body, *options_);
  if (!results.ok()) return std::move(results).status();
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] >= 0) DECANT_RETURN_IF_ERROR(store(step, i, std::move((*results)[i])));
  }
  return ok_status();
}

Result<std::vector<ir::Datum>> Plan::run_body(Step& step, Body& body, std::span<const ir::Datum> arguments) {
  std::vector<Arg> args;
  for (const ir::Datum& d : arguments) args.push_back(arg_of(d));
  for (size_t i : body.captures) args.push_back(step.input_args[i]);
  DECANT_RETURN_IF_ERROR(body.plan->run(args, *options_).with_context(step.node->describe()));
  std::vector<ir::Datum> results;
  for (size_t i = 0; i < body.plan->output_values_.size(); ++i) {
    DECANT_ASSIGN(ir::Datum result, body.plan->own_output(i));
    results.push_back(std::move(result));
  }
  return results;
}

Result<ir::Datum> Plan::own_output(size_t i) const {
  const Slot& slot = values_[static_cast<size_t>(output_values_[i])];
  // What a slot holds is shared, not copied, as far as it owns its memory.
  if (slot.storage == Storage::kConstant || (slot.storage == Storage::kDynamic && slot.holds))
    return ir::owned(slot.datum);
  return output_datum(i);
}

bool Plan::is_input(int value) const {
  return std::find(input_values_.begin(), input_values_.end(), value) != input_values_.end();
}

/// The results stay where the branch left them, until the branch runs again, unless they are the branch's
/// inputs: this plan may reuse that memory.
Status Plan::run_branch(Step& step, std::span<const ir::Datum* const> inputs) {
  if (inputs.empty() || !inputs[0])
    return invalid_model(step.node->describe() + ": the condition is left out");
  DECANT_ASSIGN(const ir::Graph* chosen, ir::choose_branch(*step.node, *inputs[0]));
  Body& body = step.bodies[chosen == ir::subgraph(*step.node, "then_branch") ? 0 : 1];
  std::vector<Arg>& args = body.args;
  args.clear();
  for (size_t i : body.captures) args.push_back(step.input_args[i]);
  DECANT_RETURN_IF_ERROR(body.plan->run(args, *options_).with_context(step.node->describe()));
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] < 0) continue;
    const auto v = static_cast<size_t>(step.outputs[i]);
    int source = body.plan->output_values_[i];
    const Slot* slot = &body.plan->values_[static_cast<size_t>(source)];
    if (slot->storage == Storage::kAlias) {
      source = slot->root;
      slot = &body.plan->values_[static_cast<size_t>(source)];
    }
    if (values_[v].storage != Storage::kDynamic || body.plan->is_input(source)) {
      DECANT_RETURN_IF_ERROR(store(step, i, datum_of(body.plan->output(i))));
    } else {
      args_[v] = body.plan->output(i);
      values_[v].holds = false;
    }
  }
  return ok_status();
}

const Arg& Plan::output(size_t i) const { return args_[static_cast<size_t>(output_values_[i])]; }

bool Plan::in_place(size_t i) const {
  int v = output_values_[i];
  if (values_[static_cast<size_t>(v)].storage != Storage::kAlias) return false;
  return values_[static_cast<size_t>(values_[static_cast<size_t>(v)].root)].storage == Storage::kInput;
}

size_t Plan::arena_bytes() const { return arena_bytes_; }

std::map<std::string, int> Plan::count_reference_steps() const {
  std::map<std::string, int> counts;
  for (const Step& s : steps_) {
    if (!s.kernel && s.bodies.empty()) ++counts[s.node->op()];
    for (const Body& body : s.bodies) {
      for (const auto& [op, n] : body.plan->count_reference_steps()) counts[op] += n;
    }
  }
  return counts;
}

std::vector<std::string> Plan::reference_steps() const {
  const std::map<std::string, int> counts = count_reference_steps();
  std::vector<std::string> out;
  for (const auto& [op, n] : counts) out.push_back(op + " x" + std::to_string(n));
  return out;
}

void Plan::set_profiling(bool on) {
  profiling_ = on;
  if (!on) return;
  for (Step& s : steps_) {
    s.seconds = 0;
    s.calls = 0;
  }
}

std::vector<Plan::Profile> Plan::profile() const {
  std::map<std::string, Profile> by_op;
  for (const Step& s : steps_) {
    Profile& p = by_op[(s.kernel ? "" : "reference ") + s.node->op()];
    p.seconds += s.seconds;
    p.calls += s.calls;
  }
  std::vector<Profile> out;
  for (auto& [op, p] : by_op) {
    p.op = op;
    out.push_back(p);
  }
  std::sort(out.begin(), out.end(), [](const Profile& a, const Profile& b) { return a.seconds > b.seconds; });
  return out;
}

}  // namespace decant::runtime
