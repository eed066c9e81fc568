#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace decant::onnx {

/// Rewrites nodes of opset 6 to 28 to the newest form of their operators, sub-graphs included; leaves the
/// graphs sorted and without dead nodes. Operators without a changed form, or unknown ones, are left alone.
Status adapt_graph(ir::Graph& graph, const std::function<int64_t(const ir::Node*)>& opset_of);

/// What one adapter works on: a node of an old (or the newest) version, in its graph.
class Adaptation {
 public:
  Adaptation(ir::Graph& in_graph, ir::Node& old_node, int64_t old_opset, std::vector<ir::Graph*>& graphs)
      : graph(in_graph), node(old_node), opset(old_opset), graphs_(graphs) {}

  ir::Graph& graph;
  ir::Node& node;
  const int64_t opset;

  bool has(std::string_view attribute) const {
    return node.attributes.find(attribute) != node.attributes.end();
  }
  void erase(std::string_view attribute);
  /// A new constant, named after the node and `role`.
  ir::Value* ints(std::string_view role, std::vector<int64_t> values);
  ir::Value* scalar(std::string_view role, DType dtype, double value);
  ir::Value* int_scalar(std::string_view role, int64_t value);
  /// Moves an INTS attribute to an input; no effect when it is absent. Fails when the input is taken.
  Status attribute_to_input(std::string_view attribute, size_t input);
  /// The node's output i is `value` from now on (it takes the name over).
  void replace_output(size_t i, ir::Value* value);
  /// Whether this graph or one around it returns the value.
  bool is_graph_output(const ir::Value* value) const;
  /// A sub-graph of the node goes away with it.
  void forget(const ir::Graph* sub_graph);
  /// Removes the node; its outputs must have been replaced.
  void remove();
  /// The form does not fit the declared opset: names node, operator, opset and `rule`.
  Status mismatch(std::string_view rule) const;

  /// Fails when `attribute` is present although the form with an input came with opset `since`, or when input
  /// `input` is present although it came with `since` only.
  Status check_moved(std::string_view attribute, size_t input, int64_t since) const;

 private:
  std::vector<ir::Graph*>& graphs_;
};

/// Adapters, one family a file. Each is called for its operators in every opset.
Status adapt_axes(Adaptation& a, int64_t since);  ///< Squeeze, Unsqueeze, Reduce*
Status adapt_softmax(Adaptation& a);              ///< Softmax, LogSoftmax, Hardmax
Status adapt_clip(Adaptation& a);
Status adapt_slice(Adaptation& a);
Status adapt_pad(Adaptation& a);
Status adapt_split(Adaptation& a);
Status adapt_dropout(Adaptation& a);
Status adapt_broadcast(Adaptation& a);  ///< Arithmetic, comparisons, logic, Gemm
Status adapt_prelu(Adaptation& a);
Status adapt_group_norm(Adaptation& a);
Status adapt_flex_attention(Adaptation& a);  ///< ai.onnx.preview
Status adapt_topk(Adaptation& a);
Status adapt_scatter(Adaptation& a);
Status adapt_resize(Adaptation& a);
Status adapt_upsample(Adaptation& a);  ///< to Resize
Status adapt_grid_sample(Adaptation& a);
Status adapt_roi_align(Adaptation& a);
Status adapt_batch_normalization(Adaptation& a);
Status adapt_dft(Adaptation& a);
Status adapt_scan(Adaptation& a);
Status adapt_simplified_layer_norm(Adaptation& a);       ///< SimplifiedLayerNormalization
Status adapt_skip_simplified_layer_norm(Adaptation& a);  ///< com.microsoft SkipSimplifiedLayerNormalization

}  // namespace decant::onnx
