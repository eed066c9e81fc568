#pragma once

#include <span>

#include "kernels/kernels.h"

namespace decant::kernels {

/// A convolution over two spatial axes: x [batch, groups * in_channels, height, width] with weights
/// [groups * out_channels, in_channels, kernel_h, kernel_w] gives y [batch, groups * out_channels,
/// out_height, out_width], all dense f32. One spatial axis is a height of 1. Positions outside the input
/// count as 0.
struct ConvArgs {
  int64_t batch = 0, groups = 1;
  int64_t in_channels = 0, out_channels = 0;  ///< of one group
  int64_t height = 0, width = 0, out_height = 0, out_width = 0;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0;
  const float* x = nullptr;
  const float* weights = nullptr;
  const float* bias = nullptr;  ///< [groups * out_channels]; may be null
  float* y = nullptr;
};

/// Bytes of scratch for these sizes; reads no pointers.
size_t conv_scratch_bytes(const ConvArgs& args, int n_threads);

/// `scratch` holds at least conv_scratch_bytes(args, pool size) bytes; with less nothing is computed. Groups
/// of one channel each are computed row by row, others as a matrix product whose right side is gathered from
/// the image a panel at a time.
void conv(const Context& ctx, const ConvArgs& args, std::span<std::byte> scratch);

/// Pools of planes [planes, height, width], windows as in ConvArgs; positions outside do not count.
struct PoolArgs {
  int64_t planes = 0;
  int64_t height = 0, width = 0, out_height = 0, out_width = 0;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0;
  int64_t pad_bottom = 0, pad_right = 0;  ///< read with `count_padding` only
  bool count_padding = false;             ///< of a mean: positions in the padding count as zeros
  const float* x = nullptr;
  float* y = nullptr;
};
void max_pool(const Context& ctx, const PoolArgs& args);
void average_pool(const Context& ctx, const PoolArgs& args);

}  // namespace decant::kernels
