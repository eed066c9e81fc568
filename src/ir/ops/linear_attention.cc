#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "ir/ops/common.h"

namespace decant::ir {
namespace {

enum class Rule { kLinear, kGated, kDelta, kGatedDelta };

Result<Rule> rule_of(const Node& node) {
  const std::string rule = node.string_attribute("update_rule", "gated_delta");
  if (rule == "linear") return Rule::kLinear;
  if (rule == "gated") return Rule::kGated;
  if (rule == "delta") return Rule::kDelta;
  if (rule == "gated_delta") return Rule::kGatedDelta;
  return node_error(node, "unknown update_rule '" + rule + "'");
}

bool decays(Rule rule) { return rule == Rule::kGated || rule == Rule::kGatedDelta; }
bool corrects(Rule rule) { return rule == Rule::kDelta || rule == Rule::kGatedDelta; }

Status check_heads(const Node& node, int64_t q_heads, int64_t kv_heads) {
  if (q_heads > 0 && kv_heads > 0 && q_heads % kv_heads == 0) return ok_status();
  return node_error(node, "q_num_heads must be a positive multiple of kv_num_heads");
}

Status infer_linear_attention(InferContext& context) {
  const Node& node = context.node();
  const int64_t q_heads = node.int_attribute("q_num_heads", 0),
                kv_heads = node.int_attribute("kv_num_heads", 0);
  DECANT_RETURN_IF_ERROR(check_heads(node, q_heads, kv_heads));
  DECANT_ASSIGN(const Rule rule, rule_of(node));
  if (decays(rule) && !context.has_input(4)) return context.error("this update_rule needs decay");
  if (corrects(rule) && !context.has_input(5)) return context.error("this update_rule needs beta");
  for (size_t i = 0; i < 6; ++i) {
    DECANT_RETURN_IF_ERROR(require_dtype(context, i, is_float, "a float tensor"));
    DECANT_RETURN_IF_ERROR(require_rank(context, i, i == 3 ? 4 : 3));
  }
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, 3));
  const DType state = context.has_input(3) ? context.dtype(3) : context.dtype(0);
  if (!context.shape(0) || !context.shape(2)) {
    context.set_output(0, context.dtype(0), context.fresh_shape(3, "linear_attention"));
    context.set_output(1, state, context.fresh_shape(4, "linear_attention_state"));
    return ok_status();
  }
  const Shape &q = *context.shape(0), &v = *context.shape(2);
  const Dim d_k = floor_div(q[2], Dim(q_heads)), d_v = floor_div(v[2], Dim(kv_heads));
  context.set_output(0, context.dtype(0), Shape{q[0], q[1], Dim(q_heads) * d_v});
  context.set_output(1, state, Shape{q[0], Dim(kv_heads), d_k, d_v});
  return ok_status();
}

/// Sizes of one call, checked.
struct Sizes {
  int64_t batch, steps, q_heads, kv_heads, d_k, d_v;
};

Result<Sizes> sizes_of(const Node& node, EvalInputs inputs, Rule rule) {
  const Tensor &q = *inputs[0], &k = *inputs[1], &v = *inputs[2];
  Sizes s{};
  s.q_heads = node.int_attribute("q_num_heads", 0);
  s.kv_heads = node.int_attribute("kv_num_heads", 0);
  DECANT_RETURN_IF_ERROR(check_heads(node, s.q_heads, s.kv_heads));
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3) return node_error(node, "needs rank 3");
  s.batch = q.dims()[0];
  s.steps = q.dims()[1];
  s.d_k = q.dims()[2] / s.q_heads;
  s.d_v = v.dims()[2] / s.kv_heads;
  // Head counts come from the file: their products with sizes of existing tensors are checked.
  const auto k_width = checked_mul(static_cast<uint64_t>(s.kv_heads), static_cast<uint64_t>(s.d_k));
  const auto out_width = checked_mul(static_cast<uint64_t>(s.q_heads), static_cast<uint64_t>(s.d_v));
  if (!k_width || !out_width || *out_width > INT64_MAX || q.dims()[2] % s.q_heads != 0 ||
      v.dims()[2] % s.kv_heads != 0 || k.dims() != Dims{s.batch, s.steps, static_cast<int64_t>(*k_width)} ||
      v.dims()[0] != s.batch || v.dims()[1] != s.steps) {
    return node_error(node, "sizes of query, key and value do not fit the head counts");
  }
  const Tensor *past = optional_input(inputs, 3), *decay = optional_input(inputs, 4),
               *beta = optional_input(inputs, 5);
  if (past && past->dims() != Dims{s.batch, s.kv_heads, s.d_k, s.d_v}) {
    return node_error(node, "past_state has another shape than [batch, heads, d_k, d_v]");
  }
  const auto fits = [&](const Tensor* t, int64_t a, int64_t b) {
    return t && t->rank() == 3 && t->dims()[0] == s.batch && t->dims()[1] == s.steps &&
           (t->dims()[2] == a || t->dims()[2] == b);
  };
  if (decays(rule) && !fits(decay, s.kv_heads, s.kv_heads * s.d_k))
    return node_error(node, "decay does not fit");
  if (corrects(rule) && !fits(beta, s.kv_heads, 1)) return node_error(node, "beta does not fit");
  return s;
}

/// The recurrence, token by token, with state S [d_k, d_v] of each head:
/// S <- exp(g) S; S <- S + beta k (v - S^T k)^T (or S + k v^T); o = scale S^T q.
EvalResult eval_linear_attention(const Node& node, EvalInputs inputs) {
  DECANT_ASSIGN(const Rule rule, rule_of(node));
  for (const Tensor* t : inputs) {
    if (t && !is_float(t->dtype())) return node_error(node, "needs float tensors");
  }
  DECANT_ASSIGN(const Sizes s, sizes_of(node, inputs, rule));
  const std::vector<double> q = read<double>(*inputs[0]), k = read<double>(*inputs[1]),
                            v = read<double>(*inputs[2]);
  const Tensor *past = optional_input(inputs, 3), *decay_tensor = optional_input(inputs, 4),
               *beta_tensor = optional_input(inputs, 5);
  const DType state_dtype = past ? past->dtype() : inputs[0]->dtype();
  DECANT_ASSIGN(Tensor present, Tensor::allocate(state_dtype, {s.batch, s.kv_heads, s.d_k, s.d_v}));
  std::vector<double> state(static_cast<size_t>(present.elements()), 0.0);
  if (past) state = read<double>(*past);
  std::vector<double> decay, beta;
  if (decays(rule)) decay = read<double>(*decay_tensor);
  if (corrects(rule)) beta = read<double>(*beta_tensor);
  DECANT_ASSIGN(Tensor output, Tensor::allocate(inputs[0]->dtype(), {s.batch, s.steps, s.q_heads * s.d_v}));
  std::vector<double> out(static_cast<size_t>(output.elements()), 0.0);
  double scale = node.float_attribute("scale", 0.0f);
  if (scale == 0 && s.d_k > 0) scale = 1 / std::sqrt(static_cast<double>(s.d_k));
  const int64_t decay_width = decay.empty() ? 0 : decay_tensor->dims()[2],
                beta_width = beta.empty() ? 0 : beta_tensor->dims()[2], group = s.q_heads / s.kv_heads;
  std::vector<double> delta(static_cast<size_t>(s.d_v));
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t t = 0; t < s.steps; ++t) {
      const int64_t row = b * s.steps + t;
      for (int64_t h = 0; h < s.kv_heads; ++h) {
        double* S = state.data() + (b * s.kv_heads + h) * s.d_k * s.d_v;
        const double* key = k.data() + (row * s.kv_heads + h) * s.d_k;
        const double* value = v.data() + (row * s.kv_heads + h) * s.d_v;
        for (int64_t i = 0; i < s.d_k && decay_width > 0; ++i) {
          const bool per_head = decay_width == s.kv_heads;
          const int64_t at = row * decay_width + (per_head ? h : h * s.d_k + i);
          const double factor = std::exp(decay[static_cast<size_t>(at)]);
          for (int64_t j = 0; j < s.d_v; ++j) S[i * s.d_v + j] *= factor;
        }
        std::copy(value, value + s.d_v, delta.begin());
        if (beta_width > 0) {
          const double rate = beta[static_cast<size_t>(row * beta_width + (beta_width == 1 ? 0 : h))];
          for (int64_t j = 0; j < s.d_v; ++j) {
            double known = 0;
            for (int64_t i = 0; i < s.d_k; ++i) known += S[i * s.d_v + j] * key[i];
            delta[static_cast<size_t>(j)] = rate * (value[j] - known);
          }
        }
        for (int64_t i = 0; i < s.d_k; ++i) {
          for (int64_t j = 0; j < s.d_v; ++j) S[i * s.d_v + j] += key[i] * delta[static_cast<size_t>(j)];
        }
        for (int64_t g = h * group; g < (h + 1) * group; ++g) {
          const double* query = q.data() + (row * s.q_heads + g) * s.d_k;
          double* o = out.data() + (row * s.q_heads + g) * s.d_v;
          for (int64_t i = 0; i < s.d_k; ++i) {
            for (int64_t j = 0; j < s.d_v; ++j) o[j] += scale * query[i] * S[i * s.d_v + j];
          }
        }
      }
    }
  }
  write_range<double>(output, 0, std::span<const double>(out));
  write_range<double>(present, 0, std::span<const double>(state));
  std::vector<Tensor> results;
  results.push_back(std::move(output));
  results.push_back(std::move(present));
  return results;
}

}  // namespace

DECANT_OP(LinearAttention) {
  return {.name = "LinearAttention",
          .doc = "Attention with a recurrent state; update_rule = linear | gated | delta | gated_delta",
          .min_inputs = 3,
          .max_inputs = 6,
          .max_outputs = 2,
          .infer = infer_linear_attention,
          .eval = eval_linear_attention};
}

}  // namespace decant::ir
