#include "ir/control_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Result<bool> flag(const Node& node, const Datum& datum) {
  if (!datum.is_tensor() || datum.tensor().dtype() != DType::kBool || datum.tensor().elements() != 1) {
    return node_error(node, "the condition is " + describe(datum) + ", not one bool");
  }
  return datum.tensor().int_at(0) != 0;
}

Result<const Graph*> body_of(const Node& node) {
  const Graph* body = subgraph(node, "body");
  if (body == nullptr) return node_error(node, "attribute 'body' is missing");
  return body;
}

/// Stacks the tensors of all iterations along a new axis. `type` is the body's output: it says dtype and dims
/// when there was no iteration.
Result<Tensor> stack(const Node& node, const std::vector<Tensor>& parts, const Value& type, size_t axis) {
  if (parts.empty()) {
    Dims dims;
    if (type.shape) {
      for (const Dim& d : *type.shape)
        dims.push_back(d.is_constant() ? std::max<int64_t>(0, d.constant()) : 0);
    }
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(std::min(axis, dims.size())), 0);
    return Tensor::allocate(type.dtype, std::move(dims));
  }
  const Tensor& first = parts.front();
  Dims dims = first.dims();
  for (const Tensor& part : parts) {
    if (part.dtype() != first.dtype() || part.dims() != dims) {
      return node_error(node,
                        fmt::format("a scan output is {} and later {}", describe(first), describe(part)));
    }
  }
  const int64_t outer = product(dims, 0, axis), inner = product(dims, axis, dims.size());
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<int64_t>(parts.size()));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(first.dtype(), std::move(dims)));
  const auto count = static_cast<int64_t>(parts.size());
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t o = 0; o < outer; ++o)
      copy_elements(out, (o * count + i) * inner, parts[static_cast<size_t>(i)], o * inner, inner);
  }
  return out;
}

Status check_count(const Node& node, size_t got, size_t want) {
  if (got == want) return ok_status();
  return node_error(node, fmt::format("the body gave {} values, {} are needed", got, want));
}

int64_t entry(const Node& node, std::string_view attribute, size_t i) {
  const auto* list = node.attribute<std::vector<int64_t>>(attribute);
  return list && i < list->size() ? (*list)[i] : 0;
}

Result<Tensor> slice_at(const Tensor& t, size_t axis, int64_t index) {
  Dims dims = t.dims();
  const int64_t length = dims[axis];
  const int64_t outer = product(dims, 0, axis), inner = product(dims, axis + 1, dims.size());
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(t.dtype(), std::move(dims)));
  for (int64_t o = 0; o < outer; ++o) copy_elements(out, o * inner, t, (o * length + index) * inner, inner);
  return out;
}

}  // namespace

bool is_control_flow(const Node& node) {
  return node.is("If") || node.is("Loop") || node.is("Scan") || node.is("SequenceMap");
}

Result<Datum> owned(Datum datum) {
  if (datum.is_tensor()) {
    if (datum.tensor().owner()) return datum;
    DECANT_ASSIGN(Tensor copy, clone(datum.tensor()));
    return Datum(std::move(copy));
  }
  if (datum.is_empty()) return datum;
  Datum::Sequence items = datum.items();
  bool copied = false;
  for (Tensor& t : items) {
    if (t.owner()) continue;
    DECANT_ASSIGN(t, clone(t));
    copied = true;
  }
  return copied ? Datum::sequence(std::move(items)) : datum;
}

Result<Graph*> choose_branch(const Node& node, const Datum& condition) {
  DECANT_ASSIGN(const bool chosen, flag(node, condition));
  Graph* branch = subgraph(node, chosen ? "then_branch" : "else_branch");
  if (branch == nullptr) return node_error(node, "a branch is missing");
  return branch;
}

Result<std::vector<Datum>> run_loop(const Node& node, std::span<const Datum* const> inputs,
                                    const RunBody& body, const RunOptions& options) {
  DECANT_ASSIGN(const Graph* graph, body_of(node));
  const size_t carried = inputs.size() > 2 ? inputs.size() - 2 : 0;
  if (graph->inputs().size() != carried + 2 || graph->outputs().size() < carried + 1) {
    return node_error(node, fmt::format("the body has {} inputs and {} outputs, the node carries {} values",
                                        graph->inputs().size(), graph->outputs().size(), carried));
  }
  int64_t trips = INT64_MAX;
  if (!inputs.empty() && inputs[0] != nullptr) {
    if (!inputs[0]->is_tensor() || inputs[0]->tensor().elements() != 1) {
      return node_error(node, "the trip count is " + describe(*inputs[0]) + ", not one number");
    }
    trips = inputs[0]->tensor().int_at(0);
  }
  bool go_on = true;
  if (inputs.size() > 1 && inputs[1] != nullptr) {
    DECANT_ASSIGN(go_on, flag(node, *inputs[1]));
  }
  std::vector<Datum> state(carried + 2);
  for (size_t i = 0; i < carried; ++i) {
    if (inputs[i + 2] == nullptr) return node_error(node, "a carried value is left out");
    state[i + 2] = *inputs[i + 2];
  }
  const size_t scans = graph->outputs().size() - 1 - carried;
  std::vector<std::vector<Tensor>> parts(scans);
  for (int64_t trip = 0; trip < trips && go_on; ++trip) {
    if (Status s = options.check(); !s.ok()) {
      return std::move(s).with_context(fmt::format("{}: iteration {}", node.describe(), trip));
    }
    state[0] = Tensor::scalar(trip);
    DECANT_ASSIGN(Tensor condition, Tensor::allocate(DType::kBool, {}));
    *condition.mutable_data_as<uint8_t>() = 1;
    state[1] = std::move(condition);
    DECANT_ASSIGN(std::vector<Datum> results, body(state));
    DECANT_RETURN_IF_ERROR(check_count(node, results.size(), graph->outputs().size()));
    DECANT_ASSIGN(go_on, flag(node, results[0]));
    for (size_t i = 0; i < carried; ++i) state[i + 2] = std::move(results[i + 1]);
    for (size_t k = 0; k < scans; ++k) {
      const Datum& d = results[1 + carried + k];
      if (!d.is_tensor()) return node_error(node, "a scan output is " + describe(d));
      parts[k].push_back(d.tensor());
    }
  }
  std::vector<Datum> outputs(std::make_move_iterator(state.begin() + 2),
                             std::make_move_iterator(state.end()));
  for (size_t k = 0; k < scans; ++k) {
    DECANT_ASSIGN(Tensor stacked, stack(node, parts[k], *graph->outputs()[1 + carried + k], 0));
    outputs.emplace_back(std::move(stacked));
  }
  return outputs;
}

Result<std::vector<Datum>> run_scan(const Node& node, std::span<const Datum* const> inputs,
                                    const RunBody& body, const RunOptions& options) {
  DECANT_ASSIGN(const Graph* graph, body_of(node));
  const int64_t declared = node.int_attribute("num_scan_inputs", 0);
  if (declared < 1 || declared > static_cast<int64_t>(inputs.size()) ||
      graph->inputs().size() != inputs.size()) {
    return node_error(node, fmt::format("num_scan_inputs {} does not fit {} inputs and a body of {}",
                                        declared, inputs.size(), graph->inputs().size()));
  }
  const auto scanned = static_cast<size_t>(declared);
  const size_t states = inputs.size() - scanned;
  if (graph->outputs().size() < states) return node_error(node, "the body has fewer outputs than states");
  for (const Datum* d : inputs) {
    if (d == nullptr || !d->is_tensor()) return node_error(node, "an input is left out or no tensor");
  }
  int64_t length = -1;
  std::vector<size_t> axes;
  for (size_t k = 0; k < scanned; ++k) {
    const Tensor& t = inputs[states + k]->tensor();
    DECANT_ASSIGN(const size_t axis, resolve_axis(node, entry(node, "scan_input_axes", k), t.rank()));
    axes.push_back(axis);
    if (length >= 0 && t.dims()[axis] != length) {
      return node_error(node, fmt::format("scan inputs have lengths {} and {}", length, t.dims()[axis]));
    }
    length = t.dims()[axis];
  }
  std::vector<Datum> state(inputs.size());
  for (size_t i = 0; i < states; ++i) state[i] = *inputs[i];
  const size_t scans = graph->outputs().size() - states;
  std::vector<std::vector<Tensor>> parts(scans);
  for (int64_t step = 0; step < length; ++step) {
    if (Status s = options.check(); !s.ok()) {
      return std::move(s).with_context(fmt::format("{}: step {}", node.describe(), step));
    }
    for (size_t k = 0; k < scanned; ++k) {
      const int64_t at = entry(node, "scan_input_directions", k) == 1 ? length - 1 - step : step;
      DECANT_ASSIGN(Tensor part, slice_at(inputs[states + k]->tensor(), axes[k], at));
      state[states + k] = std::move(part);
    }
    DECANT_ASSIGN(std::vector<Datum> results, body(state));
    DECANT_RETURN_IF_ERROR(check_count(node, results.size(), graph->outputs().size()));
    for (size_t i = 0; i < states; ++i) state[i] = std::move(results[i]);
    for (size_t k = 0; k < scans; ++k) {
      if (!results[states + k].is_tensor()) return node_error(node, "a scan output is no tensor");
      parts[k].push_back(results[states + k].tensor());
    }
  }
  std::vector<Datum> outputs(std::make_move_iterator(state.begin()),
                             std::make_move_iterator(state.begin() + static_cast<std::ptrdiff_t>(states)));
  for (size_t k = 0; k < scans; ++k) {
    if (entry(node, "scan_output_directions", k) == 1) std::reverse(parts[k].begin(), parts[k].end());
    const Value& type = *graph->outputs()[states + k];
    const size_t rank = parts[k].empty() ? (type.shape ? type.shape->size() : 0) : parts[k][0].rank();
    DECANT_ASSIGN(const size_t axis, resolve_axis(node, entry(node, "scan_output_axes", k), rank + 1));
    DECANT_ASSIGN(Tensor stacked, stack(node, parts[k], type, axis));
    outputs.emplace_back(std::move(stacked));
  }
  return outputs;
}

Result<std::vector<Datum>> run_sequence_map(const Node& node, std::span<const Datum* const> inputs,
                                            const RunBody& body, const RunOptions& options) {
  DECANT_ASSIGN(const Graph* graph, body_of(node));
  if (inputs.empty() || inputs[0] == nullptr || !inputs[0]->is_sequence()) {
    return node_error(node, "input 0 must be a sequence");
  }
  if (graph->inputs().size() != inputs.size()) {
    return node_error(
        node, fmt::format("the body has {} inputs, the node {}", graph->inputs().size(), inputs.size()));
  }
  const size_t length = inputs[0]->items().size();
  for (const Datum* d : inputs) {
    if (d == nullptr) return node_error(node, "an input is left out");
    if (d->is_sequence() && d->items().size() != length) {
      return node_error(node, fmt::format("sequences of {} and {} tensors", length, d->items().size()));
    }
  }
  std::vector<Datum::Sequence> parts(graph->outputs().size());
  std::vector<Datum> arguments(inputs.size());
  for (size_t i = 0; i < length; ++i) {
    if (Status s = options.check(); !s.ok()) {
      return std::move(s).with_context(fmt::format("{}: item {}", node.describe(), i));
    }
    for (size_t k = 0; k < inputs.size(); ++k)
      arguments[k] = inputs[k]->is_sequence() ? Datum(inputs[k]->items()[i]) : *inputs[k];
    DECANT_ASSIGN(std::vector<Datum> results, body(arguments));
    DECANT_RETURN_IF_ERROR(check_count(node, results.size(), parts.size()));
    for (size_t k = 0; k < parts.size(); ++k) {
      if (!results[k].is_tensor()) return node_error(node, "the body gave no tensor");
      parts[k].push_back(results[k].tensor());
    }
  }
  std::vector<Datum> outputs;
  for (Datum::Sequence& items : parts) outputs.push_back(Datum::sequence(std::move(items)));
  return outputs;
}

}  // namespace decant::ir
