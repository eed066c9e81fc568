#include <algorithm>
#include <set>

#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::State;
using ir::Value;

/// Key-values of cross-attention: computed once from the encoder's output, the same at every step.
bool is_cross(const std::string& input) {
  return input.find(".encoder.") != std::string::npos ||
         input.find("cross_attention_cache") != std::string::npos;
}

/// The axis along which `out` is longer than `in`; -1 when they have one shape; nothing when they do not fit.
std::optional<int> growing_axis(const ir::Shape& in, const ir::Shape& out) {
  if (in.size() != out.size()) return std::nullopt;
  int axis = -1;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] == out[i]) continue;
    if (axis >= 0) return std::nullopt;
    axis = static_cast<int>(i);
  }
  return axis;
}

}  // namespace

std::string state_output_name(const std::string& input) {
  auto starts = [&](std::string_view prefix) { return input.compare(0, prefix.size(), prefix) == 0; };
  if (starts("past_key_values.")) return "present." + input.substr(16);
  if (starts("past_conv.") || starts("past_ssm.") || starts("past_recurrent."))
    return "present_" + input.substr(5);
  if (starts("past.")) return "present." + input.substr(5);
  if (starts("input.")) return "output." + input.substr(6);
  return "";
}

Result<bool> detect_states(Graph& graph) {
  if (!graph.states.empty()) return false;
  for (Value* input : graph.inputs()) {
    const std::string name = state_output_name(input->name);
    if (name.empty() || !input->shape || is_cross(input->name)) continue;
    for (Value* output : graph.outputs()) {
      if (output->name != name || !output->shape || output->dtype != input->dtype) continue;
      const auto axis = growing_axis(*input->shape, *output->shape);
      if (!axis) continue;
      State s;
      s.input = input;
      s.output = output;
      s.kind = input->shape->empty() ? State::Kind::kCounter : State::Kind::kKeyValue;
      s.form = *axis < 0 ? State::Form::kFixed : State::Form::kGrowing;
      s.axis = *axis < 0 ? 2 : *axis;
      graph.states.push_back(s);
    }
  }
  return !graph.states.empty();
}

namespace {

/// Everything that makes one growing cache convertible.
struct GrowingCache {
  size_t state;
  Node* concat;
  Value* fresh;  ///< what is appended
};

bool only_attention_reads(const Value* present) {
  for (const Node* user : present->users()) {
    if (!user->is("Attention") || user->int_attribute("is_causal", 0) != 0 || user->input(4) ||
        user->input(6))
      return false;
    if (user->input(0) == present || user->input(3) == present) return false;
  }
  return true;
}

}  // namespace

Result<bool> fix_states(Graph& graph) {
  std::vector<GrowingCache> caches;
  std::string symbol;
  for (size_t i = 0; i < graph.states.size(); ++i) {
    const State& s = graph.states[i];
    if (s.kind != State::Kind::kKeyValue) continue;
    if (s.form != State::Form::kGrowing || s.axis != 2 || !s.input->shape || s.input->shape->size() != 4)
      return false;
    const std::string past = (*s.input->shape)[2].symbol_name();
    if (past.empty() || (!symbol.empty() && past != symbol)) return false;
    symbol = past;
    Node* concat = producer(s.output, "Concat");
    if (!concat || concat->inputs().size() != 2 || concat->input(0) != s.input) return false;
    const int64_t axis = concat->int_attribute("axis", 0);
    if ((axis != 2 && axis != -2) || s.input->users().size() != 1 || !only_attention_reads(s.output))
      return false;
    caches.push_back({i, concat, concat->input(1)});
  }
  if (caches.empty()) return false;
  // No other input's shape may give the symbol its value: from now on cache_length does.
  std::set<const Value*> state_inputs;
  for (const GrowingCache& c : caches) state_inputs.insert(graph.states[c.state].input);
  for (const Value* v : graph.inputs()) {
    if (state_inputs.count(v) || !v->shape) continue;
    for (const ir::Dim& d : *v->shape) {
      if (d.symbol_name() == symbol) return false;
    }
  }

  Value* length = graph.add_input(std::string(kCacheLengthInput), DType::kInt64, ir::Shape{});
  length->elements = std::vector<ir::Dim>{ir::Dim::symbol(symbol)};
  const ir::Shape& shape = *graph.states[caches[0].state].input->shape;
  const ir::Shape fresh_shape = caches[0].fresh->shape ? *caches[0].fresh->shape : ir::Shape{};
  if (fresh_shape.size() != 4) return false;

  // [batch] tensors of the write position and of the valid length after writing.
  DECANT_ASSIGN(Value * batch_shape,
                add_typed(graph, "Shape", {caches[0].fresh}, {{"start", int64_t{0}}, {"end", int64_t{1}}}));
  DECANT_ASSIGN(Value * query_shape,
                add_typed(graph, "Shape", {caches[0].fresh}, {{"start", int64_t{2}}, {"end", int64_t{3}}}));
  DECANT_ASSIGN(Value * at, add_typed(graph, "Expand", {length, batch_shape}));
  DECANT_ASSIGN(Value * total, add_typed(graph, "Add", {at, query_shape}));

  ir::Shape fixed = shape;
  fixed[2] = ir::Dim::symbol("max_cache_len");
  for (const GrowingCache& c : caches) {
    State& s = graph.states[c.state];
    fixed[1] = (*s.input->shape)[1];
    fixed[3] = (*s.input->shape)[3];
    s.input->shape = fixed;
    s.form = State::Form::kFixed;
    DECANT_ASSIGN(Value * scatter,
                  add_typed(graph, "TensorScatter", {s.input, c.fresh, at}, {{"axis", int64_t{2}}}));
    const std::vector<Node*> readers = s.output->users();
    replace(graph, s.output, scatter);
    for (Node* reader : readers) {
      reader->set_input(6, total);
    }
  }
  graph.remove_dead();
  DECANT_RETURN_IF_ERROR(graph.sort());
  DECANT_RETURN_IF_ERROR(ir::infer_types(graph));
  return true;
}

Result<bool> keep_last_logits(Graph& graph) {
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    Value* logits = graph.outputs()[i];
    if (logits->name != "logits" || !logits->shape || logits->shape->size() != 3) continue;
    // Up through what works on each row alone, so that the head and the last norm see one row.
    Node* first = nullptr;
    Value* x = logits;
    for (Node* node = logits->producer; node && x->users().size() <= 1; node = x->producer) {
      const bool rows_alone = node->is("MatMul") || node->op() == "FusedMatMul" || node->is("Cast") ||
                              node->is("RMSNormalization") || node->is("LayerNormalization");
      Value* input = node->input(0);
      if (!rows_alone || !input->shape || input->shape->size() != 3 ||
          (node->input(1) && !node->input(1)->constant))
        break;
      first = node;
      x = input;
    }
    if (!first) return false;
    auto constant = [&](const char* hint, int64_t v) {
      const int64_t values[] = {v};
      return graph.add_constant(graph.unique_name(hint),
                                ir::Constant::from_tensor(ir::Tensor::vector(values)));
    };
    // There is a last row: runs of no tokens are refused by whoever feeds them.
    for (const std::string& symbol : (*x->shape)[1].symbols()) {
      ir::SymbolRange& range = graph.symbol_ranges[symbol];
      range.min = std::max<int64_t>(range.min, 1);
    }
    DECANT_ASSIGN(Value * slice,
                  add_typed(graph, "Slice",
                            {x, constant("last_row_start", -1), constant("last_row_end", INT64_MAX),
                             constant("last_row_axis", 1)}));
    first->set_input(0, slice);
    DECANT_RETURN_IF_ERROR(graph.sort());
    DECANT_RETURN_IF_ERROR(ir::infer_types(graph));
    return true;
  }
  return false;
}

}  // namespace decant::passes
