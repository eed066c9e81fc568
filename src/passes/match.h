#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/op.h"

namespace decant::passes {

/// The node that produces `value`, when it is the ONNX operator `op`; else null.
inline ir::Node* producer(const ir::Value* value, std::string_view op) {
  return value && value->producer && value->producer->is(op) ? value->producer : nullptr;
}

/// The single number in a constant of one element.
std::optional<double> scalar(const ir::Value* value);

/// The integers of a constant of rank 0 or 1, or of a value whose elements are all known.
std::optional<std::vector<int64_t>> ints(const ir::Value* value);

/// The other input of a two-input node, when one input is `value`.
ir::Value* other_input(const ir::Node* node, const ir::Value* value);

/// A two-input node's scalar constant and the other input; nothing when neither is one.
struct ScalarSide {
  double number;
  ir::Value* rest;
};
std::optional<ScalarSide> scalar_side(const ir::Node* node);

/// Steps over Cast nodes that do not change the kind of number (between float dtypes).
ir::Value* skip_float_casts(ir::Value* value);

/// Adds a node and types it. The caller guarantees that the op accepts the inputs.
Result<ir::Node*> add_typed(ir::Graph& graph, std::string op, std::vector<ir::Value*> inputs,
                            std::map<std::string, ir::Attribute, std::less<>> attributes = {},
                            std::string domain = "");

/// Redirects the users of `from` to `to`, keeping graph-output names: `to` takes the name of an output it
/// replaces.
void replace(ir::Graph& graph, ir::Value* from, ir::Value* to);

}  // namespace decant::passes
