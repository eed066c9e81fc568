#include <fmt/format.h>

#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {
namespace {

Status finish(Adaptation& a, ir::Value* y) {
  a.replace_output(0, y);
  a.remove();
  return ok_status();
}

Status need(const Adaptation& a, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!a.node.input(i)) return a.bad_form(fmt::format("input {} is left out", i));
  }
  return ok_status();
}

ir::Value* layer_norm(Adaptation& a, ir::Value* x, ir::Value* gamma, ir::Value* beta, float epsilon) {
  std::vector<ir::Value*> inputs = {x, gamma};
  if (beta) inputs.push_back(beta);
  return a.emit("LayerNormalization", inputs, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}

/// The activation that Fused* operators name in an attribute.
Result<ir::Value*> activated(Adaptation& a, ir::Value* x, const std::vector<float>& parameters) {
  const std::string name = a.node.string_attribute("activation", "");
  const auto parameter = [&](size_t i, float fallback) {
    return i < parameters.size() ? parameters[i] : fallback;
  };
  if (name.empty()) return x;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid" || name == "Softplus") return a.emit(name, {x});
  if (name == "LeakyRelu") return a.emit(name, {x}, {{"alpha", parameter(0, 0.01f)}});
  if (name == "HardSigmoid")
    return a.emit(name, {x}, {{"alpha", parameter(0, 0.2f)}, {"beta", parameter(1, 0.5f)}});
  if (name == "Clip" && parameters.size() >= 2) {
    const DType dtype = x->dtype == DType::kUndefined ? DType::kFloat32 : x->dtype;
    return a.emit("Clip", {x, a.scalar("min", dtype, parameters[0]), a.scalar("max", dtype, parameters[1])});
  }
  return a.unsupported_form(fmt::format("activation '{}'", name));
}

ir::Value* gelu(Adaptation& a, ir::Value* x, const char* approximate) {
  return a.emit("Gelu", {x}, {{"approximate", std::string(approximate)}});
}

/// Attributes but those that begin with `prefix`.
Adaptation::Attributes attributes_without(const ir::Node& node, std::string_view prefix) {
  Adaptation::Attributes kept;
  for (const auto& [key, value] : node.attributes) {
    if (!key.starts_with(prefix)) kept.emplace_back(key, value);
  }
  return kept;
}

ir::Value* as_scalar(Adaptation& a, ir::Value* x) { return a.emit("Reshape", {x, a.ints("scalar", {})}); }

}  // namespace

/// SkipLayerNormalization(x, skip, gamma, [beta], [bias]) -> norm(x + skip + bias), _, _, x + skip + bias.
Status adapt_skip_layer_norm(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, 3));
  DECANT_RETURN_IF_ERROR(a.check_unused(1, "mean"));
  DECANT_RETURN_IF_ERROR(a.check_unused(2, "inv_std_var"));
  ir::Value* sum = a.emit("Add", {a.node.input(0), a.node.input(1)});
  if (a.node.input(4)) sum = a.emit("Add", {sum, a.node.input(4)});
  ir::Value* y =
      layer_norm(a, sum, a.node.input(2), a.node.input(3), a.node.float_attribute("epsilon", 1e-12f));
  a.replace_output(3, sum);
  return finish(a, y);
}

/// EmbedLayerNormalization(input_ids, segment_ids, word, position, segment, gamma, beta, mask, position_ids)
/// -> norm(sum of embeddings), [mask_index], [sum].
Status adapt_embed_layer_norm(Adaptation& a) {
  ir::Value *ids = a.node.input(0), *segments = a.node.input(1), *word = a.node.input(2),
            *position = a.node.input(3), *segment = a.node.input(4), *gamma = a.node.input(5),
            *beta = a.node.input(6), *mask = a.node.input(7), *positions = a.node.input(8);
  if (!ids || !word || !position || !gamma || !beta || !segments != !segment) {
    return a.bad_form("input_ids, the tables, gamma and beta are needed, and segments with their table");
  }
  if (!positions) {
    ir::Value* length =
        a.emit("Squeeze",
               {a.emit("Shape", {ids}, {{"start", int64_t{1}}, {"end", int64_t{2}}}), a.ints("axis", {0})});
    ir::Value* steps = a.emit("Range", {a.int_scalar(0), length, a.int_scalar(1)});
    positions = a.emit("Unsqueeze", {steps, a.ints("row", {0})});
  }
  const auto rows = [&](ir::Value* table, ir::Value* at) {
    return a.emit("Gather", {table, at}, {{"axis", int64_t{0}}});
  };
  ir::Value* sum = a.emit("Add", {rows(word, ids), rows(position, positions)});
  if (segment) sum = a.emit("Add", {sum, rows(segment, segments)});
  ir::Value* y = layer_norm(a, sum, gamma, beta, a.node.float_attribute("epsilon", 1e-12f));
  a.replace_output(2, sum);
  if (const ir::Value* index = a.node.output(1);
      index && (!index->users().empty() || a.graph.is_output(index))) {
    // The number of ones of each row, or 0 without a mask.
    ir::Value* ones = mask ? a.cast(mask, DType::kInt32) : a.emit("Sub", {ids, ids});
    a.replace_output(1, a.emit("ReduceSum", {ones, a.ints("columns", {1})}, {{"keepdims", int64_t{0}}}));
  }
  return finish(a, y);
}

/// RotaryEmbedding(x, position_ids, cos_cache, sin_cache) of com.microsoft: x [batch, sequence, heads * size]
/// or [batch, heads, sequence, size]; position_ids [batch, sequence], or the first position.
Status adapt_ms_rotary_embedding(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, 4));
  if (a.node.int_attribute("is_packed_batching", 0) != 0) return a.unsupported_form("is_packed_batching");
  if (a.node.float_attribute("scale", 1.0f) != 1.0f) return a.unsupported_form("a scale");
  ir::Value *x = a.node.input(0), *positions = a.node.input(1), *cos = a.node.input(2),
            *sin = a.node.input(3);
  if (!x->shape || !positions->shape) return a.unsupported_form("an input or position_ids of unknown rank");
  const bool flat = x->shape->size() == 3;
  if (!flat && x->shape->size() != 4) return a.bad_form(fmt::format("input of rank {}", x->shape->size()));
  if (!cos->shape || cos->shape->size() != 2 || !(*cos->shape)[1].is_constant()) {
    return a.unsupported_form("a cos_cache of unknown size");
  }
  const int64_t half = (*cos->shape)[1].constant();
  int64_t heads = a.node.int_attribute("num_heads", 0);
  if (flat) {
    // Without num_heads the whole head is rotated, so the tables tell its size.
    ir::Value* split = a.ints("heads", heads > 0 ? std::vector<int64_t>{0, 0, heads, -1}
                                                 : std::vector<int64_t>{0, 0, -1, 2 * half});
    x = a.emit("Transpose", {a.emit("Reshape", {x, split})}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  }
  if (positions->shape->size() == 1) {
    const auto size = [&](int64_t axis) {
      return a.emit("Shape", {x}, {{"start", axis}, {"end", axis + 1}});
    };
    ir::Value* length = size(2);
    ir::Value* steps =
        a.emit("Range", {a.int_scalar(0), a.emit("Squeeze", {length, a.ints("axis", {0})}), a.int_scalar(1)});
    ir::Value* dims = a.emit("Concat", {size(0), length}, {{"axis", int64_t{0}}});
    positions = a.emit("Expand", {a.emit("Add", {positions, steps}), dims});
  }
  ir::Value* y =
      a.emit("RotaryEmbedding", {x, cos, sin, positions},
             {{"interleaved", a.node.int_attribute("interleaved", 0)}, {"rotary_embedding_dim", 2 * half}});
  if (flat) {
    y = a.emit("Transpose", {y}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    y = a.emit("Reshape", {y, a.ints("merged", {0, 0, -1})});
  }
  return finish(a, y);
}

/// Gelu, BiasGelu(x, bias), FastGelu(x, [bias]), QuickGelu, BiasSplitGelu(x, bias) of com.microsoft.
Status adapt_ms_gelu(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, 1));
  const std::string& op = a.node.op();
  ir::Value* x = a.node.input(0);
  if (op == "QuickGelu")
    return finish(a, a.emit("Swish", {x}, {{"alpha", a.node.float_attribute("alpha", 1.702f)}}));
  if (a.node.input(1)) x = a.emit("Add", {x, a.node.input(1)});
  if (op == "FastGelu") return finish(a, gelu(a, x, "tanh"));
  if (op != "BiasSplitGelu") return finish(a, gelu(a, x, "none"));
  ir::Node* halves = a.emit_node("Split", {x}, 2, {{"axis", int64_t{-1}}, {"num_outputs", int64_t{2}}});
  return finish(a, a.emit("Mul", {halves->output(0), gelu(a, halves->output(1), "none")}));
}

/// FusedMatMul and TransposeMatMul: alpha A' B', transposed in the last two axes, or (transBatch) with the
/// axis before the last moved to the front.
Status adapt_fused_matmul(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, 2));
  ir::Value *x = a.node.input(0), *y = a.node.input(1);
  if (!x->shape || !y->shape) return a.unsupported_form("an operand of unknown rank");
  const auto arranged = [&](ir::Value* v, const char* transposed, const char* batch) -> ir::Value* {
    const auto rank = static_cast<int64_t>(v->shape->size());
    const bool swap = a.node.int_attribute(transposed, 0) != 0, front = a.node.int_attribute(batch, 0) != 0;
    if (rank < 2 || (!swap && !front)) return v;
    std::vector<int64_t> perm;
    if (front) {
      for (int64_t i = 1; i < rank - 1; ++i) perm.push_back(i);
      perm.push_back(0);
    } else {
      for (int64_t i = 0; i < rank - 1; ++i) perm.push_back(i);
    }
    perm.push_back(rank - 1);
    if (swap) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return a.emit("Transpose", {v}, {{"perm", std::move(perm)}});
  };
  const float alpha = a.node.float_attribute("alpha", 1.0f);
  ir::Value* product =
      a.emit("MatMul", {arranged(x, "transA", "transBatchA"), arranged(y, "transB", "transBatchB")});
  if (alpha != 1.0f) {
    const DType dtype = x->dtype == DType::kUndefined ? DType::kFloat32 : x->dtype;
    product = a.emit("Mul", {product, a.scalar("alpha", dtype, alpha)});
  }
  return finish(a, product);
}

/// FusedGemm: Gemm and an activation.
Status adapt_fused_gemm(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, 2));
  std::vector<float> parameters;
  for (const char* key : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (const auto* p = a.node.attribute<float>(key)) parameters.push_back(*p);
  }
  ir::Value* y = a.emit("Gemm", a.node.inputs(), attributes_without(a.node, "activation"));
  DECANT_ASSIGN(y, activated(a, y, parameters));
  return finish(a, y);
}

/// FusedConv(X, W, [B], [Z]): Conv, plus Z, and an activation. NhwcConv: Conv with channels last.
Status adapt_fused_conv(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, 2));
  std::vector<ir::Value*> inputs(
      a.node.inputs().begin(),
      a.node.inputs().begin() + std::min<ptrdiff_t>(3, static_cast<ptrdiff_t>(a.node.inputs().size())));
  while (!inputs.back()) inputs.pop_back();
  const bool last = a.node.op() == "NhwcConv";
  const auto& shape = a.node.input(0)->shape;
  if (last && !shape) return a.unsupported_form("an input of unknown rank");
  const int64_t rank = shape ? static_cast<int64_t>(shape->size()) : 0;
  std::vector<int64_t> to_first = {0, rank - 1}, to_last = {0};
  for (int64_t i = 1; i < rank - 1; ++i) to_first.push_back(i);
  for (int64_t i = 2; i < rank; ++i) to_last.push_back(i);
  to_last.push_back(1);
  if (last) inputs[0] = a.emit("Transpose", {inputs[0]}, {{"perm", to_first}});
  ir::Value* y = a.emit("Conv", inputs, attributes_without(a.node, "activation"));
  if (last) return finish(a, a.emit("Transpose", {y}, {{"perm", to_last}}));
  if (a.node.input(3)) y = a.emit("Add", {y, a.node.input(3)});
  const auto* parameters = a.node.attribute<std::vector<float>>("activation_params");
  DECANT_ASSIGN(y, activated(a, y, parameters ? *parameters : std::vector<float>()));
  return finish(a, y);
}

/// Operators of com.microsoft that ONNX has since taken over under the same name: GatherND, Trilu,
/// QuantizeLinear, DequantizeLinear.
Status adapt_taken_over(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, 1));
  return finish(a, a.emit(a.node.op(), a.node.inputs(),
                          Adaptation::Attributes(a.node.attributes.begin(), a.node.attributes.end())));
}

/// ExpandDims(x, axis): Unsqueeze.
Status adapt_expand_dims(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, 2));
  ir::Value* axis = a.emit("Reshape", {a.cast(a.node.input(1), DType::kInt64), a.ints("one", {1})});
  return finish(a, a.emit("Unsqueeze", {a.node.input(0), axis}));
}

/// Range(start, limit, [delta]) of com.microsoft: operands may be of shape [1].
Status adapt_ms_range(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, 2));
  ir::Value* start = as_scalar(a, a.node.input(0));
  ir::Value* delta = a.node.input(2);
  if (!delta) delta = a.emit("CastLike", {a.int_scalar(1), start});
  return finish(a, a.emit("Range", {start, as_scalar(a, a.node.input(1)), as_scalar(a, delta)}));
}

/// Unique(x) of com.microsoft: in order of appearance; outputs 1 and 2 are the inverse and the counts.
Status adapt_ms_unique(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, 1));
  ir::Node* unique = a.emit_node("Unique", {a.node.input(0)}, 4, {{"sorted", int64_t{0}}});
  a.replace_output(1, unique->output(2));
  a.replace_output(2, unique->output(3));
  return finish(a, unique->output(0));
}

}  // namespace decant::onnx
