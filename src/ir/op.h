#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/run_options.h"
#include "base/status.h"
#include "ir/datum.h"
#include "ir/graph.h"
#include "ir/tensor.h"

namespace decant::ir {

/// What type inference of one node works on. Inputs are typed already (a dtype always; a shape where known).
class InferContext {
 public:
  InferContext(Graph& graph, Node& node) : graph_(graph), node_(node) {}
  Graph& graph() { return graph_; }
  const Node& node() const { return node_; }

  size_t input_count() const { return node_.inputs().size(); }
  /// Null when the optional input is left out.
  const Value* input(size_t i) const { return node_.input(i); }
  bool has_input(size_t i) const { return node_.input(i) != nullptr; }
  DType dtype(size_t i) const { return node_.input(i)->dtype; }
  const std::optional<Shape>& shape(size_t i) const { return node_.input(i)->shape; }
  /// Integer elements of input i as expressions: from inference, or from a small integer constant. Nothing if
  /// unknown.
  std::optional<std::vector<Dim>> elements(size_t i) const;
  /// The same when all are known numbers.
  std::optional<std::vector<int64_t>> constant_ints(size_t i) const;

  void set_output(size_t i, DType dtype, std::optional<Shape> shape, ValueKind kind = ValueKind::kTensor);
  ValueKind kind(size_t i) const { return node_.input(i)->kind; }
  void set_elements(size_t i, std::vector<Dim> elements);
  Dim fresh_symbol(std::string_view hint) { return graph_.fresh_symbol(hint); }
  /// A shape of `rank` fresh symbols.
  Shape fresh_shape(size_t rank, std::string_view hint);

  /// invalid_model with the node, the op, and the inputs' dtypes and shapes in front of `what`.
  Status error(std::string_view what) const;

 private:
  Graph& graph_;
  Node& node_;
};

/// One operator: defined once, in ir/ops/<op>.cc, and registered there with DECANT_OP.
struct OpDef {
  std::string_view name;         ///< ONNX name
  std::string_view domain = "";  ///< "" for ai.onnx
  std::string_view doc;          ///< one row for the operator table in the docs
  int min_inputs = 0;
  int max_inputs = 0;   ///< -1: variadic
  int max_outputs = 1;  ///< -1: variadic
  /// Also takes strings, complex numbers and elements of 8 bits and less (int4, float8, ...): ops that move
  /// elements, or that check the types themselves. Others get numbers and bools only.
  bool any_dtype = false;

  /// Sets dtype and shape of every output present, and elements where they follow. Must check ranks before
  /// indexing.
  Status (*infer)(InferContext& context) = nullptr;

  /// Reference kernel: slow and obvious, every type the op allows, double or int64 accumulation. Inputs left
  /// out are null. Returns one tensor for each output slot of the node (default-constructed for slots left
  /// out). Checks what type inference could not: data-dependent shapes, indices out of range. Null for ops
  /// with sub-graphs.
  Result<std::vector<Tensor>> (*eval)(const Node& node, std::span<const Tensor* const> inputs) = nullptr;

  /// Each evaluation gives other values: never folded or merged.
  bool random = false;

  /// The same for ops that take or give sequences or optionals. An op with both uses this one when an input
  /// is no tensor. Ops without it get tensors only.
  Result<std::vector<Datum>> (*eval_data)(const Node& node, std::span<const Datum* const> inputs) = nullptr;
};

/// The op, or null when unknown.
const OpDef* find_op(std::string_view domain, std::string_view name);
/// All registered ops, sorted by domain and name.
std::vector<const OpDef*> all_ops();
/// `DECANT_OP(MatMul) { return {.name = "MatMul", ...}; }` at the start of a line in ops/<file>.cc, inside
/// namespace decant::ir: the build lists the folder's DECANT_OP lines, so that a new op needs no other edit.
#define DECANT_OP(id)     \
  OpDef decant_op_##id(); \
  OpDef decant_op_##id()

/// Types every value of the graph and its sub-graphs, in order. Unknown ops are collected and reported all at
/// once.
Status infer_types(Graph& graph);
/// Types the values of a sub-graph of a node in `outer`; its inputs have their types already. For the
/// inference of control flow.
Status infer_subgraph(Graph& outer, Graph& body);
/// Types one node; used by passes that add nodes.
Status infer_node(Graph& graph, Node& node);

/// Runs one node on the reference kernels.
Result<std::vector<Tensor>> evaluate_node(const Node& node, std::span<const Tensor* const> inputs);
/// The same where an input or output may be a sequence or an optional.
Result<std::vector<Datum>> evaluate_node_data(const Node& node, std::span<const Datum* const> inputs);
/// Runs a whole graph on the reference kernels (sub-graphs included); inputs by position, outputs by
/// position. Fails when an output is no tensor.
Result<std::vector<Tensor>> evaluate_graph(const Graph& graph, std::span<const Tensor> inputs,
                                           const RunOptions& options = {});
Result<std::vector<Datum>> evaluate_graph_data(const Graph& graph, std::span<const Datum> inputs,
                                               const RunOptions& options = {});

}  // namespace decant::ir
