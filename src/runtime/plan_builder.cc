#include "runtime/plan_builder.h"

#include <algorithm>
#include <cstring>

#include "ir/control_flow.h"
#include "ir/op.h"
#include "runtime/ops/gather.h"
#include "runtime/ops/matmul.h"

namespace decant::runtime {
namespace {

using ir::Node;
using ir::Value;

/// Symbol values that stand for "a typical run" when buffers are compared at compile time.
constexpr int64_t kHintSymbol = 128;

/// Unaligned constants up to this many bytes are copied when a plan is built.
constexpr size_t kLargestMoved = size_t{1} << 20;

const ir::State* state_of_output(const ir::Graph& graph, const Value* output) {
  for (const ir::State& s : graph.states) {
    if (s.output == output) return &s;
  }
  return nullptr;
}

/// Writes dims that the plan has computed already: the whole of a graph's shape arithmetic comes down to
/// this.
class DimsKernel final : public Kernel {
 public:
  DimsKernel(const DimProgram& program, std::vector<int> slots)
      : program_(program), slots_(std::move(slots)) {}
  Status run(const Call& call) override {
    auto* out = call.outputs[0].as<int64_t>();
    for (size_t i = 0; i < slots_.size(); ++i) out[i] = program_.at(slots_[i]);
    return ok_status();
  }

 private:
  const DimProgram& program_;
  std::vector<int> slots_;
};

/// Whether a value can live in the arena: a tensor of bytes with a known rank.
bool plannable(const Value& v) {
  return v.kind == ir::ValueKind::kTensor && v.dtype != DType::kString && v.shape.has_value();
}

/// Whether fast kernels may see a value: they know numbers and bools.
bool is_plain(const Value* v) {
  return v == nullptr || (v->kind == ir::ValueKind::kTensor && v->dtype <= DType::kBool);
}

/// The sub-graphs of control flow, in the order of a step's bodies.
std::vector<std::shared_ptr<ir::Graph>> subgraphs_of(const Node& node) {
  std::vector<std::shared_ptr<ir::Graph>> graphs;
  for (const char* name : {"then_branch", "else_branch", "body"}) {
    if (const auto* sub = node.attribute<std::shared_ptr<ir::Graph>>(name); sub && *sub)
      graphs.push_back(*sub);
  }
  return graphs;
}

/// How many leading inputs a node reads, when the plan knows its output's shape: shape operands are not read.
size_t inputs_read(const Node& node) { return is_view(node) || node.is("Expand") ? 1 : node.inputs().size(); }

}  // namespace

bool is_view(const Node& node) {
  return node.is("Reshape") || node.is("Squeeze") || node.is("Unsqueeze") || node.is("Flatten") ||
         node.is("Identity");
}

PlanBuilder::PlanBuilder(Plan& plan, const PlanOptions& options, PlanBuilder* outer,
                         std::span<const Value* const> captured)
    : plan_(plan), options_(options), outer_(outer) {
  const auto& inputs = plan.graph_->inputs();
  plan.declared_.assign(inputs.begin(), inputs.end());
  plan.declared_.insert(plan.declared_.end(), captured.begin(), captured.end());
  if (outer) bindable_ = outer->bindable_;
}

Status PlanBuilder::build() {
  DECANT_RETURN_IF_ERROR(add_inputs());
  find_needed();
  if (!options_.reference) DECANT_RETURN_IF_ERROR(find_groups());
  for (const auto& node : plan_.graph_->nodes()) {
    bool needed = false;
    for (const Value* v : node->outputs()) needed = needed || needed_.count(v);
    if (!needed || grouped_.count(node.get())) continue;
    auto group = groups_.find(node.get());
    DECANT_RETURN_IF_ERROR(group == groups_.end() ? add_node(*node) : add_group(group->second));
  }
  for (const Value* v : plan_.graph_->outputs()) {
    DECANT_ASSIGN(const int index, value_index(v));
    plan_.output_values_.push_back(index);
  }
  inherit_symbols();
  plan_memory();
  return ok_status();
}

void PlanBuilder::inherit_symbols() {
  if (!outer_) return;
  for (const std::string& name : plan_.dims_program_.symbols()) {
    if (bound_.count(name) || !outer_->bindable_.count(name)) continue;
    plan_.inherited_.push_back(
        {plan_.dims_program_.symbol_slot(name), outer_->plan_.dims_program_.symbol_slot(name), -1});
  }
}

/// Inputs that are no tensors of a known rank have no dims to plan with: they come as they are.
Status PlanBuilder::add_inputs() {
  const std::vector<const Value*>& inputs = plan_.declared_;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& v = *inputs[i];
    if (!plannable(v)) continue;
    for (size_t axis = 0; axis < v.shape->size(); ++axis) {
      const std::string symbol = (*v.shape)[axis].symbol_name();
      if (symbol.empty() || !bound_.insert(symbol).second) continue;
      plan_.symbol_sources_.push_back(
          {plan_.dims_program_.symbol_slot(symbol), static_cast<int>(i), static_cast<int>(axis)});
    }
  }
  // Values of scalar inputs come second: where a dim gives the same symbol, the dim decides.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& v = *inputs[i];
    if (!plannable(v) || !v.elements || v.elements->size() != 1) continue;
    const std::string symbol = (*v.elements)[0].symbol_name();
    if (symbol.empty() || !bound_.insert(symbol).second) continue;
    plan_.symbol_sources_.push_back({plan_.dims_program_.symbol_slot(symbol), static_cast<int>(i), -1});
  }
  bindable_.insert(bound_.begin(), bound_.end());
  for (const Value* v : inputs) {
    // Without a source for each symbol, only the run knows the dims.
    const bool planned = plannable(*v) && resolvable(*v);
    plan_.input_values_.push_back(new_value(*v, planned ? Plan::Storage::kInput : Plan::Storage::kDynamic));
  }
  return ok_status();
}

int PlanBuilder::new_value(const Value& value, Plan::Storage storage) {
  const int index = static_cast<int>(plan_.values_.size());
  Plan::Slot slot;
  slot.storage = storage;
  if (storage != Plan::Storage::kDynamic && storage != Plan::Storage::kConstant) {
    for (const ir::Dim& d : *value.shape) slot.dim_slots.push_back(plan_.dims_program_.add(d));
  }
  plan_.values_.push_back(std::move(slot));
  Arg arg;
  arg.dtype = value.dtype;
  plan_.args_.push_back(arg);
  source_.push_back(&value);
  index_[&value] = index;
  return index;
}

Result<int> PlanBuilder::value_index(const Value* value) {
  if (value == nullptr) return -1;
  if (auto it = index_.find(value); it != index_.end()) return it->second;
  if (!value->constant) return internal_error("value '" + value->name + "' is used before its definition");
  DECANT_ASSIGN(ir::Tensor tensor, value->constant->materialize());
  // Tensors inside a model file stand at any address. Small ones move to where scalar code may read them;
  // large ones are weights, which products and gathers read with unaligned loads.
  const size_t alignment = std::max<size_t>(1, size_of(tensor.dtype()));
  const bool unaligned = reinterpret_cast<uintptr_t>(tensor.data()) % alignment != 0;
  if (unaligned && tensor.bytes() <= kLargestMoved) {
    DECANT_ASSIGN(ir::Tensor aligned, ir::Tensor::allocate(tensor.dtype(), tensor.dims()));
    std::memcpy(aligned.mutable_data(), tensor.data(), tensor.bytes());
    tensor = std::move(aligned);
  }
  const int index = new_value(*value, Plan::Storage::kConstant);
  plan_.values_[static_cast<size_t>(index)].datum = std::move(tensor);
  return index;
}

int PlanBuilder::root_of(int value) const {
  while (plan_.values_[static_cast<size_t>(value)].storage == Plan::Storage::kAlias) {
    value = plan_.values_[static_cast<size_t>(value)].root;
  }
  return value;
}

bool PlanBuilder::resolvable(const Value& value) const {
  if (!plannable(value)) return false;
  for (const ir::Dim& d : *value.shape) {
    for (const std::string& s : d.symbols()) {
      if (!bindable_.count(s)) return false;
    }
  }
  return true;
}

bool PlanBuilder::sized(const Value& value) const {
  if (!value.producer) return resolvable(value);
  const auto& outputs = value.producer->outputs();
  return std::all_of(outputs.begin(), outputs.end(), [&](const Value* v) { return !v || resolvable(*v); });
}

bool PlanBuilder::writes_state_in_place(const Node& node) const {
  if (!options_.states_in_place || !node.is("TensorScatter")) return false;
  const ir::State* state = state_of_output(*plan_.graph_, node.output(0));
  return state && state->form == ir::State::Form::kFixed && state->input == node.input(0) &&
         node.input(0)->users().size() == 1 && !node.input(0)->is_listed();
}

bool PlanBuilder::known_elements(const Node& node) const {
  if (options_.reference || node.outputs().size() != 1 || !node.output(0)) return false;
  const Value& v = *node.output(0);
  if (v.dtype != DType::kInt64 || !v.elements || !resolvable(v)) return false;
  for (const ir::Dim& d : *v.elements) {
    for (const std::string& s : d.symbols()) {
      if (!bindable_.count(s)) return false;
    }
  }
  return true;
}

void PlanBuilder::find_needed() {
  const auto& outputs = plan_.graph_->outputs();
  needed_.insert(outputs.begin(), outputs.end());
  const auto& nodes = plan_.graph_->nodes();
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const Node& node = **it;
    bool needed = false, shapes_known = !options_.reference;
    for (const Value* v : node.outputs()) {
      needed = needed || needed_.count(v);
      shapes_known = shapes_known && v && resolvable(*v);
    }
    if (!needed || known_elements(node)) continue;
    const size_t read = shapes_known ? inputs_read(node) : node.inputs().size();
    for (size_t i = 0; i < read; ++i) needed_.insert(node.input(i));
    for (const Value* v : ir::captured_values(node)) needed_.insert(v);
  }
}

Status PlanBuilder::add_node(const Node& node) {
  std::vector<int> inputs, outputs;
  if (known_elements(node)) {
    std::vector<int> slots;
    for (const ir::Dim& d : *node.output(0)->elements) slots.push_back(plan_.dims_program_.add(d));
    outputs.push_back(new_value(*node.output(0), Plan::Storage::kArena));
    return add_step(node, std::make_unique<DimsKernel>(plan_.dims_program_, std::move(slots)), {},
                    std::move(outputs));
  }
  const bool decodes = !options_.reference && gathers_packed_rows(node);
  for (const Value* v : node.inputs()) {
    if ((v && !needed_.count(v)) || (decodes && v == node.input(0))) {
      inputs.push_back(-1);
      continue;
    }
    DECANT_ASSIGN(const int index, value_index(v));
    inputs.push_back(index);
  }
  if (ir::is_control_flow(node)) return add_control_flow(node, std::move(inputs));
  bool dynamic = false;
  for (const Value* v : node.outputs()) dynamic = dynamic || (v && !resolvable(*v));

  const bool view = is_view(node) && inputs[0] >= 0 &&
                    plan_.values_[static_cast<size_t>(inputs[0])].storage != Plan::Storage::kDynamic;
  if (!dynamic && (view || writes_state_in_place(node))) {
    const int out = new_value(*node.output(0), Plan::Storage::kAlias);
    plan_.values_[static_cast<size_t>(out)].root = root_of(inputs[0]);
    plan_.aliases_.push_back(out);
    if (view) return ok_status();
    outputs.push_back(out);
  } else {
    for (const Value* v : node.outputs()) {
      outputs.push_back(v ? new_value(*v, dynamic ? Plan::Storage::kDynamic : Plan::Storage::kArena) : -1);
    }
  }
  std::unique_ptr<Kernel> kernel;
  bool plain = true;
  for (const Value* v : node.inputs()) plain = plain && is_plain(v);
  for (const Value* v : node.outputs()) plain = plain && is_plain(v);
  for (int i : inputs)
    dynamic = dynamic || (i >= 0 && plan_.values_[static_cast<size_t>(i)].storage == Plan::Storage::kDynamic);
  if (!dynamic && plain && !options_.reference && !node.custom) kernel = make_kernel(node);
  return add_step(node, std::move(kernel), std::move(inputs), std::move(outputs));
}

/// Results that only the caller reads stay where a branch leaves them; those that other steps read move into
/// the arena when their dims are known, so that fast kernels can read them.
Status PlanBuilder::add_control_flow(const Node& node, std::vector<int> inputs) {
  Plan::Step step;
  step.node = &node;
  step.inputs = std::move(inputs);
  for (const std::shared_ptr<ir::Graph>& graph : subgraphs_of(node)) {
    auto body = build_body(graph, step);
    if (!body.ok()) return std::move(body).status().with_context(node.describe());
    step.bodies.push_back(*std::move(body));
  }
  if (step.bodies.size() != (node.is("If") ? 2 : 1))
    return invalid_model(node.describe() + ": a sub-graph is missing");
  for (const Value* v : node.outputs()) {
    if (!v) {
      step.outputs.push_back(-1);
      continue;
    }
    const bool planned = resolvable(*v) && !(node.is("If") && v->users().empty());
    step.outputs.push_back(new_value(*v, planned ? Plan::Storage::kArena : Plan::Storage::kDynamic));
  }
  step.input_args.resize(step.inputs.size());
  step.output_args.resize(step.outputs.size());
  plan_.steps_.push_back(std::move(step));
  return ok_status();
}

Result<Plan::Body> PlanBuilder::build_body(std::shared_ptr<const ir::Graph> graph, Plan::Step& step) {
  Plan::Body body;
  body.plan.reset(new Plan());
  body.plan->graph_ = graph;
  body.plan->engine_ = plan_.engine_;
  body.plan->outer_ = &plan_;
  // Constants in memory are read where they lie, packed ones packed; others are materialised here, once for
  // all bodies.
  std::vector<const Value*> captured;
  for (const Value* v : ir::captured_values(*graph)) {
    if (v->constant && (v->constant->in_memory() || v->constant->packed())) continue;
    DECANT_ASSIGN(const int index, value_index(v));
    captured.push_back(v);
    body.captures.push_back(step.inputs.size());
    step.inputs.push_back(index);
  }
  PlanOptions options = options_;
  options.states_in_place = false;
  DECANT_RETURN_IF_ERROR(PlanBuilder(*body.plan, options, this, captured).build());
  DECANT_RETURN_IF_ERROR(body.plan->finish());
  return body;
}

Status PlanBuilder::add_step(const Node& node, std::unique_ptr<Kernel> kernel, std::vector<int> inputs,
                             std::vector<int> outputs) {
  if (!kernel && !node.custom) {
    const ir::OpDef* op = ir::find_op(node.domain(), node.op());
    if (!op || (!op->eval && !op->eval_data)) return unsupported(node.describe() + ": no kernel");
  }
  Plan::Step step;
  step.node = &node;
  step.kernel = std::move(kernel);
  step.input_args.resize(inputs.size());
  step.output_args.resize(outputs.size());
  step.inputs = std::move(inputs);
  step.outputs = std::move(outputs);
  plan_.steps_.push_back(std::move(step));
  return ok_status();
}

Status PlanBuilder::find_groups() {
  std::unordered_map<const Value*, std::vector<const Node*>> dense, packed;
  std::unordered_set<const Node*> own;  // a user may also be in a sub-graph
  for (const auto& node : plan_.graph_->nodes()) own.insert(node.get());
  for (const auto& node : plan_.graph_->nodes()) {
    if (!matmul_can_group(*node) || !sized(*node->input(0)) || !sized(*node->output(0)) ||
        !needed_.count(node->output(0)))
      continue;
    const auto rows = low_bit_weights(*node);
    if (rows) {
      DECANT_ASSIGN(low_bit_[node.get()], plan_.engine_->low_bit.pack(*rows, plan_.engine_->pool));
      groups_[node.get()] = {node.get()};
    }
    const Node* add = matmul_bias(*plan_.graph_, *node);
    if (add && own.count(add) && !node->output(0)->is_listed() && resolvable(*add->output(0))) {
      bias_[node.get()] = add;
      grouped_.insert(add);
      groups_[node.get()] = {node.get()};
    }
    std::vector<const Node*>& members = (rows ? packed : dense)[node->input(0)];
    if (members.size() == kernels::kMaxMatmulParts) members.clear();
    members.push_back(node.get());
    if (members.size() < 2) continue;
    groups_[members[0]] = members;
    groups_.erase(node.get());
    grouped_.insert(node.get());
  }
  return ok_status();
}

Status PlanBuilder::add_group(const std::vector<const Node*>& group) {
  std::vector<int> inputs, outputs;
  DECANT_ASSIGN(const int a, value_index(group[0]->input(0)));
  if (plan_.values_[static_cast<size_t>(a)].storage == Plan::Storage::kDynamic) {
    for (const Node* node : group) {
      DECANT_RETURN_IF_ERROR(add_node(*node));
      if (auto add = bias_.find(node); add != bias_.end()) DECANT_RETURN_IF_ERROR(add_node(*add->second));
    }
    return ok_status();
  }
  inputs.push_back(a);
  std::vector<std::shared_ptr<const kernels::LowBitMatrix>> packed;
  for (const Node* node : group) {
    if (auto it = low_bit_.find(node); it != low_bit_.end()) {
      packed.push_back(it->second);
      inputs.push_back(-1);
      continue;
    }
    DECANT_ASSIGN(const int b, value_index(node->input(1)));
    inputs.push_back(b);
  }
  for (const Node* node : group) {
    const auto add = bias_.find(node);
    const Value* result = add == bias_.end() ? node->output(0) : add->second->output(0);
    outputs.push_back(new_value(*result, Plan::Storage::kArena));
    const Value* bias = add == bias_.end() ? nullptr : bias_of(*add->second, node->output(0));
    DECANT_ASSIGN(const int index, value_index(bias));
    inputs.push_back(index);
  }
  auto kernel =
      packed.empty() ? make_matmul_group(group) : make_low_bit_group(std::move(packed), options_.precision);
  return add_step(*group[0], std::move(kernel), std::move(inputs), std::move(outputs));
}

int64_t PlanBuilder::hint_bytes(const Value& value) const {
  auto n = static_cast<int64_t>(std::max<size_t>(1, size_of(value.dtype)));
  for (const ir::Dim& d : *value.shape) {
    const auto v = d.evaluate([](const std::string& s) -> std::optional<int64_t> {
      return s.find("batch") != std::string::npos ? 1 : kHintSymbol;
    });
    if (v.ok() && *v > 0 && __builtin_mul_overflow(n, *v, &n)) return INT64_MAX;
  }
  return n;
}

void PlanBuilder::plan_memory() {
  std::vector<BufferRequest> requests(plan_.values_.size(), {-1, -1, 0});
  for (size_t s = 0; s < plan_.steps_.size(); ++s) {
    const int step = static_cast<int>(s);
    for (int v : plan_.steps_[s].outputs) {
      if (v < 0) continue;
      BufferRequest& r = requests[static_cast<size_t>(root_of(v))];
      if (r.first_step < 0) r.first_step = step;
      r.last_step = std::max(r.last_step, step);
    }
    for (int v : plan_.steps_[s].inputs) {
      if (v >= 0) requests[static_cast<size_t>(root_of(v))].last_step = step;
    }
  }
  for (int v : plan_.output_values_)
    requests[static_cast<size_t>(root_of(v))].last_step = static_cast<int>(plan_.steps_.size());

  std::vector<BufferRequest> wanted;
  std::vector<int> owner;
  for (size_t v = 0; v < plan_.values_.size(); ++v) {
    if (plan_.values_[v].storage != Plan::Storage::kArena) continue;
    requests[v].hint_bytes = hint_bytes(*source_[v]);
    wanted.push_back(requests[v]);
    owner.push_back(static_cast<int>(v));
  }
  const std::vector<int> slots = assign_slots(wanted, &plan_.buffer_count_);
  for (size_t i = 0; i < owner.size(); ++i) plan_.values_[static_cast<size_t>(owner[i])].buffer = slots[i];
  plan_.buffer_bytes_.resize(static_cast<size_t>(plan_.buffer_count_));
  plan_.buffer_offsets_.resize(static_cast<size_t>(plan_.buffer_count_));
}

}  // namespace decant::runtime
