#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
  /// Values that several nodes of one graph share, by a key that says what they are.
  using Shared = std::map<std::string, ir::Value*>;

  Adaptation(ir::Graph& in_graph, ir::Node& old_node, int64_t old_opset, std::vector<ir::Graph*>& graphs,
             Shared& in_shared)
      : graph(in_graph), node(old_node), opset(old_opset), shared(in_shared), graphs_(graphs) {}

  ir::Graph& graph;
  ir::Node& node;
  const int64_t opset;
  Shared& shared;

  bool has(std::string_view attribute) const {
    return node.attributes.find(attribute) != node.attributes.end();
  }
  void erase(std::string_view attribute);
  /// A new constant, named after the node and `role`.
  ir::Value* ints(std::string_view role, std::vector<int64_t> values);
  ir::Value* scalar(std::string_view role, DType dtype, double value);
  ir::Value* int_scalar(std::string_view role, int64_t value);
  using Attributes = std::vector<std::pair<std::string, ir::Attribute>>;
  /// A node named after this one, typed where its inputs are; returns it / its first output.
  ir::Node* emit_node(std::string op, std::vector<ir::Value*> inputs, size_t outputs,
                      Attributes attributes = {}, std::string domain = "");
  ir::Value* emit(std::string op, std::vector<ir::Value*> inputs, Attributes attributes = {},
                  std::string domain = "") {
    return emit_node(std::move(op), std::move(inputs), 1, std::move(attributes), std::move(domain))
        ->output(0);
  }
  ir::Value* cast(ir::Value* x, DType dtype);
  ir::Value* int_scalar(int64_t value);
  /// The constant that input i is, also behind Reshape and Identity (then with the new dims). Fails, naming
  /// it as `what`, when it is left out or computed at run time.
  Result<ir::ConstantPtr> constant_input(size_t i, std::string_view what) const;
  /// A number of an attribute that must be given and be at least `min`.
  Result<int64_t> required_int(std::string_view attribute, int64_t min) const;
  /// Fails when output i is used.
  Status check_unused(size_t i, std::string_view what) const;
  Status unsupported_form(std::string_view what) const;
  Status bad_form(std::string_view what) const;

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
Status adapt_dequantize(Adaptation& a);                  ///< DequantizeLinear of constants: packed constants

/// Operators of com.microsoft, as ONNX Runtime 1.32 defines them.
Status adapt_matmul_nbits(Adaptation& a);
Status adapt_gather_block_quantized(Adaptation& a);
Status adapt_matmul_bnb4(Adaptation& a);
Status adapt_group_query_attention(Adaptation& a);
Status adapt_multi_head_attention(Adaptation& a);
Status adapt_decoder_masked_attention(Adaptation& a);
Status adapt_packed_attention(Adaptation& a);  ///< Attention
Status adapt_quantized_attention(Adaptation& a);
Status adapt_skip_layer_norm(Adaptation& a);
Status adapt_embed_layer_norm(Adaptation& a);
Status adapt_ms_rotary_embedding(Adaptation& a);
Status adapt_ms_gelu(Adaptation& a);  ///< Gelu, BiasGelu, FastGelu, QuickGelu, BiasSplitGelu
Status adapt_fused_matmul(Adaptation& a);
Status adapt_fused_gemm(Adaptation& a);
Status adapt_fused_conv(Adaptation& a);  ///< FusedConv, NhwcConv
Status adapt_taken_over(Adaptation& a);
Status adapt_expand_dims(Adaptation& a);
Status adapt_ms_range(Adaptation& a);
Status adapt_ms_unique(Adaptation& a);
Status adapt_dynamic_quantize_matmul(Adaptation& a);
Status adapt_matmul_integer_to_float(Adaptation& a);
Status adapt_qgemm(Adaptation& a);
Status adapt_qlinear_binary(Adaptation& a);
Status adapt_qlinear_unary(Adaptation& a);
Status adapt_qlinear_concat(Adaptation& a);
Status adapt_qlinear_where(Adaptation& a);
Status adapt_moe(Adaptation& a);
Status adapt_qmoe(Adaptation& a);

}  // namespace decant::onnx
