#pragma once

#include <functional>
#include <map>
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

using Attributes = std::map<std::string, ir::Attribute, std::less<>>;

/// Adds a node and types it; returns its first output. The caller guarantees that the op accepts the inputs.
Result<ir::Value*> add_typed(ir::Graph& graph, std::string op, std::vector<ir::Value*> inputs,
                             Attributes attributes = {}, std::string domain = "");

/// Redirects the users of `from` to `to`, keeping graph-output names: `to` takes the name of an output it
/// replaces.
void replace(ir::Graph& graph, ir::Value* from, ir::Value* to);

/// Offers every node of the graph to `replacement`, which returns the value that takes the place of the
/// node's first output, or null. Nodes that it adds are not offered. Cleans up and sorts when anything
/// changed.
Result<bool> rewrite(ir::Graph& graph, const std::function<Result<ir::Value*>(ir::Node& node)>& replacement);

}  // namespace decant::passes
