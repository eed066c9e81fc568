#include <string>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// Blocks beyond this have no use and could overflow.
constexpr int64_t kMaxBlock = int64_t{1} << 20;

Result<int64_t> read_block(const Node& node) {
  const int64_t block = node.int_attribute("blocksize", 0);
  if (block < 1 || block > kMaxBlock) return node_error(node, fmt::format("blocksize {}", block));
  return block;
}

/// Whether the channels' order is (column, row, depth) instead of (depth, column, row).
Result<bool> is_crd(const Node& node) {
  const std::string mode = node.string_attribute("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return node_error(node, fmt::format("mode '{}'", mode));
  return mode == "CRD";
}

Status infer_depth_to_space(InferContext& context) {
  DECANT_ASSIGN(const int64_t block, read_block(context.node()));
  DECANT_ASSIGN([[maybe_unused]] const bool crd, is_crd(context.node()));
  DECANT_RETURN_IF_ERROR(require_rank(context, 0, 4));
  std::optional<Shape> shape = context.shape(0);
  if (shape) {
    Shape& s = *shape;
    if (s[1].is_constant() && s[1].constant() % (block * block) != 0) {
      return context.error(fmt::format("{} channels are no multiple of {}", s[1].constant(), block * block));
    }
    s[1] = floor_div(s[1], Dim(block * block));
    s[2] = s[2] * Dim(block);
    s[3] = s[3] * Dim(block);
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

EvalResult eval_depth_to_space(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const int64_t b, read_block(node));
  DECANT_ASSIGN(const bool crd, is_crd(node));
  if (x.rank() != 4 || x.dims()[1] % (b * b) != 0) {
    return node_error(node, fmt::format("{} does not fit blocks of {}", describe(x), b));
  }
  const int64_t n = x.dims()[0], c = x.dims()[1] / (b * b), h = x.dims()[2], w = x.dims()[3];
  // The input's axes are [n, b, b, c, h, w], or [n, c, b, b, h, w]; the output's are [n, c, h, b, w, b].
  const Dims from = strides_of(crd ? Dims{n, c, b, b, h, w} : Dims{n, b, b, c, h, w});
  const Dims strides = crd ? Dims{from[0], from[1], from[4], from[2], from[5], from[3]}
                           : Dims{from[0], from[3], from[4], from[1], from[5], from[2]};
  DECANT_ASSIGN(const Tensor out, strided_copy(x, {n, c, h, b, w, b}, strides, 0));
  return single(out.reshaped({n, c, h * b, w * b}));
}

Status infer_space_to_depth(InferContext& context) {
  DECANT_ASSIGN(const int64_t block, read_block(context.node()));
  DECANT_ASSIGN([[maybe_unused]] const bool crd, is_crd(context.node()));
  DECANT_RETURN_IF_ERROR(require_rank(context, 0, 4));
  std::optional<Shape> shape = context.shape(0);
  if (shape) {
    Shape& s = *shape;
    for (size_t i : {2, 3}) {
      if (s[i].is_constant() && s[i].constant() % block != 0) {
        return context.error(fmt::format("axis {} is no multiple of {}", i, block));
      }
      s[i] = floor_div(s[i], Dim(block));
    }
    s[1] = s[1] * Dim(block * block);
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

EvalResult eval_space_to_depth(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const int64_t b, read_block(node));
  DECANT_ASSIGN(const bool crd, is_crd(node));
  if (x.rank() != 4 || x.dims()[2] % b != 0 || x.dims()[3] % b != 0) {
    return node_error(node, fmt::format("{} does not fit blocks of {}", describe(x), b));
  }
  const int64_t n = x.dims()[0], c = x.dims()[1], h = x.dims()[2] / b, w = x.dims()[3] / b;
  const Dims from = strides_of(Dims{n, c, h, b, w, b});
  // The output's axes are [n, b, b, c, h, w], or [n, c, b, b, h, w].
  const Dims dims = crd ? Dims{n, c, b, b, h, w} : Dims{n, b, b, c, h, w};
  const Dims strides = crd ? Dims{from[0], from[1], from[3], from[5], from[2], from[4]}
                           : Dims{from[0], from[3], from[5], from[1], from[2], from[4]};
  DECANT_ASSIGN(const Tensor out, strided_copy(x, dims, strides, 0));
  return single(out.reshaped({n, c * b * b, h, w}));
}

}  // namespace

DECANT_OP(DepthToSpace) {
  return {.name = "DepthToSpace",
          .doc = "Moves channels into blocks of pixels; modes DCR and CRD",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_depth_to_space,
          .eval = eval_depth_to_space};
}

DECANT_OP(SpaceToDepth) {
  return {.name = "SpaceToDepth",
          .doc = "Moves blocks of pixels into channels; modes DCR and CRD",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_space_to_depth,
          .eval = eval_space_to_depth};
}

}  // namespace decant::ir
