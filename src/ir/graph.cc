#include "ir/graph.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

namespace decant::ir {

void Node::set_input(size_t i, Value* value) {
  if (i >= inputs_.size()) inputs_.resize(i + 1, nullptr);
  if (Value* old = inputs_[i]) {
    auto it = std::find(old->users_.begin(), old->users_.end(), this);
    if (it != old->users_.end()) old->users_.erase(it);
  }
  inputs_[i] = value;
  if (value) value->users_.push_back(this);
}

void Node::drop_last_input() {
  set_input(inputs_.size() - 1, nullptr);
  inputs_.pop_back();
}

int64_t Node::int_attribute(std::string_view key, int64_t fallback) const {
  const auto* v = attribute<int64_t>(key);
  return v ? *v : fallback;
}

float Node::float_attribute(std::string_view key, float fallback) const {
  const auto* v = attribute<float>(key);
  return v ? *v : fallback;
}

std::string Node::string_attribute(std::string_view key, std::string fallback) const {
  const auto* v = attribute<std::string>(key);
  return v ? *v : fallback;
}

std::string Node::describe() const {
  return "node '" + name + "' (" + (domain_.empty() ? "" : domain_ + "::") + op_ + ")";
}

std::string_view to_string(ValueKind kind) {
  switch (kind) {
    case ValueKind::kTensor:
      return "tensor";
    case ValueKind::kSequence:
      return "sequence";
    case ValueKind::kOptional:
      return "optional";
    case ValueKind::kOptionalSequence:
      return "optional sequence";
  }
  return "unknown";
}

Graph::~Graph() {
  // Outputs of sub-graphs may be values of this graph, and someone may still hold a sub-graph.
  const auto drop_outputs = [](const auto& self, Graph& graph) -> void {
    for (Value* v : graph.outputs_) std::erase(v->output_of_, &graph);
    graph.outputs_.clear();
    for (const auto& node : graph.nodes_) {
      if (!node) continue;
      for (auto& [key, attribute] : node->attributes) {
        if (auto* sub = std::get_if<std::shared_ptr<Graph>>(&attribute); sub && *sub) self(self, **sub);
      }
    }
  };
  drop_outputs(drop_outputs, *this);
}

void Graph::add_output(Value* value) {
  outputs_.push_back(value);
  value->output_of_.push_back(this);
}

void Graph::set_output(size_t i, Value* value) {
  std::vector<Graph*>& graphs = outputs_[i]->output_of_;
  if (auto it = std::find(graphs.begin(), graphs.end(), this); it != graphs.end()) graphs.erase(it);
  outputs_[i] = value;
  value->output_of_.push_back(this);
}

Value* Graph::new_value(std::string value_name) {
  values_.push_back(std::make_unique<Value>());
  Value* v = values_.back().get();
  taken_.emplace(value_name, 0);
  v->name = std::move(value_name);
  return v;
}

Value* Graph::add_input(std::string input_name, DType dtype, std::optional<Shape> shape) {
  Value* v = new_value(std::move(input_name));
  v->dtype = dtype;
  v->shape = std::move(shape);
  inputs_.push_back(v);
  return v;
}

Value* Graph::add_constant(std::string constant_name, ConstantPtr constant) {
  Value* v = new_value(std::move(constant_name));
  v->dtype = constant->dtype();
  v->shape = Shape(constant->dims().begin(), constant->dims().end());
  v->constant = std::move(constant);
  return v;
}

void Graph::remove_input(Value* value) { std::erase(inputs_, value); }

Node* Graph::add_node(std::string op, std::vector<Value*> node_inputs, size_t output_count,
                      std::string node_name, std::string domain) {
  nodes_.push_back(std::make_unique<Node>(std::move(op), std::move(domain)));
  Node* node = nodes_.back().get();
  node->name = node_name.empty() ? unique_name(node->op()) : std::move(node_name);
  for (size_t i = 0; i < node_inputs.size(); ++i) node->set_input(i, node_inputs[i]);
  for (size_t i = 0; i < output_count; ++i) {
    Value* v = new_value(unique_name(i == 0 ? node->name : node->name + "_" + std::to_string(i)));
    v->producer = node;
    node->outputs_.push_back(v);
  }
  return node;
}

Value* Graph::add_node_output(Node* node, std::string value_name) {
  if (value_name.empty()) {
    node->outputs_.push_back(nullptr);
    return nullptr;
  }
  Value* v = new_value(std::move(value_name));
  v->producer = node;
  node->outputs_.push_back(v);
  return v;
}

void Graph::drop_node_output(Node* node, size_t i) { node->outputs_[i] = nullptr; }

void Graph::replace_all_uses(Value* from, Value* to) {
  if (from == to) return;
  const std::vector<Node*> users = from->users_;
  for (Node* user : users) {
    for (size_t i = 0; i < user->inputs_.size(); ++i) {
      if (user->inputs_[i] == from) user->set_input(i, to);
    }
  }
  const std::vector<Graph*> graphs = from->output_of_;
  for (Graph* graph : graphs) {
    for (size_t i = 0; i < graph->outputs_.size(); ++i) {
      if (graph->outputs_[i] == from) graph->set_output(i, to);
    }
  }
  for (State& s : states) {
    if (s.output == from) s.output = to;
  }
}

void Graph::absorb(Graph& branch) {
  for (size_t i = 0; i < branch.outputs_.size(); ++i) {
    std::vector<Graph*>& graphs = branch.outputs_[i]->output_of_;
    if (auto it = std::find(graphs.begin(), graphs.end(), &branch); it != graphs.end()) graphs.erase(it);
  }
  branch.outputs_.clear();
  for (std::unique_ptr<Value>& v : branch.values_) {
    v->name = unique_name(v->name);
    taken_.emplace(v->name, 0);
    values_.push_back(std::move(v));
  }
  for (std::unique_ptr<Node>& node : branch.nodes_) {
    if (node) nodes_.push_back(std::move(node));
  }
  branch.values_.clear();
  branch.nodes_.clear();
}

void Graph::release(Node* node) {
  for (size_t i = 0; i < node->inputs_.size(); ++i) node->set_input(i, nullptr);
  for (const auto& [key, attribute] : node->attributes) {
    const auto* sub = std::get_if<std::shared_ptr<Graph>>(&attribute);
    if (!sub || !*sub) continue;
    for (const auto& inner : (*sub)->nodes_) {
      if (inner) release(inner.get());
    }
  }
}

void Graph::remove_node(Node* node) {
  release(node);
  for (auto& slot : nodes_) {
    if (slot.get() == node) {
      slot.reset();
      return;
    }
  }
}

namespace {

template <typename F>
void for_each_capture(const Node& node, const F& visit);

/// Calls `visit` for each value that nodes and outputs of a graph refer to, at any depth.
template <typename F>
void for_each_use(const Graph& graph, const F& visit) {
  for (const auto& inner : graph.nodes()) {
    if (!inner) continue;
    for (Value* v : inner->inputs()) {
      if (v) visit(v);
    }
    for_each_capture(*inner, visit);
  }
  for (Value* v : graph.outputs()) visit(v);
}

/// The same for the sub-graphs of a node.
template <typename F>
void for_each_capture(const Node& node, const F& visit) {
  for (const auto& [key, attribute] : node.attributes) {
    const auto* sub = std::get_if<std::shared_ptr<Graph>>(&attribute);
    if (sub && *sub) for_each_use(**sub, visit);
  }
}

}  // namespace

size_t Graph::remove_dead() {
  std::unordered_set<const Value*> needed(outputs_.begin(), outputs_.end());
  std::vector<Node*> stack;
  std::unordered_set<const Node*> live;
  auto need = [&](Value* v) {
    needed.insert(v);
    if (v->producer && live.insert(v->producer).second) stack.push_back(v->producer);
  };
  for (Value* v : outputs_) need(v);
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (Value* v : node->inputs_) {
      if (v) need(v);
    }
    for_each_capture(*node, need);
  }
  size_t removed = 0;
  for (auto& slot : nodes_) {
    if (!slot || live.count(slot.get())) continue;
    release(slot.get());
    slot.reset();
    ++removed;
  }
  std::erase(nodes_, nullptr);
  const std::unordered_set<const Value*> kept_inputs(inputs_.begin(), inputs_.end());
  std::unordered_set<const Value*> produced;
  for (const auto& node : nodes_) {
    for (const Value* v : node->outputs_) produced.insert(v);
  }
  std::erase_if(values_, [&](const std::unique_ptr<Value>& v) {
    return !needed.count(v.get()) && !kept_inputs.count(v.get()) && !produced.count(v.get());
  });
  return removed;
}

Status Graph::sort() {
  std::erase(nodes_, nullptr);
  std::unordered_map<const Node*, size_t> index;
  for (size_t i = 0; i < nodes_.size(); ++i) index.emplace(nodes_[i].get(), i);
  std::vector<std::vector<size_t>> followers(nodes_.size());
  std::vector<size_t> waiting(nodes_.size(), 0);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    auto depend = [&](const Value* v) {
      auto it = v->producer ? index.find(v->producer) : index.end();
      if (it == index.end()) return;
      followers[it->second].push_back(i);
      ++waiting[i];
    };
    for (const Value* v : nodes_[i]->inputs_) {
      if (v) depend(v);
    }
    for_each_capture(*nodes_[i], depend);
  }
  // Stable: among the nodes that are ready, the one that came first goes first.
  std::vector<size_t> ready;
  const auto later = std::greater<>();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (waiting[i] == 0) ready.push_back(i);
  }
  std::make_heap(ready.begin(), ready.end(), later);
  std::vector<size_t> order;
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    const size_t i = ready.back();
    ready.pop_back();
    order.push_back(i);
    for (size_t f : followers[i]) {
      if (--waiting[f] == 0) {
        ready.push_back(f);
        std::push_heap(ready.begin(), ready.end(), later);
      }
    }
  }
  if (order.size() != nodes_.size()) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (waiting[i] != 0)
        return invalid_model(nodes_[i]->describe() + " is part of, or depends on, a cycle");
    }
  }
  std::vector<std::unique_ptr<Node>> sorted;
  sorted.reserve(nodes_.size());
  for (size_t i : order) sorted.push_back(std::move(nodes_[i]));
  nodes_ = std::move(sorted);
  return ok_status();
}

std::string Graph::unique_name(std::string_view hint) {
  auto it = taken_.find(hint);
  if (it == taken_.end()) return std::string(hint);
  for (;;) {
    std::string candidate = std::string(hint) + "_" + std::to_string(++it->second);
    if (!taken_.contains(candidate)) return candidate;
  }
}

Dim Graph::fresh_symbol(std::string_view hint) {
  return Dim::symbol("?" + std::string(hint) + "_" + std::to_string((*next_symbol_)++));
}

bool Graph::made_since(const Dim& dim, int64_t mark) {
  for (const std::string& symbol : dim.symbols()) {
    const size_t at = symbol.rfind('_');
    if (!symbol.starts_with('?') || at == std::string::npos) continue;
    int64_t number = 0;
    const char* end = symbol.data() + symbol.size();
    const auto parsed = std::from_chars(symbol.data() + at + 1, end, number);
    if (parsed.ptr == end && number >= mark) return true;
  }
  return false;
}

void Graph::nest_in(Graph& outer) {
  depth_ = outer.depth_ + 1;
  if (next_symbol_ == outer.next_symbol_) return;
  *outer.next_symbol_ = std::max(*outer.next_symbol_, *next_symbol_);
  next_symbol_ = outer.next_symbol_;
}

Value* Graph::find_value(std::string_view value_name) const {
  for (const auto& v : values_) {
    if (v->name == value_name) return v.get();
  }
  return nullptr;
}

bool Graph::is_output(const Value* value) const {
  return std::find(outputs_.begin(), outputs_.end(), value) != outputs_.end();
}

Graph* subgraph(const Node& node, std::string_view attribute) {
  const auto* sub = node.attribute<std::shared_ptr<Graph>>(attribute);
  return sub ? sub->get() : nullptr;
}

bool has_subgraphs(const Node& node) {
  for (const auto& [key, attribute] : node.attributes) {
    if (std::holds_alternative<std::shared_ptr<Graph>>(attribute)) return true;
  }
  return false;
}

namespace {

void collect_owned(const Graph& graph, std::unordered_set<const Value*>& owned) {
  for (const auto& v : graph.values()) owned.insert(v.get());
  for (const auto& node : graph.nodes()) {
    if (!node) continue;
    for (const auto& [key, attribute] : node->attributes) {
      const auto* sub = std::get_if<std::shared_ptr<Graph>>(&attribute);
      if (sub && *sub) collect_owned(**sub, owned);
    }
  }
}

}  // namespace

std::vector<Value*> captured_values(const Graph& graph) {
  std::unordered_set<const Value*> seen;
  collect_owned(graph, seen);
  std::vector<Value*> captured;
  for_each_use(graph, [&](Value* v) {
    if (seen.insert(v).second) captured.push_back(v);
  });
  return captured;
}

std::vector<Value*> captured_values(const Node& node) {
  std::vector<Value*> captured;
  for (const auto& [key, attribute] : node.attributes) {
    const auto* sub = std::get_if<std::shared_ptr<Graph>>(&attribute);
    if (!sub || !*sub) continue;
    for (Value* v : captured_values(**sub)) {
      if (std::find(captured.begin(), captured.end(), v) == captured.end()) captured.push_back(v);
    }
  }
  return captured;
}

}  // namespace decant::ir
