#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace decant::onnx {

/// What the rules of lower/ work on: emits typed nodes into one graph, and shares what several nodes need
/// (masks as numbers, scatter indices, reshaped tables). Values that an emit_* call could not type are
/// reported by status().
class Lowering {
 public:
  Lowering(ir::Graph& graph, int opset) : graph_(graph), opset_(opset) {}

  ir::Graph& graph() { return graph_; }
  int opset() const { return opset_; }

  using Attributes = std::vector<std::pair<std::string, ir::Attribute>>;
  /// A node named `<prefix>/<op>`; returns its first output.
  ir::Value* emit(std::string op, std::vector<ir::Value*> inputs, Attributes attributes = {});
  ir::Node* emit_node(std::string op, std::vector<ir::Value*> inputs, size_t outputs,
                      Attributes attributes = {});
  /// A node of com.microsoft, whose operators inference does not know.
  ir::Value* emit_vendor(std::string op, std::vector<ir::Value*> inputs, Attributes attributes, DType dtype,
                         std::optional<ir::Shape> shape);
  ir::Value* ints(std::vector<int64_t> values);
  ir::Value* int_scalar(int64_t value);
  /// A rank-0 float constant.
  ir::Value* number(DType dtype, double value);
  ir::Value* cast(ir::Value* x, DType dtype);
  ir::Value* transpose(ir::Value* x, std::vector<int64_t> perm);

  /// The node being lowered; its name is the prefix of what is emitted.
  void begin(ir::Node& node) { prefix_ = node.name; }
  /// The node's output i is `value` from now on.
  void replace(ir::Node& node, size_t i, ir::Value* value);
  Status unsupported_node(const ir::Node& node, std::string_view what) const;
  const Status& status() const { return status_; }

  /// Values made once for several nodes, by a key that says what they are.
  std::map<std::string, ir::Value*> shared;

 private:
  ir::Graph& graph_;
  int opset_;
  std::string prefix_;
  Status status_;
};

/// One operator a file. Each replaces the node's outputs; the caller removes the node.
Status lower_rms_normalization(Lowering& l, ir::Node& node);
Status lower_rotary_embedding(Lowering& l, ir::Node& node);
Status lower_attention(Lowering& l, ir::Node& node);
Status lower_tensor_scatter(Lowering& l, ir::Node& node);
Status lower_swish(Lowering& l, ir::Node& node);
Status lower_swiglu(Lowering& l, ir::Node& node);
Status lower_gelu(Lowering& l, ir::Node& node);
/// com.microsoft: a Transpose (or none), a MatMul, and a Mul where alpha is not 1.
Status lower_fused_matmul(Lowering& l, ir::Node& node);
/// Reduce* before opset 18: the axes become an attribute; the node stays.
Status lower_reduce(Lowering& l, ir::Node& node);
/// Split before opset 18: num_outputs goes away; the node stays.
Status lower_split(Lowering& l, ir::Node& node);

}  // namespace decant::onnx
