#include <cmath>
#include <limits>

#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::Node;
using kernels::AttentionArgs;
using kernels::AttentionStrides;

bool is_cache_dtype(DType t) { return t == DType::kFloat32 || t == DType::kFloat16 || t == DType::kBFloat16; }

/// An operand [batch, heads, length, dim], or [batch, length, heads * dim] with the heads given.
struct Heads {
  Heads(const Arg& x, int64_t given) : batch(x.dims[0]) {
    if (given == 0) {
      heads = x.dims[1];
      length = x.dims[2];
      dim = x.dims[3];
      strides = {heads * length * dim, length * dim, dim};
    } else {
      heads = given;
      length = x.dims[1];
      dim = x.dims[2] / given;
      strides = {x.dims[1] * x.dims[2], dim, x.dims[2]};
    }
  }
  int64_t batch, heads, length, dim;
  AttentionStrides strides;
};

/// ONNX Attention-24 without past inputs: k and v are the whole buffers; nonpad_kv_seqlen
/// (input 6) says how much of them is valid. Input 7: a sink for each head.
class Attention final : public Kernel {
 public:
  explicit Attention(const Node& node)
      : causal_(node.int_attribute("is_causal", 0) != 0),
        window_(node.int_attribute("left_window_size", -1)),
        scale_(node.float_attribute("scale", 0.0f)),
        softcap_(node.float_attribute("softcap", 0.0f)),
        empty_row_(node.int_attribute("empty_rows_nan", 0) != 0 ? std::numeric_limits<float>::quiet_NaN()
                                                                : 0.0f) {
    if (node.input(0)->shape->size() == 3) {
      q_heads_ = node.int_attribute("q_num_heads", 0);
      kv_heads_ = node.int_attribute("kv_num_heads", 0);
    }
  }

  size_t scratch_bytes(std::span<const Arg> in, std::span<const Arg> out, int threads) const override {
    return kernels::attention_scratch_bytes(arguments(in, out), threads) + offset_bytes(in[0].dims[0]);
  }

  Status run(const Call& call) override {
    DECANT_RETURN_IF_ERROR(check(call.inputs));
    AttentionArgs args = arguments(call.inputs, call.outputs);
    const Arg* valid = call.inputs.size() > 6 && call.inputs[6] ? &call.inputs[6] : nullptr;
    const int64_t buffer = Heads(call.inputs[1], kv_heads_).length;
    if (valid) {
      if (valid->elements != args.batch)
        return invalid_argument("nonpad_kv_seqlen has not one entry for each batch row");
      for (int64_t b = 0; b < args.batch; ++b) {
        const int64_t n = valid->as<const int64_t>()[b];
        if (n < 0 || n > buffer) {
          return out_of_range("the cache holds " + std::to_string(buffer) + " positions, " +
                              std::to_string(n) + " are needed; raise --max-cache-len");
        }
        if (args.mask && args.mask_key_stride == 1 && n > args.kv_length) {
          return invalid_argument("the mask covers " + std::to_string(args.kv_length) + " keys, " +
                                  std::to_string(n) + " are valid");
        }
      }
      args.kv_lengths = valid->as<const int64_t>();
    }
    std::span<std::byte> scratch = call.scratch;
    if (causal_ && valid) {  // the queries are the last of the valid positions
      const size_t bytes = offset_bytes(args.batch);
      auto* offsets = reinterpret_cast<int64_t*>(scratch.data());
      for (int64_t b = 0; b < args.batch; ++b) offsets[b] = args.kv_lengths[b] - args.q_len;
      args.offsets = offsets;
      scratch = scratch.subspan(bytes);
    }
    kernels::attention(call.kernels, args, scratch);
    return ok_status();
  }

 private:
  static size_t offset_bytes(int64_t batch) { return (static_cast<size_t>(batch) * 8 + 63) / 64 * 64; }

  Status check(std::span<const Arg> in) const {
    const Heads q(in[0], q_heads_), k(in[1], kv_heads_), v(in[2], kv_heads_);
    if (k.batch != q.batch || v.batch != q.batch || k.heads != v.heads || k.length != v.length ||
        k.dim != q.dim || k.heads == 0 || q.heads % k.heads != 0) {
      return invalid_argument("query, key and value shapes do not fit each other");
    }
    if (q_heads_ > 0 &&
        (in[0].dims[2] % q_heads_ != 0 || in[1].dims[2] % kv_heads_ != 0 || in[2].dims[2] % kv_heads_ != 0))
      return invalid_argument("query, key or value is no multiple of the heads");
    if (in.size() > 7 && in[7] && in[7].elements != q.heads)
      return invalid_argument("the sinks are not one for each head");
    if (in.size() <= 3 || !in[3]) return ok_status();
    const Arg& mask = in[3];
    const int64_t full[4] = {k.length, q.length, q.heads, q.batch};
    if (mask.rank > 4) return invalid_argument("the mask has more than 4 dims");
    for (int i = 0; i < mask.rank; ++i) {
      const int64_t dim = mask.dims[mask.rank - 1 - i];
      if (dim != 1 && (i == 0 ? dim > full[0] : dim != full[i]))
        return invalid_argument("the mask does not broadcast to [batch, heads, queries, keys]");
    }
    return ok_status();
  }

  AttentionArgs arguments(std::span<const Arg> in, std::span<const Arg> out) const {
    const Heads q(in[0], q_heads_), k(in[1], kv_heads_), v(in[2], kv_heads_), y(out[0], q_heads_);
    AttentionArgs a;
    a.batch = q.batch;
    a.q_heads = q.heads;
    a.q_len = q.length;
    a.qk_dim = q.dim;
    a.kv_heads = k.heads;
    a.v_dim = v.dim;
    a.q = in[0].as<const float>();
    a.q_strides = q.strides;
    a.k = in[1].data;
    a.k_strides = k.strides;
    a.v = in[2].data;
    a.v_strides = v.strides;
    a.kv_dtype = in[1].dtype;
    a.out = out[0].as<float>();
    a.out_strides = y.strides;
    a.kv_length = k.length;
    a.causal = causal_;
    a.window_left = window_;
    a.scale = scale_ > 0 ? scale_ : 1.0f / std::sqrt(static_cast<float>(a.qk_dim));
    a.softcap = softcap_;
    a.empty_row = k.length > 0 ? empty_row_ : 0.0f;  // a product over no keys is zero
    if (in.size() > 7 && in[7]) a.sinks = in[7].as<const float>();
    if (in.size() > 3 && in[3]) {
      const Arg& mask = in[3];
      a.mask = mask.data;
      a.mask_dtype = mask.dtype;
      int64_t stride = 1;
      int64_t* strides[4] = {&a.mask_key_stride, &a.mask_query_stride, &a.mask_head_stride,
                             &a.mask_batch_stride};
      for (int i = 0; i < 4; ++i) {
        const int axis = mask.rank - 1 - i;
        const int64_t dim = axis >= 0 ? mask.dims[axis] : 1;
        *strides[i] = dim == 1 && i > 0 ? 0 : stride;
        stride *= dim;
      }
      // A mask over fewer keys than the buffer holds hides the rest.
      const int64_t masked = mask.rank > 0 ? mask.dims[mask.rank - 1] : 1;
      if (masked == 1 && a.kv_length != 1) {
        a.mask_key_stride = 0;
      } else if (masked < a.kv_length) {
        a.kv_length = masked;
      }
    }
    return a;
  }

  bool causal_;
  int64_t window_;
  float scale_, softcap_, empty_row_;
  int64_t q_heads_ = 0, kv_heads_ = 0;  ///< of operands of rank 3
};

std::unique_ptr<Kernel> make(const Node& node) {
  const ir::Value *q = node.input(0), *k = node.input(1), *v = node.input(2), *mask = node.input(3);
  for (const ir::Value* x : {q, k, v}) {
    if (!q->shape || !x->shape || x->shape->size() != q->shape->size()) return nullptr;
  }
  const bool joined = q->shape->size() == 3;
  if (!joined && q->shape->size() != 4) return nullptr;
  if (joined && (node.int_attribute("q_num_heads", 0) < 1 || node.int_attribute("kv_num_heads", 0) < 1))
    return nullptr;
  if (q->dtype != DType::kFloat32 || !is_cache_dtype(k->dtype) || v->dtype != k->dtype) return nullptr;
  if (node.input(4) || node.input(5)) return nullptr;
  if (node.input(7) && node.input(7)->dtype != DType::kFloat32) return nullptr;
  if (mask && (!mask->shape || (mask->dtype != DType::kFloat32 && mask->dtype != DType::kBool)))
    return nullptr;
  if (node.int_attribute("right_window_size", -1) >= 0 && node.int_attribute("is_causal", 0) == 0)
    return nullptr;
  if (node.int_attribute("left_window_size", -1) >= 0 && node.int_attribute("is_causal", 0) == 0)
    return nullptr;
  for (size_t i = 1; i < node.outputs().size(); ++i) {
    if (node.output(i)) return nullptr;
  }
  return std::make_unique<Attention>(node);
}

}  // namespace

DECANT_KERNEL(Attention) { return {"Attention", "", &make}; }

}  // namespace decant::runtime
