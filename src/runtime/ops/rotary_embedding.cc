#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::Node;

/// RotaryEmbedding-23 on 4-D x [batch, head, position, channel]; cos and sin [batch, position, rotary_dim /
/// 2], or [positions, rotary_dim / 2] with position_ids.
std::unique_ptr<Kernel> make(const Node& node) {
  const ir::Value *x = node.input(0), *cos = node.input(1), *sin = node.input(2), *ids = node.input(3);
  if (!x->shape || x->shape->size() != 4 || x->dtype != DType::kFloat32) return nullptr;
  if (cos->dtype != DType::kFloat32 || sin->dtype != DType::kFloat32 || !cos->shape || !sin->shape)
    return nullptr;
  if (cos->shape->size() != (ids ? 2u : 3u) || (ids && ids->dtype != DType::kInt64)) return nullptr;
  const bool interleaved = node.int_attribute("interleaved", 0) != 0;
  const int64_t rotary_dim = node.int_attribute("rotary_embedding_dim", 0);
  return kernel_of([=](const Call& call) {
    const Arg &in = call.inputs[0], &c = call.inputs[1], &s = call.inputs[2], &out = call.outputs[0];
    kernels::RotaryArgs args;
    args.batch = in.dims[0];
    args.heads = in.dims[1];
    args.seq = in.dims[2];
    args.head_dim = in.dims[3];
    args.rotary_dim = rotary_dim ? rotary_dim : args.head_dim;
    args.interleaved = interleaved;
    args.x = in.as<const float>();
    args.x_strides = {args.heads * args.seq * args.head_dim, args.seq * args.head_dim, args.head_dim};
    args.out = out.as<float>();
    args.out_strides = args.x_strides;
    args.cos = c.as<const float>();
    args.sin = s.as<const float>();
    args.table_row_stride = c.dims[c.rank - 1];
    if (args.table_row_stride < args.rotary_dim / 2 || s.elements != c.elements)
      return invalid_argument("cos and sin do not fit the rotary dim");
    if (call.inputs.size() > 3 && call.inputs[3]) {
      const Arg& positions = call.inputs[3];
      if (positions.rank != 2 || positions.elements != args.batch * args.seq)
        return invalid_argument("position_ids do not fit the input");
      for (int64_t i = 0; i < positions.elements; ++i) {
        const int64_t p = positions.as<const int64_t>()[i];
        if (p < 0 || p >= c.dims[0])
          return out_of_range("position " + std::to_string(p) + " is outside the rotary table of " +
                              std::to_string(c.dims[0]));
      }
      args.positions = positions.as<const int64_t>();
      args.positions_batch_stride = args.seq;
    } else {
      if (c.dims[1] != args.seq || (c.dims[0] != args.batch && c.dims[0] != 1))
        return invalid_argument("cos and sin do not fit the input");
      args.table_batch_rows = c.dims[0] == 1 ? 0 : args.seq;
    }
    kernels::rotary(call.kernels, args);
    return ok_status();
  });
}

}  // namespace

DECANT_KERNEL(RotaryEmbedding) { return {"RotaryEmbedding", "", &make}; }

}  // namespace decant::runtime
