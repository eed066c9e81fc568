#pragma once

#include <unordered_map>
#include <unordered_set>

#include "runtime/memory_plan.h"
#include "runtime/plan.h"

namespace decant::runtime {

/// Builds a Plan from a typed, sorted graph: decides where each value lives, groups products that share their
/// left operand, picks kernels, and assigns memory.
class PlanBuilder {
 public:
  /// `outer` is the builder of the plan around a body; `captured` are the values that the body takes from
  /// there.
  PlanBuilder(Plan& plan, const PlanOptions& options, PlanBuilder* outer = nullptr,
              std::span<const ir::Value* const> captured = {});
  Status build();

 private:
  Status add_inputs();
  Status add_node(const ir::Node& node);
  Status add_control_flow(const ir::Node& node, std::vector<int> inputs);
  Result<Plan::Body> build_body(std::shared_ptr<const ir::Graph> graph, Plan::Step& step);
  void inherit_symbols();
  Status add_group(const std::vector<const ir::Node*>& group);
  Status find_groups();
  void find_needed();
  bool known_elements(const ir::Node& node) const;
  Status add_step(const ir::Node& node, std::unique_ptr<Kernel> kernel, std::vector<int> inputs,
                  std::vector<int> outputs);
  Result<int> value_index(const ir::Value* value);
  int new_value(const ir::Value& value, Plan::Storage storage);
  int root_of(int value) const;
  bool resolvable(const ir::Value& value) const;
  /// Whether the plan knows the dims of everything that `value`'s producer makes.
  bool sized(const ir::Value& value) const;
  bool writes_state_in_place(const ir::Node& node) const;
  void plan_memory();
  int64_t hint_bytes(const ir::Value& value) const;

  Plan& plan_;
  PlanOptions options_;
  PlanBuilder* outer_ = nullptr;
  std::unordered_map<const ir::Value*, int> index_;
  std::vector<const ir::Value*> source_;      ///< by value index
  std::unordered_set<std::string> bindable_;  ///< symbols that inputs give, here or in an outer plan
  std::unordered_set<std::string> bound_;     ///< those that inputs of this plan give
  std::unordered_map<const ir::Node*, std::vector<const ir::Node*>> groups_;  ///< by first member
  std::unordered_set<const ir::Node*> grouped_;                               ///< later members
  std::unordered_map<const ir::Node*, const ir::Node*> bias_;  ///< the Add that a product takes over
  /// Products that read their weights packed.
  std::unordered_map<const ir::Node*, std::shared_ptr<const kernels::LowBitMatrix>> low_bit_;
  std::unordered_set<const ir::Value*> needed_;  ///< values that some step reads, or outputs
};

/// Whether the op's output is its first input's memory under another shape.
bool is_view(const ir::Node& node);

}  // namespace decant::runtime
