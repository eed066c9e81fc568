#include "runtime/plan_builder.h"

#include <algorithm>
#include <cstring>

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

/// How many leading inputs a node reads, when the plan knows its output's shape: shape operands are not read.
size_t inputs_read(const Node& node) { return is_view(node) || node.is("Expand") ? 1 : node.inputs().size(); }

}  // namespace

bool is_view(const Node& node) {
  return node.is("Reshape") || node.is("Squeeze") || node.is("Unsqueeze") || node.is("Flatten") ||
         node.is("Identity");
}

Status PlanBuilder::build() {
  DECANT_RETURN_IF_ERROR(add_inputs());
  find_needed();
  if (!options_.reference) find_groups();
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
  plan_memory();
  return ok_status();
}

Status PlanBuilder::add_inputs() {
  const auto& inputs = plan_.graph_->inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& v = *inputs[i];
    if (!v.shape) return unsupported("input '" + v.name + "': its rank is not declared");
    for (size_t axis = 0; axis < v.shape->size(); ++axis) {
      const std::string symbol = (*v.shape)[axis].symbol_name();
      if (symbol.empty() || !bindable_.insert(symbol).second) continue;
      plan_.symbol_sources_.push_back(
          {plan_.dims_program_.symbol_slot(symbol), static_cast<int>(i), static_cast<int>(axis)});
    }
  }
  // Values of scalar inputs come second: where a dim gives the same symbol, the dim decides.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& v = *inputs[i];
    if (!v.elements || v.elements->size() != 1) continue;
    const std::string symbol = (*v.elements)[0].symbol_name();
    if (symbol.empty() || !bindable_.insert(symbol).second) continue;
    plan_.symbol_sources_.push_back({plan_.dims_program_.symbol_slot(symbol), static_cast<int>(i), -1});
  }
  for (const Value* v : inputs) plan_.input_values_.push_back(new_value(*v, Plan::Storage::kInput));
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
  const bool unaligned = reinterpret_cast<uintptr_t>(tensor.data()) % size_of(tensor.dtype()) != 0;
  if (unaligned && tensor.bytes() <= kLargestMoved) {
    DECANT_ASSIGN(ir::Tensor aligned, ir::Tensor::allocate(tensor.dtype(), tensor.dims()));
    std::memcpy(aligned.mutable_data(), tensor.data(), tensor.bytes());
    tensor = std::move(aligned);
  }
  const int index = new_value(*value, Plan::Storage::kConstant);
  plan_.values_[static_cast<size_t>(index)].tensor = std::move(tensor);
  return index;
}

int PlanBuilder::root_of(int value) const {
  while (plan_.values_[static_cast<size_t>(value)].storage == Plan::Storage::kAlias) {
    value = plan_.values_[static_cast<size_t>(value)].root;
  }
  return value;
}

bool PlanBuilder::resolvable(const Value& value) const {
  if (!value.shape) return false;
  for (const ir::Dim& d : *value.shape) {
    for (const std::string& s : d.symbols()) {
      if (!bindable_.count(s)) return false;
    }
  }
  return true;
}

bool PlanBuilder::writes_state_in_place(const Node& node) const {
  if (!options_.states_in_place || !node.is("TensorScatter")) return false;
  const ir::State* state = state_of_output(*plan_.graph_, node.output(0));
  return state && state->form == ir::State::Form::kFixed && state->input == node.input(0) &&
         node.input(0)->users().size() == 1;
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
  if (node.is("If")) {
    return unsupported(node.describe() +
                       ": a branch whose condition is not known when the model is compiled");
  }
  std::unique_ptr<Kernel> kernel;
  for (int i : inputs)
    dynamic = dynamic || (i >= 0 && plan_.values_[static_cast<size_t>(i)].storage == Plan::Storage::kDynamic);
  if (!dynamic && !options_.reference) kernel = make_kernel(node);
  return add_step(node, std::move(kernel), std::move(inputs), std::move(outputs));
}

Status PlanBuilder::add_step(const Node& node, std::unique_ptr<Kernel> kernel, std::vector<int> inputs,
                             std::vector<int> outputs) {
  if (!kernel) {
    const ir::OpDef* op = ir::find_op(node.domain(), node.op());
    if (!op || !op->eval) return unsupported(node.describe() + ": no kernel");
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

void PlanBuilder::find_groups() {
  std::unordered_map<const Value*, std::vector<const Node*>> open;
  for (const auto& node : plan_.graph_->nodes()) {
    if (!matmul_can_group(*node) || !resolvable(*node->output(0)) || !resolvable(*node->input(0))) continue;
    std::vector<const Node*>& members = open[node->input(0)];
    if (members.size() == kernels::kMaxMatmulParts) members.clear();
    members.push_back(node.get());
    if (members.size() < 2) continue;
    groups_[members[0]] = members;
    grouped_.insert(node.get());
  }
}

Status PlanBuilder::add_group(const std::vector<const Node*>& group) {
  std::vector<int> inputs, outputs;
  DECANT_ASSIGN(const int a, value_index(group[0]->input(0)));
  inputs.push_back(a);
  for (const Node* node : group) {
    DECANT_ASSIGN(const int b, value_index(node->input(1)));
    inputs.push_back(b);
    if (!resolvable(*node->output(0))) return unsupported(node->describe() + ": its shape depends on data");
    outputs.push_back(new_value(*node->output(0), Plan::Storage::kArena));
  }
  return add_step(*group[0], make_matmul_group(group), std::move(inputs), std::move(outputs));
}

int64_t PlanBuilder::hint_bytes(const Value& value) const {
  int64_t n = static_cast<int64_t>(size_of(value.dtype));
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
