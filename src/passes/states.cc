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
  if (starts("past_key_") || starts("past_value_")) return "present_" + input.substr(5);
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
  Node* writer;  ///< gives the state's output
  Value* fresh;  ///< what is appended
};

/// Whether `valid` (nonpad_kv_seqlen) is the whole length of `present` in every row.
bool is_whole_length(const Value* valid, const Value* present) {
  const Node* expand = producer(valid, "Expand");
  const Value* length = expand ? expand->input(0) : nullptr;
  return length && length->elements && length->elements->size() == 1 && present->shape &&
         present->shape->size() == 4 && (*length->elements)[0] == (*present->shape)[2];
}

/// Whether a Shape node serves nonpad_kv_seqlen only, which fix_states replaces.
bool only_gives_length(const Node* shape) {
  if (!shape->is("Shape")) return false;
  for (const Node* expand : shape->output(0)->users()) {
    if (!expand->is("Expand")) return false;
    for (const Node* reader : expand->output(0)->users()) {
      if (!reader->is("Attention") || reader->input(6) != expand->output(0)) return false;
    }
  }
  return true;
}

bool only_attention_reads(const Value* present) {
  for (const Node* user : present->users()) {
    if (only_gives_length(user)) continue;
    if (!user->is("Attention") || user->input(4)) return false;
    const bool causal = user->int_attribute("is_causal", 0) != 0;
    if (user->input(6) ? !is_whole_length(user->input(6), present) : causal) return false;
    if (user->input(0) == present || user->input(3) == present) return false;
  }
  return true;
}

/// Whether `node` lengthens the state by what is missing for this call's entries, at its end.
bool makes_room(const Node* node, const State& s) {
  if (!node || !node->is("Pad") || node->input(0) != s.input || node->output(0)->users().size() != 1)
    return false;
  const auto& elements = node->input(1)->elements;
  if (!elements || elements->size() != 8) return false;
  for (size_t i = 0; i < 8; ++i) {
    if (i != 6 && (*elements)[i] != ir::Dim(0)) return false;
  }
  return true;
}

/// Whether one node reads the state's contents; its shape may be asked for.
bool has_one_reader(const State& s) {
  return std::count_if(s.input->users().begin(), s.input->users().end(),
                       [](const Node* user) { return !user->is("Shape"); }) == 1;
}

/// How a growing cache is written: Concat(state, new); TensorScatter(Pad(state), new, at);
/// SlidingCache(state, new, before, after).
std::optional<GrowingCache> growing_cache(const Graph& graph, size_t i) {
  const State& s = graph.states[i];
  if (s.form != State::Form::kGrowing || s.axis != 2) return std::nullopt;
  Node* writer = s.output->producer;
  if (!writer || writer->inputs().size() < 2 || !has_one_reader(s)) return std::nullopt;
  if (writer->is("Concat")) {
    const int64_t axis = writer->int_attribute("axis", 0);
    if (writer->inputs().size() != 2 || writer->input(0) != s.input || (axis != 2 && axis != -2) ||
        !only_attention_reads(s.output))
      return std::nullopt;
    return GrowingCache{i, writer, writer->input(1)};
  }
  if (writer->is("TensorScatter") && makes_room(writer->input(0)->producer, s))
    return GrowingCache{i, writer, writer->input(1)};
  return std::nullopt;
}

/// A window cache, kept by the operator itself: nothing grows, but a whole cache makes rewinding and writing
/// in place possible, and attention reads no more of it than the window.
std::optional<GrowingCache> sliding_cache(const Graph& graph, size_t i) {
  const State& s = graph.states[i];
  Node* writer = s.output->producer;
  if (!writer || writer->op() != "SlidingCache" || writer->domain() != "decant" ||
      writer->input(0) != s.input || writer->output(0) != s.output || !s.output->users().empty())
    return std::nullopt;
  return GrowingCache{i, writer, writer->input(1)};
}

/// The shape of a growing cache tells how much it holds, which a fixed one's does not: Shape nodes over the
/// state get it from `length` and, for the other axes, from what is appended.
Status keep_shape(Graph& graph, const Value* state, Value* fresh, Value* length) {
  const std::vector<Node*> users = state->users();
  for (Node* node : users) {
    if (!node->is("Shape")) continue;
    const auto bound = [&](const char* key, int64_t fallback) {
      const int64_t v = node->int_attribute(key, fallback);
      return std::clamp<int64_t>(v < 0 ? v + 4 : v, 0, 4);
    };
    std::vector<Value*> dims;
    for (int64_t axis = bound("start", 0); axis < bound("end", 4); ++axis) {
      Value* dim = nullptr;
      if (axis == 2) {
        const int64_t zero[] = {0};
        Value* axes = graph.add_constant(graph.unique_name("length_axis"),
                                         ir::Constant::from_tensor(ir::Tensor::vector(zero)));
        DECANT_ASSIGN(dim, add_typed(graph, "Unsqueeze", {length, axes}));
      } else {
        DECANT_ASSIGN(dim, add_typed(graph, "Shape", {fresh}, {{"start", axis}, {"end", axis + 1}}));
      }
      dims.push_back(dim);
    }
    if (dims.empty()) continue;
    Value* shape = dims[0];
    if (dims.size() > 1) {
      DECANT_ASSIGN(shape, add_typed(graph, "Concat", dims, {{"axis", int64_t{0}}}));
    }
    replace(graph, node->output(0), shape);
  }
  return ok_status();
}

}  // namespace

Result<bool> fix_states(Graph& graph) {
  std::vector<GrowingCache> caches;
  std::string symbol;
  bool concatenated = false;
  for (size_t i = 0; i < graph.states.size(); ++i) {
    const State& s = graph.states[i];
    if (s.kind != State::Kind::kKeyValue) continue;
    if (!s.input->shape || s.input->shape->size() != 4) return false;
    auto cache = sliding_cache(graph, i);
    if (!cache) {
      cache = growing_cache(graph, i);
      if (!cache) return false;
      const ir::Dim& past = (*s.input->shape)[2];
      const std::string name = past.symbol_name();
      const bool fixed_room = past.is_constant() && !cache->writer->is("Concat");
      if (!fixed_room && (name.empty() || (!symbol.empty() && name != symbol))) return false;
      if (!name.empty()) symbol = name;
      concatenated = concatenated || cache->writer->is("Concat");
    }
    caches.push_back(*cache);
  }
  if (caches.empty()) return false;
  // No other input's shape may give the symbol its value: from now on cache_length does.
  std::set<const Value*> state_inputs;
  for (const GrowingCache& c : caches) state_inputs.insert(graph.states[c.state].input);
  for (const Value* v : graph.inputs()) {
    if (state_inputs.count(v) || !v->shape || symbol.empty()) continue;
    for (const ir::Dim& d : *v->shape) {
      if (d.symbol_name() == symbol) return false;
    }
  }
  const ir::Shape fresh_shape = caches[0].fresh->shape ? *caches[0].fresh->shape : ir::Shape{};
  if (fresh_shape.size() != 4) return false;

  Value* length = nullptr;
  if (!symbol.empty()) {
    length = graph.add_input(std::string(kCacheLengthInput), DType::kInt64, ir::Shape{});
    length->elements = std::vector<ir::Dim>{ir::Dim::symbol(symbol)};
  }
  // [batch] tensors of the write position and of the valid length after writing.
  Value *at = nullptr, *total = nullptr;
  if (concatenated) {
    DECANT_ASSIGN(Value * batch_shape,
                  add_typed(graph, "Shape", {caches[0].fresh}, {{"start", int64_t{0}}, {"end", int64_t{1}}}));
    DECANT_ASSIGN(Value * query_shape,
                  add_typed(graph, "Shape", {caches[0].fresh}, {{"start", int64_t{2}}, {"end", int64_t{3}}}));
    DECANT_ASSIGN(at, add_typed(graph, "Expand", {length, batch_shape}));
    DECANT_ASSIGN(total, add_typed(graph, "Add", {at, query_shape}));
  }

  for (const GrowingCache& c : caches) {
    State& s = graph.states[c.state];
    if (length && c.writer->op() != "SlidingCache")
      DECANT_RETURN_IF_ERROR(keep_shape(graph, s.input, c.fresh, length));
    ir::Shape fixed = *s.input->shape;
    if (!fixed[2].is_constant() || c.writer->op() == "SlidingCache")
      fixed[2] = ir::Dim::symbol("max_cache_len");
    s.input->shape = fixed;
    s.form = State::Form::kFixed;
    if (c.writer->is("TensorScatter")) {
      c.writer->set_input(0, s.input);
      continue;
    }
    const bool sliding = !c.writer->is("Concat");
    DECANT_ASSIGN(Value * scatter,
                  add_typed(graph, "TensorScatter", {s.input, c.fresh, sliding ? c.writer->input(2) : at},
                            {{"axis", int64_t{2}}}));
    if (sliding) {
      replace(graph, c.writer->output(1), scatter);
      replace(graph, c.writer->output(2), c.writer->input(2));
      replace(graph, s.output, scatter);
      continue;
    }
    const std::vector<Node*> readers = s.output->users();
    replace(graph, s.output, scatter);
    for (Node* reader : readers) {
      if (reader->is("Attention")) reader->set_input(6, total);
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
