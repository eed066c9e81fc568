#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::Node;

enum Input : size_t { kX, kRouter, kIn, kInBias, kOut, kOutBias, kUp, kUpBias, kWeights };

bool is_weight_dtype(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat16 || t == DType::kBFloat16;
}

int64_t aligned(int64_t floats) { return (floats + 15) / 16 * 16; }

/// Rows are sorted by expert, so that each expert's weights are read once for all of its rows.
class MixtureOfExperts final : public Kernel {
 public:
  explicit MixtureOfExperts(const Node& node)
      : k_(node.int_attribute("k", 1)),
        fusion_(node.int_attribute("swiglu_fusion", 0)),
        normalize_(node.int_attribute("normalize_routing_weights", 0) != 0),
        swiglu_(node.string_attribute("activation_type", "relu") == "swiglu"),
        alpha_(node.float_attribute("activation_alpha", 1.0f)),
        beta_(node.float_attribute("activation_beta", 0.0f)),
        limit_(node.float_attribute("swiglu_limit", std::numeric_limits<float>::infinity())) {
    const std::string kind = node.string_attribute("activation_type", "relu");
    identity_ = kind == "identity";
    act_ = kind == "gelu"   ? kernels::UnaryOp::kGeluTanh
           : kind == "silu" ? kernels::UnaryOp::kSilu
                            : kernels::UnaryOp::kRelu;
  }

  size_t scratch_bytes(std::span<const Arg> in, std::span<const Arg>, int threads) const override {
    const Sizes s = sizes(in);
    const int64_t floats = aligned(s.rows * s.experts) + 2 * aligned(s.rows * k_) +
                           aligned(s.rows * s.hidden) + 2 * aligned(s.rows * s.width) +
                           aligned(s.rows * s.inner) + aligned(s.rows * s.hidden);
    return static_cast<size_t>(floats) * sizeof(float) +
           kernels::matmul_scratch_bytes(s.rows, std::max(s.width, s.hidden), std::max(s.hidden, s.inner),
                                         threads) +
           128;
  }

  Status run(const Call& call) override {
    const Sizes s = sizes(call.inputs);
    const auto& in = call.inputs;
    const Arg* up = given(in, kUp);
    const Arg* mixing = given(in, kWeights);
    const bool fused = swiglu_ && fusion_ != 0;
    if (in[kIn].dims[2] != s.hidden || in[kOut].dims[0] != s.experts || in[kOut].dims[1] != s.hidden ||
        s.width != (fused ? 2 * s.inner : s.inner) || in[kRouter].dims[0] != s.rows ||
        in[kRouter].dims[1] != s.experts || k_ < 1 || k_ > s.experts || (swiglu_ && !fused && !up) ||
        (up && up->elements != in[kIn].elements) || (mixing && mixing->elements != in[kRouter].elements)) {
      return invalid_argument("experts, router and input do not fit each other");
    }
    for (const auto& [i, n] : {std::pair{kInBias, s.width}, {kOutBias, s.hidden}, {kUpBias, s.width}}) {
      if (const Arg* bias = given(in, i); bias && bias->elements != s.experts * n)
        return invalid_argument("a bias does not fit its experts");
    }
    auto* at = reinterpret_cast<float*>(call.scratch.data());
    const auto take = [&](int64_t floats) {
      float* p = at;
      at += aligned(floats);
      return p;
    };
    float* const shares =
        take(s.rows * s.experts);  // what each expert adds to each row; 0: it was not chosen
    auto* const members = reinterpret_cast<int32_t*>(take(s.rows * k_));
    take(s.rows * k_);
    float* const gathered = take(s.rows * s.hidden);
    float* const first = take(s.rows * s.width);
    float* const second = take(s.rows * s.width);
    float* const inner = take(s.rows * s.inner);
    float* const result = take(s.rows * s.hidden);
    const std::span<std::byte> rest =
        call.scratch.subspan(static_cast<size_t>(reinterpret_cast<std::byte*>(at) - call.scratch.data()));

    route(in[kRouter].as<const float>(), mixing ? mixing->as<const float>() : nullptr, s, shares);
    const auto* const x = in[kX].as<const float>();
    float* const y = call.outputs[0].as<float>();
    std::fill_n(y, s.rows * s.hidden, 0.0f);
    for (int64_t e = 0; e < s.experts; ++e) {
      int64_t m = 0;
      for (int64_t r = 0; r < s.rows; ++r) {
        if (shares[r * s.experts + e] != 0) members[m++] = static_cast<int32_t>(r);
      }
      if (m == 0) continue;
      for (int64_t i = 0; i < m; ++i)
        std::copy_n(x + members[i] * s.hidden, s.hidden, gathered + i * s.hidden);
      product(call, in[kIn], given(in, kInBias), e, m, s.width, s.hidden, gathered, first, rest);
      if (up) product(call, *up, given(in, kUpBias), e, m, s.width, s.hidden, gathered, second, rest);
      activate(call, m, s, up != nullptr, first, second, inner);
      product(call, in[kOut], given(in, kOutBias), e, m, s.hidden, s.inner, inner, result, rest);
      for (int64_t i = 0; i < m; ++i) {
        const float share = shares[members[i] * s.experts + e];
        float* const row = y + members[i] * s.hidden;
        for (int64_t j = 0; j < s.hidden; ++j) row[j] += share * result[i * s.hidden + j];
      }
    }
    return ok_status();
  }

 private:
  struct Sizes {
    int64_t rows, hidden, experts, width, inner;
  };
  static Sizes sizes(std::span<const Arg> in) {
    const int64_t hidden = in[kX].dims[in[kX].rank - 1];
    return {hidden ? in[kX].elements / hidden : 0, hidden, in[kIn].dims[0], in[kIn].dims[1],
            in[kOut].dims[2]};
  }
  static const Arg* given(std::span<const Arg> in, size_t i) {
    return i < in.size() && in[i] ? &in[i] : nullptr;
  }

  static void product(const Call& call, const Arg& weights, const Arg* bias, int64_t expert, int64_t m,
                      int64_t n, int64_t k, const float* a, float* c, std::span<std::byte> scratch) {
    kernels::MatmulPart part;
    part.b = weights.as<const std::byte>() + static_cast<size_t>(expert * n * k) * size_of(weights.dtype);
    part.b_dtype = weights.dtype;
    part.b_transposed = true;
    part.ldb = k;
    part.n = n;
    part.bias = bias ? bias->as<const float>() + expert * n : nullptr;
    part.c = c;
    part.ldc = n;
    kernels::matmul(call.kernels, m, k, a, k, part, scratch);
  }

  /// The k largest logits of each row, the first of equals; softmax over all, or the given weights.
  void route(const float* logits, const float* mixing, const Sizes& s, float* shares) const {
    for (int64_t r = 0; r < s.rows; ++r) {
      const float* const row = logits + r * s.experts;
      float* const out = shares + r * s.experts;
      std::fill_n(out, s.experts, 0.0f);
      float top = -std::numeric_limits<float>::infinity(), all = 0, chosen = 0;
      for (int64_t e = 0; e < s.experts; ++e) top = std::max(top, row[e]);
      for (int64_t e = 0; e < s.experts; ++e) all += std::exp(row[e] - top);
      for (int64_t i = 0; i < k_; ++i) {
        int64_t best = -1;
        for (int64_t e = 0; e < s.experts; ++e) {
          if (out[e] == 0 && (best < 0 || row[e] > row[best])) best = e;
        }
        if (best < 0) break;
        // A share of exactly 0 adds nothing, but must not be chosen again.
        const float share = mixing ? mixing[r * s.experts + best] : std::exp(row[best] - top) / all;
        out[best] = share == 0 ? std::numeric_limits<float>::denorm_min() : share;
        chosen += share;
      }
      if (normalize_ && chosen != 0) {
        for (int64_t e = 0; e < s.experts; ++e) out[e] /= chosen;
      }
    }
  }

  void activate(const Call& call, int64_t m, const Sizes& s, bool gated, const float* first,
                const float* second, float* out) const {
    if (!swiglu_) {
      const int64_t n = m * s.inner;
      if (identity_ && gated)
        kernels::binary(call.kernels, kernels::BinaryOp::kMul, first, second, out, n);
      else if (identity_)
        std::copy_n(first, n, out);
      else if (gated)
        kernels::gated(call.kernels, act_, m, s.inner, first, s.inner, second, s.inner, out, s.inner);
      else
        kernels::unary(call.kernels, act_, first, out, n);
      return;
    }
    for (int64_t i = 0; i < m; ++i) {
      const float* const row = first + i * s.width;
      for (int64_t j = 0; j < s.inner; ++j) {
        float g = row[fusion_ == 1 ? 2 * j : j];
        float u = fusion_ == 0 ? second[i * s.width + j] : row[fusion_ == 1 ? 2 * j + 1 : s.inner + j];
        g = std::min(g, limit_);
        u = std::clamp(u, -limit_, limit_);
        out[i * s.inner + j] = g / (1.0f + std::exp(-alpha_ * g)) * (u + beta_);
      }
    }
  }

  int64_t k_, fusion_;
  bool normalize_, swiglu_, identity_ = false;
  kernels::UnaryOp act_ = kernels::UnaryOp::kRelu;
  float alpha_, beta_, limit_;
};

std::unique_ptr<Kernel> make(const Node& node) {
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const ir::Value* v = node.input(i);
    if (!v) continue;
    const bool weights = i == kIn || i == kOut || i == kUp;
    if (weights ? !is_weight_dtype(v->dtype) : v->dtype != DType::kFloat32) return nullptr;
    if (!v->shape || v->shape->size() != (weights ? 3u : i == kRouter ? 2u : v->shape->size()))
      return nullptr;
  }
  if (node.input(kX)->shape->empty()) return nullptr;
  return std::make_unique<MixtureOfExperts>(node);
}

}  // namespace

DECANT_KERNEL(MixtureOfExperts) { return {"MixtureOfExperts", "decant", &make}; }

}  // namespace decant::runtime
