#include "ir/graph.h"

namespace decant::ir {

std::unique_ptr<Graph> Graph::clone() const {
  std::unordered_map<const Value*, Value*> copies;
  return clone(copies);
}

std::unique_ptr<Graph> Graph::clone(std::unordered_map<const Value*, Value*>& copies) const {
  auto graph = std::make_unique<Graph>();
  graph->name = name;
  graph->metadata = metadata;
  graph->symbol_ranges = symbol_ranges;
  graph->taken_ = taken_;
  graph->next_symbol_ = std::make_shared<int64_t>(*next_symbol_);
  graph->depth_ = depth_;
  for (const auto& value : values_) {
    auto copy = std::make_unique<Value>(*value);
    copy->users_.clear();
    copy->output_of_.clear();
    copy->producer = nullptr;
    copies[value.get()] = copy.get();
    graph->values_.push_back(std::move(copy));
  }
  const auto copy_of = [&](Value* value) {
    auto it = copies.find(value);
    return it == copies.end() ? value : it->second;
  };
  for (const auto& node : nodes_) {
    if (!node) continue;
    auto copy = std::make_unique<Node>(node->op(), node->domain());
    copy->name = node->name;
    copy->attributes = node->attributes;
    copy->custom = node->custom;
    for (auto& [key, attribute] : copy->attributes) {
      auto* sub = std::get_if<std::shared_ptr<Graph>>(&attribute);
      if (sub && *sub) *sub = (*sub)->clone(copies);
    }
    copy->inputs_.resize(node->inputs_.size(), nullptr);
    for (size_t i = 0; i < node->inputs_.size(); ++i) copy->set_input(i, copy_of(node->inputs_[i]));
    for (Value* output : node->outputs_) {
      Value* value = copy_of(output);
      if (value) value->producer = copy.get();
      copy->outputs_.push_back(value);
    }
    graph->nodes_.push_back(std::move(copy));
  }
  for (Value* value : inputs_) graph->inputs_.push_back(copy_of(value));
  for (Value* value : outputs_) graph->add_output(copy_of(value));
  for (State state : states) {
    state.input = copy_of(state.input);
    state.output = copy_of(state.output);
    graph->states.push_back(state);
  }
  return graph;
}

}  // namespace decant::ir
