#include <fmt/format.h>

#include <array>

#include "formats/onnx/adapters/adapters.h"
#include "formats/onnx/adapters/quantized.h"
#include "ir/ops/elements.h"

namespace decant::onnx {
namespace {

/// What MultiHeadAttention, Attention and QAttention have in common, once query, key and value are
/// [batch, heads, sequence, size].
struct Attend {
  Adaptation& a;
  ir::Value *q = nullptr, *k = nullptr, *v = nullptr;  ///< k and v: of this call
  ir::Value *keys = nullptr, *values = nullptr;        ///< with the cache
  ir::Value* visible = nullptr;  ///< [batch], entries of the cache that count; null: all
  ir::Value* mask = nullptr;     ///< added to the scores

  ir::Value* dim(ir::Value* x, int64_t axis) const {
    return a.emit("Shape", {x}, {{"start", axis}, {"end", axis + 1}});
  }

  ir::Value* to_heads(ir::Value* x, int64_t heads) const {
    return a.emit("Transpose", {a.emit("Reshape", {x, a.ints("heads", {0, 0, heads, -1})})},
                  {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  }

  void add_mask(ir::Value* more) { mask = mask ? a.emit("Add", {mask, more}) : more; }

  /// 0 where `seen`, mask_filter_value elsewhere: a row without any key left is then the mean of the values.
  void add_seen(ir::Value* seen) {
    const DType dtype = q->dtype == DType::kUndefined ? DType::kFloat32 : q->dtype;
    add_mask(
        a.emit("Where", {seen, a.scalar("seen", dtype, 0),
                         a.scalar("masked", dtype, a.node.float_attribute("mask_filter_value", -10000.0f))}));
  }

  ir::Value* not_zero(ir::Value* x) const {
    return a.emit("Cast", {x}, {{"to", ir::onnx_code(DType::kBool)}});
  }
  ir::Value* key_positions() const {
    ir::Value* length = a.emit("Squeeze", {dim(keys, 2), a.ints("axis", {0})});
    return a.emit("Range", {a.int_scalar(0), length, a.int_scalar(1)});
  }
  ir::Value* column(ir::Value* x) const {
    return a.emit("Reshape", {a.cast(x, DType::kInt64), a.ints("column", {-1, 1, 1, 1})});
  }

  /// Padding masks: lengths [batch], ends and starts [2 * batch] (`with_starts`), [batch, keys] or
  /// [batch, queries, keys]. `keys` must be set.
  Status add_padding_mask(ir::Value* given, bool with_starts) {
    if (!given) return ok_status();
    if (!given->shape) return a.unsupported_form("a mask of unknown rank");
    switch (given->shape->size()) {
      case 1: {
        const ir::Dim rows = (*given->shape)[0];
        if (q->shape && (*q->shape)[0] == rows) {
          add_seen(a.emit("Less", {key_positions(), column(given)}));
          return ok_status();
        }
        if (with_starts && q->shape && (*q->shape)[0] * ir::Dim(2) == rows) {
          ir::Node* parts =
              a.emit_node("Split", {given}, 2, {{"axis", int64_t{0}}, {"num_outputs", int64_t{2}}});
          ir::Value* positions = key_positions();
          ir::Value* before_end = a.emit("Less", {positions, column(parts->output(0))});
          add_seen(
              a.emit("And", {before_end, a.emit("GreaterOrEqual", {positions, column(parts->output(1))})}));
          return ok_status();
        }
        return a.unsupported_form(fmt::format("a mask of {} numbers", rows.to_string()));
      }
      case 2:
        add_seen(a.emit("Unsqueeze", {not_zero(given), a.ints("axes", {1, 2})}));
        return ok_status();
      case 3:
        add_seen(a.emit("Unsqueeze", {not_zero(given), a.ints("axis", {1})}));
        return ok_status();
      default:
        return a.unsupported_form(fmt::format("a mask of rank {}", given->shape->size()));
    }
  }

  /// Concat(past, new); with a length, the cache is a fixed buffer that is written at it.
  ir::Value* update(ir::Value* past, ir::Value* fresh, ir::Value* length) {
    if (!past) return fresh;
    if (!length) return a.emit("Concat", {past, fresh}, {{"axis", int64_t{2}}});
    ir::Value* at = a.emit(
        "Expand", {a.emit("Reshape", {a.cast(length, DType::kInt64), a.ints("one", {1})}), dim(fresh, 0)});
    visible = a.emit("Add", {at, dim(fresh, 2)});
    return a.emit("TensorScatter", {past, fresh, at},
                  {{"axis", int64_t{2}}, {"mode", std::string("linear")}});
  }

  void finish(bool causal, bool cached) {
    Adaptation::Attributes attributes = {{"is_causal", int64_t{causal}}};
    if (const float scale = a.node.float_attribute("scale", 0.0f); scale != 0)
      attributes.emplace_back("scale", scale);
    if (causal && cached && !visible) visible = a.emit("Expand", {dim(keys, 2), dim(keys, 0)});
    std::vector<ir::Value*> inputs = {q, keys, values, mask, nullptr, nullptr, visible};
    while (!inputs.back()) inputs.pop_back();
    ir::Value* y = a.emit("Transpose", {a.emit("Attention", inputs, attributes)},
                          {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    a.replace_output(0, a.emit("Reshape", {y, a.ints("merged", {0, 0, -1})}));
    a.remove();
  }
};

std::optional<int64_t> constant_dim(const ir::Value* v, size_t axis) {
  if (!v || !v->shape || axis >= v->shape->size() || !(*v->shape)[axis].is_constant()) return std::nullopt;
  return (*v->shape)[axis].constant();
}

/// The inputs of MultiHeadAttention, with the bias of the projections added, as heads.
Status project(Attend& t, int64_t heads, ir::Value* bias) {
  Adaptation& a = t.a;
  ir::Value *query = a.node.input(0), *key = a.node.input(1), *value = a.node.input(2);
  const auto rank = [](const ir::Value* v) { return v->shape ? v->shape->size() : 0; };
  if (!query || rank(query) == 0 || (key && rank(key) == 0))
    return a.unsupported_form("a query or key of unknown rank");
  // [batch, sequence, heads, parts, size] to `parts` times [batch, heads, sequence, size].
  const auto unpack = [&](ir::Value* x, std::initializer_list<ir::Value**> parts) {
    int64_t i = 0;
    for (ir::Value** part : parts) {
      ir::Value* one = a.emit("Gather", {x, a.int_scalar(i++)}, {{"axis", int64_t{3}}});
      *part = a.emit("Transpose", {one}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    }
  };
  if (rank(query) == 5) {
    if (bias) return a.unsupported_form("a bias with packed query, key and value");
    unpack(query, {&t.q, &t.k, &t.v});
    return ok_status();
  }
  if (rank(query) != 3 || !key) return a.bad_form("query must be of rank 3, with a key, or of rank 5");
  const bool cached_keys = rank(key) == 4;
  if (bias) {
    const auto total = constant_dim(bias, 0), width = constant_dim(query, 2);
    if (!total || !width) return a.unsupported_form("a bias of unknown size");
    if (*total <= 2 * *width) return a.bad_form("the bias is too short");
    ir::Node* parts = a.emit_node("Split", {bias, a.ints("parts", {*width, *width, *total - 2 * *width})}, 3,
                                  {{"axis", int64_t{0}}});
    query = a.emit("Add", {query, parts->output(0)});
    if (rank(key) == 3) {
      if (!value) return a.bad_form("a key of rank 3 needs a value");
      key = a.emit("Add", {key, parts->output(1)});
      value = a.emit("Add", {value, parts->output(2)});
    } else if (!cached_keys) {
      return a.unsupported_form("a bias with packed key and value");
    }
  }
  t.q = t.to_heads(query, heads);
  if (rank(key) == 5) {
    unpack(key, {&t.k, &t.v});
    return ok_status();
  }
  if (!value) return a.bad_form("value is left out");
  t.k = cached_keys ? key : t.to_heads(key, heads);
  t.v = cached_keys ? value : t.to_heads(value, heads);
  return ok_status();
}

/// The rest of Attention and QAttention, from the projection [batch, sequence, 3 * hidden] of the input.
Status attend_projection(Adaptation& a, ir::Value* projection, std::array<int64_t, 3> widths, ir::Value* mask,
                         ir::Value* past, ir::Value* bias, ir::Value* past_length) {
  DECANT_ASSIGN(const int64_t heads, a.required_int("num_heads", 1));
  if (a.node.int_attribute("do_rotary", 0) != 0) return a.unsupported_form("do_rotary");
  if (past_length || a.node.int_attribute("past_present_share_buffer", 0) != 0)
    return a.unsupported_form("a cache of both keys and values that is shared between calls");
  Attend t{a};
  ir::Node* parts = a.emit_node("Split", {projection, a.ints("parts", {widths[0], widths[1], widths[2]})}, 3,
                                {{"axis", int64_t{2}}});
  t.q = t.to_heads(parts->output(0), heads);
  t.k = t.to_heads(parts->output(1), heads);
  t.v = t.to_heads(parts->output(2), heads);
  t.keys = t.k;
  t.values = t.v;
  if (past) {
    const auto half = [&](int64_t i) {
      return a.emit("Gather", {past, a.int_scalar(i)}, {{"axis", int64_t{0}}});
    };
    t.keys = t.update(half(0), t.k, nullptr);
    t.values = t.update(half(1), t.v, nullptr);
  }
  if (ir::Value* present = a.node.output(1);
      present && (!present->users().empty() || a.graph.is_output(present))) {
    const auto stacked = [&](ir::Value* x) { return a.emit("Unsqueeze", {x, a.ints("first", {0})}); };
    a.replace_output(1, a.emit("Concat", {stacked(t.keys), stacked(t.values)}, {{"axis", int64_t{0}}}));
  }
  DECANT_RETURN_IF_ERROR(t.add_padding_mask(mask, true));
  if (bias) t.add_mask(bias);
  t.finish(a.node.int_attribute("unidirectional", 0) != 0, past != nullptr);
  return ok_status();
}

Result<std::array<int64_t, 3>> projection_widths(const Adaptation& a, const ir::Value* weights) {
  if (const auto* given = a.node.attribute<std::vector<int64_t>>("qkv_hidden_sizes");
      given && !given->empty()) {
    if (given->size() != 3 || (*given)[0] <= 0 || (*given)[1] <= 0 || (*given)[2] <= 0)
      return a.bad_form("'qkv_hidden_sizes' must be three sizes");
    return std::array<int64_t, 3>{(*given)[0], (*given)[1], (*given)[2]};
  }
  const auto width = constant_dim(weights, 1);
  if (!width) return a.unsupported_form("weights of unknown size");
  if (*width % 3 != 0) return a.bad_form(fmt::format("weights of {} columns", *width));
  return std::array<int64_t, 3>{*width / 3, *width / 3, *width / 3};
}

}  // namespace

namespace {

/// Where the operators of separate query, key and value have their other inputs.
struct Slots {
  size_t bias, padding, added, past_key, past_value, past_length, indirection;
};

Status attend_separate(Adaptation& a, const Slots& slots) {
  DECANT_ASSIGN(const int64_t heads, a.required_int("num_heads", 1));
  if (a.node.input(slots.indirection)) return a.unsupported_form("cache_indirection (beam search)");
  DECANT_RETURN_IF_ERROR(a.check_unused(3, "qk"));
  ir::Value *past_key = a.node.input(slots.past_key), *past_value = a.node.input(slots.past_value);
  if (!past_key != !past_value) return a.bad_form("past_key and past_value come together");
  Attend t{a};
  DECANT_RETURN_IF_ERROR(project(t, heads, a.node.input(slots.bias)));
  t.keys = t.update(past_key, t.k, a.node.input(slots.past_length));
  t.values = t.update(past_value, t.v, a.node.input(slots.past_length));
  a.replace_output(1, t.keys);
  a.replace_output(2, t.values);
  DECANT_RETURN_IF_ERROR(t.add_padding_mask(a.node.input(slots.padding), false));
  if (ir::Value* added = a.node.input(slots.added)) t.add_mask(added);
  t.finish(a.node.int_attribute("unidirectional", 0) != 0, past_key != nullptr);
  return ok_status();
}

}  // namespace

/// MultiHeadAttention(query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value,
/// past_sequence_length, cache_indirection).
Status adapt_multi_head_attention(Adaptation& a) { return attend_separate(a, {3, 4, 5, 6, 7, 8, 9}); }

/// DecoderMaskedMultiHeadAttention(query, key, value, mask_index, attention_bias, past_key, past_value,
/// past_sequence_length, beam_width, cache_indirection, bias).
Status adapt_decoder_masked_attention(Adaptation& a) { return attend_separate(a, {10, 3, 4, 5, 6, 7, 9}); }

/// Attention(input, weights, bias, mask_index, past, attention_bias, past_sequence_length) of com.microsoft.
Status adapt_packed_attention(Adaptation& a) {
  if (!a.node.input(0) || !a.node.input(1)) return a.bad_form("input and weights are needed");
  DECANT_ASSIGN(const auto widths, projection_widths(a, a.node.input(1)));
  ir::Value* projection = a.emit("MatMul", {a.node.input(0), a.node.input(1)});
  if (a.node.input(2)) projection = a.emit("Add", {projection, a.node.input(2)});
  return attend_projection(a, projection, widths, a.node.input(3), a.node.input(4), a.node.input(5),
                           a.node.input(6));
}

/// QAttention(input, weight, bias, input_scale, weight_scale, mask_index, input_zero_point,
/// weight_zero_point, past).
Status adapt_quantized_attention(Adaptation& a) {
  for (size_t i = 0; i < 5; ++i) {
    if (!a.node.input(i)) return a.bad_form(fmt::format("input {} is left out", i));
  }
  DECANT_ASSIGN(const auto widths, projection_widths(a, a.node.input(1)));
  ir::Value* projection = integer_product(a, {a.node.input(0), a.node.input(3), a.node.input(6)},
                                          {a.node.input(1), a.node.input(4), a.node.input(7)});
  projection = a.emit("Add", {projection, a.node.input(2)});
  return attend_projection(a, projection, widths, a.node.input(5), a.node.input(8), nullptr, nullptr);
}

}  // namespace decant::onnx
