#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "formats/onnx/messages.h"
#include "formats/onnx/tensor_loader.h"
#include "ir/graph.h"

namespace decant::onnx {

/// Builds ir graphs from messages: names become values, sub-graphs capture values of the graphs around them,
/// local functions are inlined. One builder builds one model.
class GraphBuilder {
 public:
  GraphBuilder(ParseContext& context, TensorLoader& loader, const ModelMessage& model)
      : context_(context), loader_(loader), model_(model) {}

  /// The main graph, sorted; nodes are as the file has them (see opset_of).
  Result<std::unique_ptr<ir::Graph>> build();

  /// The version of the ONNX operators a node was written for: functions may import another one than the
  /// model.
  int64_t opset_of(const ir::Node* node) const;

 private:
  /// Names visible at one level; lookups go outwards. `values` keys view the mapped file.
  struct Scope {
    std::unordered_map<std::string_view, ir::Value*> values;
    const Scope* parent = nullptr;
  };
  using AttributeMap = std::map<std::string_view, const AttributeMessage*>;
  /// Where nodes come from: the model itself, or a call of a function.
  struct Origin {
    std::string prefix;                        ///< of node and value names
    const AttributeMap* attributes = nullptr;  ///< actual attributes of the call; null outside functions
    int64_t opset = 0;
  };

  Status load_functions();
  /// Nodes after inlining everything a list of nodes calls; fails on recursion, depth and size.
  Result<uint64_t> inlined_size(const std::vector<NodeMessage>& nodes, int depth);
  Status add_inputs(ir::Graph& graph, const GraphMessage& message, Scope& scope, bool is_main);
  Status add_initializers(ir::Graph& graph, const GraphMessage& message, Scope& scope);
  Status add_nodes(ir::Graph& graph, const std::vector<NodeMessage>& nodes, Scope& scope,
                   const Origin& origin, int depth);
  Status add_call(ir::Graph& graph, const NodeMessage& call, const FunctionMessage& function,
                  const std::vector<ir::Node*>& results, const Scope& scope, const Origin& origin, int depth);
  Result<ir::ConstantPtr> constant_of(const NodeMessage& node, const Origin& origin);
  Status set_attributes(ir::Node& node, const NodeMessage& message, const Scope& scope, const Origin& origin,
                        int depth);
  Result<std::shared_ptr<ir::Graph>> build_subgraph(Bytes bytes, const Scope& scope, const Origin& origin,
                                                    int depth);
  Status define(Scope& scope, std::string_view name, ir::Value* value, std::string_view where);
  /// The value of that name; null when it is unknown, or a function input that the call leaves out.
  static ir::Value* find(const Scope& scope, std::string_view name);
  static bool is_left_out(const Scope& scope, std::string_view name);
  const FunctionMessage* function_of(const NodeMessage& node) const;

  ParseContext& context_;
  TensorLoader& loader_;
  const ModelMessage& model_;
  ir::Graph* main_ = nullptr;
  std::map<std::string, FunctionMessage> functions_;  ///< by "domain:name:overload"
  std::map<const FunctionMessage*, uint64_t> sizes_;
  std::set<const FunctionMessage*> measuring_;
  std::unordered_map<const ir::Node*, int64_t>
      opsets_;  ///< of nodes from functions with an opset of their own
};

}  // namespace decant::onnx
