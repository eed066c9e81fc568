#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

constexpr size_t kMask = 3, kPastKey = 4, kPastValue = 5, kValid = 6, kSink = 7;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_mask(DType t) { return t == DType::kBool || is_float(t); }

/// Query, key or value as [batch, heads, sequence, size].
struct View4 {
  int64_t batch = 0, heads = 0, sequence = 0, size = 0;
  bool flat = false;  ///< stored as [batch, sequence, heads * size]
  int64_t offset(int64_t b, int64_t h, int64_t s) const {
    return (flat ? (b * sequence + s) * heads + h : (b * heads + h) * sequence + s) * size;
  }
};

Result<View4> view_of(const Node& node, const Tensor& t, const char* heads_attribute) {
  View4 v;
  v.flat = t.rank() == 3;
  if (t.rank() != 3 && t.rank() != 4) return node_error(node, "query, key and value must have rank 3 or 4");
  v.batch = t.dims()[0];
  v.heads = v.flat ? node.int_attribute(heads_attribute, 0) : t.dims()[1];
  if (v.flat && (v.heads <= 0 || t.dims()[2] % v.heads != 0)) {
    return node_error(node, fmt::format("attribute '{}' must divide {}", heads_attribute, describe(t)));
  }
  v.sequence = t.dims()[v.flat ? 1 : 2];
  v.size = v.flat ? t.dims()[2] / v.heads : t.dims()[3];
  return v;
}

/// Past and new entries of keys or values, one behind the other, as [batch, heads, total, size].
Result<Tensor> join_cache(const Node& node, const Tensor* past, const Tensor& fresh, const View4& v) {
  int64_t before = 0;
  if (past != nullptr) {
    if (past->rank() != 4 || past->dtype() != fresh.dtype() || past->dims()[0] != v.batch ||
        past->dims()[1] != v.heads || past->dims()[3] != v.size) {
      return node_error(node, fmt::format("past {} does not fit {}", describe(*past), describe(fresh)));
    }
    before = past->dims()[2];
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(fresh.dtype(), {v.batch, v.heads, before + v.sequence, v.size}));
  for (int64_t b = 0; b < v.batch; ++b) {
    for (int64_t h = 0; h < v.heads; ++h) {
      const int64_t row = b * v.heads + h, to = row * (before + v.sequence) * v.size;
      if (past != nullptr) copy_elements(out, to, *past, row * before * v.size, before * v.size);
      for (int64_t s = 0; s < v.sequence; ++s) {
        copy_elements(out, to + (before + s) * v.size, fresh, v.offset(b, h, s), v.size);
      }
    }
  }
  return out;
}

struct Settings {
  double scale, softcap;
  bool causal;
  double empty_row;
  int64_t left, right, mode;
};

Status infer_attention(InferContext& context) {
  const Node& node = context.node();
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  // Beyond ONNX: keys and values may be stored in another float type than the query's (half-precision
  // caches).
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, kMask, is_mask, "a bool or float tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, kValid, is_index, "an int64 tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, kSink, is_float, "a float tensor"));
  if (context.has_input(kPastKey) != context.has_input(kPastValue)) {
    return context.error("past_key and past_value come together");
  }
  if (context.has_input(kValid) && context.has_input(kPastKey)) {
    return context.error("nonpad_kv_seqlen does not go with past_key");
  }
  for (size_t i : {kPastKey, kPastValue}) DECANT_RETURN_IF_ERROR(require_rank(context, i, 4));
  const DType dtype = context.dtype(0), value_dtype = context.dtype(2);
  for (size_t i = 0; i < 3; ++i) {
    if (context.shape(i)) continue;
    context.set_output(0, dtype, std::nullopt);
    context.set_output(1, context.dtype(1), std::nullopt);
    context.set_output(2, value_dtype, std::nullopt);
    context.set_output(3, dtype, std::nullopt);
    return ok_status();
  }
  const Shape q = *context.shape(0), k = *context.shape(1), v = *context.shape(2);
  if ((q.size() != 3 && q.size() != 4) || k.size() != q.size() || v.size() != q.size()) {
    return context.error("query, key and value must have one rank, 3 or 4");
  }
  const bool flat = q.size() == 3;
  const int64_t q_heads = node.int_attribute("q_num_heads", 0),
                kv_heads = node.int_attribute("kv_num_heads", 0);
  if (flat && (q_heads <= 0 || kv_heads <= 0))
    return context.error("rank 3 needs q_num_heads and kv_num_heads");
  const auto per_head = [&](const Dim& width, int64_t heads) -> Result<Dim> {
    if (auto exact = Dim::divide_exact(width, Dim(heads))) return *exact;
    if (width.is_constant())
      return context.error(fmt::format("{} heads do not divide {}", heads, width.constant()));
    return floor_div(width, Dim(heads));
  };
  Dim key_size, value_size;
  if (flat) {
    DECANT_ASSIGN(key_size, per_head(k[2], kv_heads));
    DECANT_ASSIGN(value_size, per_head(v[2], kv_heads));
    DECANT_ASSIGN([[maybe_unused]] const Dim query_size, per_head(q[2], q_heads));
  } else {
    key_size = k[3];
    value_size = v[3];
  }
  const Dim heads = flat ? Dim(q_heads) : q[1], key_heads = flat ? Dim(kv_heads) : k[1];
  if (heads.is_constant() && key_heads.is_constant() &&
      (key_heads.constant() == 0 || heads.constant() % key_heads.constant() != 0)) {
    return context.error(
        fmt::format("{} query heads for {} key heads", heads.constant(), key_heads.constant()));
  }
  const Dim sequence = q[flat ? 1 : 2];
  Dim total = k[flat ? 1 : 2], value_total = v[flat ? 1 : 2];
  const auto with_past = [&](size_t i, Dim& length) {
    if (!context.has_input(i)) return;
    length = context.shape(i) ? (*context.shape(i))[2] + length : context.fresh_symbol("total_sequence");
  };
  with_past(kPastKey, total);
  with_past(kPastValue, value_total);
  Shape out = q;
  if (flat)
    out[2] = Dim(q_heads) * value_size;
  else
    out[3] = value_size;
  context.set_output(0, dtype, std::move(out));
  context.set_output(1, context.dtype(1), Shape{k[0], key_heads, total, key_size});
  context.set_output(2, value_dtype, Shape{v[0], flat ? Dim(kv_heads) : v[1], value_total, value_size});
  context.set_output(3, dtype, Shape{q[0], heads, sequence, total});
  return ok_status();
}

/// ONNX Attention-25. For query i of a batch row, at position p = offset + i, and key j, with offset = past
/// length, or nonpad_kv_seqlen - queries, or 0:
///   score = softcap(q . k * scale) + mask; keys past the causal frontier (j > p), outside the windows
///   (p - left <= j <= p + right) or behind nonpad_kv_seqlen are taken out, and so are those the mask does
///   not reach.
/// A row without any key left is zero; beyond ONNX, with the attribute empty_rows_nan it is NaN, which is
/// what a plain softmax of such a row gives. Beyond ONNX too: input 7 holds a sink for each head, a score that
/// takes part in the softmax and has no value (gpt-oss).
EvalResult eval_attention(const Node& node, EvalInputs inputs) {
  const Tensor &query = *inputs[0], &key = *inputs[1], &value = *inputs[2];
  const Tensor *mask = optional_input(inputs, kMask), *past_key = optional_input(inputs, kPastKey);
  const Tensor *past_value = optional_input(inputs, kPastValue), *valid = optional_input(inputs, kValid);
  if (!is_float(query.dtype()) || !is_float(key.dtype()) || !is_float(value.dtype())) {
    return node_error(node, "needs float tensors");
  }
  if ((past_key == nullptr) != (past_value == nullptr) || (valid != nullptr && past_key != nullptr)) {
    return node_error(node, "past_key and past_value come together, and without nonpad_kv_seqlen");
  }
  DECANT_ASSIGN(const View4 q, view_of(node, query, "q_num_heads"));
  DECANT_ASSIGN(const View4 k, view_of(node, key, "kv_num_heads"));
  DECANT_ASSIGN(const View4 v, view_of(node, value, "kv_num_heads"));
  if (q.batch != k.batch || q.batch != v.batch || k.heads != v.heads || k.sequence != v.sequence ||
      q.size != k.size || k.heads == 0 || q.heads % k.heads != 0 || q.flat != k.flat || q.flat != v.flat) {
    return node_error(node, fmt::format("query {}, key {} and value {} do not fit", describe(query),
                                        describe(key), describe(value)));
  }
  DECANT_ASSIGN(Tensor keys, join_cache(node, past_key, key, k));
  DECANT_ASSIGN(Tensor values, join_cache(node, past_value, value, v));
  const int64_t total = keys.dims()[2], past = total - k.sequence;
  if (values.dims()[2] != total) return node_error(node, "past_key and past_value differ in length");
  if (valid != nullptr && (!is_index(valid->dtype()) || valid->elements() != q.batch)) {
    return node_error(node, "nonpad_kv_seqlen must have one integer for each batch row");
  }

  const Tensor* sink = optional_input(inputs, kSink);
  if (sink != nullptr && (!is_float(sink->dtype()) || sink->elements() != q.heads)) {
    return node_error(node,
                      fmt::format("the sinks {} are not one for each of {} heads", describe(*sink), q.heads));
  }

  // The mask broadcasts to [batch, heads, queries, keys], except that its last dim may be shorter.
  std::vector<double> mask_values;
  Dims mask_strides(4, 0);
  int64_t mask_length = total;
  bool mask_is_bool = false;
  if (mask != nullptr) {
    mask_is_bool = mask->dtype() == DType::kBool;
    if (!is_mask(mask->dtype()) || mask->rank() == 0 || mask->rank() > 4)
      return node_error(node, "the mask has no fitting type or rank");
    const Dims want = {q.batch, q.heads, q.sequence, total}, own = strides_of(mask->dims());
    const size_t pad = 4 - mask->rank();
    for (size_t d = 0; d < mask->rank(); ++d) {
      const int64_t have = mask->dims()[d];
      const bool last = pad + d == 3;
      if (last)
        mask_length = have;
      else if (have != 1 && have != want[pad + d])
        return node_error(node, fmt::format("mask {} does not fit", describe(*mask)));
      mask_strides[pad + d] = !last && have == 1 ? 0 : own[d];
    }
    if (mask_length > total)
      return node_error(node, fmt::format("mask {} is longer than {} keys", describe(*mask), total));
    mask_values = read<double>(*mask);
  }

  Settings set;
  set.scale = node.attribute<float>("scale") != nullptr ? node.float_attribute("scale", 1.0f)
                                                        : 1 / std::sqrt(static_cast<double>(q.size));
  set.softcap = node.float_attribute("softcap", 0.0f);
  set.causal = node.int_attribute("is_causal", 0) != 0;
  set.empty_row =
      node.int_attribute("empty_rows_nan", 0) != 0 ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  set.left = node.int_attribute("left_window_size", -1);
  set.right = node.int_attribute("right_window_size", -1);
  set.mode = node.int_attribute("qk_matmul_output_mode", 0);
  if (set.left < -1 || set.right < -1) return node_error(node, "window sizes are -1 or not negative");

  const std::vector<double> q_data = read<double>(query), k_data = read<double>(keys),
                            v_data = read<double>(values);
  std::vector<double> out(static_cast<size_t>(q.batch * q.heads * q.sequence * v.size), 0.0);
  const bool want_scores = node.outputs().size() > 3 && node.output(3) != nullptr;
  std::vector<double> exposed(want_scores ? static_cast<size_t>(q.batch * q.heads * q.sequence * total) : 0);
  View4 y = q;
  y.size = v.size;
  std::vector<double> row(static_cast<size_t>(total));
  for (int64_t b = 0; b < q.batch; ++b) {
    const int64_t length = valid != nullptr ? valid->int_at(b) : total;
    if (length < 0 || length > total)
      return node_error(node, fmt::format("{} valid keys of {}", length, total));
    const int64_t offset = valid != nullptr ? length - q.sequence : past;
    for (int64_t h = 0; h < q.heads; ++h) {
      const int64_t kv_row = b * k.heads + h / (q.heads / k.heads);
      for (int64_t i = 0; i < q.sequence; ++i) {
        const double* qi = q_data.data() + q.offset(b, h, i);
        const int64_t p = offset + i;
        double* shown = want_scores ? exposed.data() + ((b * q.heads + h) * q.sequence + i) * total : nullptr;
        double largest = -kInfinity;
        bool any = false;
        for (int64_t j = 0; j < total; ++j) {
          const double* kj = k_data.data() + (kv_row * total + j) * k.size;
          double score = 0;
          for (int64_t d = 0; d < q.size; ++d) score += qi[d] * kj[d];
          score *= set.scale;
          if (shown != nullptr && set.mode == 0) shown[j] = score;
          if (set.softcap > 0) score = set.softcap * std::tanh(score / set.softcap);
          if (shown != nullptr && set.mode == 1) shown[j] = score;
          double bias = 0;
          if (mask != nullptr && j >= mask_length) {
            bias = -kInfinity;
          } else if (mask != nullptr) {
            const double m = mask_values[static_cast<size_t>(b * mask_strides[0] + h * mask_strides[1] +
                                                             i * mask_strides[2] + j * mask_strides[3])];
            bias = mask_is_bool ? (m != 0 ? 0 : -kInfinity) : m;
          }
          if ((set.causal && j > p) || (set.left >= 0 && j < p - set.left) ||
              (set.right >= 0 && p < j - set.right) || j >= length) {
            bias = -kInfinity;
          }
          any |= bias != -kInfinity;
          score = bias == -kInfinity ? -kInfinity : score + bias;
          if (shown != nullptr && set.mode == 2) shown[j] = score;
          row[static_cast<size_t>(j)] = score;
          largest = std::max(largest, score);
        }
        double sum = 0;
        if (sink != nullptr && any && largest != -kInfinity) {
          const double score = sink->double_at(h);
          largest = std::max(largest, score);
          sum = std::exp(score - largest);
        }
        for (double& s : row) {
          s = any && largest != -kInfinity ? std::exp(s - largest) : 0.0;
          sum += s;
        }
        double* yi = out.data() + y.offset(b, h, i);
        for (int64_t j = 0; j < total; ++j) {
          const double weight = sum == 0 ? set.empty_row : row[static_cast<size_t>(j)] / sum;
          if (shown != nullptr && set.mode == 3) shown[j] = weight;
          if (weight == 0) continue;
          const double* vj = v_data.data() + (kv_row * total + j) * v.size;
          for (int64_t d = 0; d < v.size; ++d) yi[d] += weight * vj[d];
        }
      }
    }
  }
  std::vector<Tensor> results(std::max<size_t>(1, std::min<size_t>(4, node.outputs().size())));
  const Dims dims =
      q.flat ? Dims{q.batch, q.sequence, q.heads * v.size} : Dims{q.batch, q.heads, q.sequence, v.size};
  DECANT_ASSIGN(results[0], make_tensor<double>(query.dtype(), dims, out));
  if (results.size() > 1) results[1] = std::move(keys);
  if (results.size() > 2) results[2] = std::move(values);
  if (want_scores) {
    DECANT_ASSIGN(results[3],
                  make_tensor<double>(query.dtype(), {q.batch, q.heads, q.sequence, total}, exposed));
  }
  return results;
}

}  // namespace

DECANT_OP(Attention) {
  return {.name = "Attention",
          .doc = "Scaled dot-product attention with grouped heads, masks, windows and caches",
          .min_inputs = 3,
          .max_inputs = 8,
          .max_outputs = 4,
          .infer = infer_attention,
          .eval = eval_attention};
}

}  // namespace decant::ir
