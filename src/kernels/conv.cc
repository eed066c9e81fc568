#include "kernels/conv.h"

#include <array>
#include <cmath>
#include <limits>

#include "kernels/parallel.h"

namespace decant::kernels {
namespace {

// Of the summed axis in a packed panel: 32 columns of it take half of a 48 KB first cache level.
constexpr int64_t kDepth = 192;
constexpr int64_t kAheadSteps = 16;
// Of weights packed at a time.
constexpr int64_t kPackedBytes = 2 << 20;
constexpr int64_t kMaxTileCols = 64;
constexpr int kMaxThreads = 256;

/// Offsets o with 0 <= start + o * stride < size, for o in [0, count): [first, last).
struct Inside {
  int64_t first, last;
};

Inside inside(int64_t start, int64_t stride, int64_t size, int64_t count) {
  const int64_t first = start >= 0 ? 0 : (-start + stride - 1) / stride;
  const int64_t last = start >= size ? 0 : (size - 1 - start) / stride + 1;
  return {std::min(first, count), std::clamp(last, std::min(first, count), count)};
}

/// The sizes that every panel needs.
struct Shape {
  explicit Shape(const ConvArgs& a)
      : taps(a.kernel_h * a.kernel_w),
        k(a.in_channels * taps),
        in_plane(a.height * a.width),
        out_plane(a.out_height * a.out_width) {}
  int64_t taps, k, in_plane, out_plane;
};

/// A 1 x 1 kernel that moves by one position sees a plane as one row.
ConvArgs flattened(ConvArgs a) {
  const bool points = a.kernel_h == 1 && a.kernel_w == 1 && a.stride_h == 1 && a.stride_w == 1 &&
                      a.pad_top == 0 && a.pad_left == 0 && a.out_height == a.height && a.out_width == a.width;
  if (!points) return a;
  a.width *= a.height;
  a.out_width *= a.out_height;
  a.height = a.out_height = 1;
  return a;
}

/// Columns [column, column + cols) of the gathered matrix, rows [k0, k0 + depth) of it: [depth][stride],
/// zero-padded.
void gather_panel(const ConvArgs& a, const Shape& s, const float* image, int64_t column, int64_t cols,
                  int64_t k0, int64_t depth, int stride, float* packed) {
  for (int64_t r = 0; r < depth; ++r) {
    const int64_t k = k0 + r, channel = k / s.taps, tap = k % s.taps;
    const int64_t kh = tap / a.kernel_w * a.dilation_h, kw = tap % a.kernel_w * a.dilation_w;
    const float* const plane = image + channel * s.in_plane;
    float* out = packed + r * stride;
    // Runs of columns within one output row.
    for (int64_t at = column; at < column + cols;) {
      const int64_t row = at / a.out_width, ox = at % a.out_width;
      const int64_t count = std::min(a.out_width - ox, column + cols - at);
      const int64_t y = row * a.stride_h - a.pad_top + kh, x = ox * a.stride_w - a.pad_left + kw;
      const Inside in = y < 0 || y >= a.height ? Inside{0, 0} : inside(x, a.stride_w, a.width, count);
      std::fill(out, out + in.first, 0.0f);
      const float* const from = plane + y * a.width + x;
      if (a.stride_w == 1) {
        std::copy(from + in.first, from + in.last, out + in.first);
      } else {
        for (int64_t i = in.first; i < in.last; ++i) out[i] = from[i * a.stride_w];
      }
      std::fill(out + in.last, out + count, 0.0f);
      out += count;
      at += count;
    }
    std::fill(out, packed + (r + 1) * stride, 0.0f);
  }
}

/// Rows of a group's weights packed for the tiles: depth blocks one after the other, in each the tiles.
struct PackedWeights {
  int64_t rows, k, tiles, stride;
  float* data;

  int64_t row(int64_t tile) const { return rows * tile / tiles; }
  int64_t depth(int64_t block) const { return std::min(kDepth, k - block * kDepth); }
  float* at(int64_t block, int64_t tile) const {
    return data + block * kDepth * tiles * stride + tile * depth(block) * stride;
  }
};

int64_t block_rows(const ConvArgs& a, const Shape& s) {
  const int64_t fit = kPackedBytes / (std::max<int64_t>(s.k, 1) * static_cast<int64_t>(sizeof(float)));
  return std::min(a.out_channels, std::max<int64_t>(56, fit / 56 * 56));
}

int64_t packed_floats(int64_t rows, int64_t k) { return (rows * 4 / 3 + 32) * k; }

constexpr int64_t kPanelFloats = (kDepth + kMaxTileRows) * kMaxTileCols;

/// One panel of output columns for rows [first, last) of tiles. `y` is row 0 of the packed block.
void panel(const Context& ctx, const ConvArgs& a, const Shape& s, const PackedWeights& w, const float* image,
           const float* bias, float* y, int64_t column, int64_t first, int64_t last, float* packed) {
  const KernelTable& t = *ctx.table;
  float* const edge = packed + kDepth * t.tile_cols;
  const int64_t cols = std::min<int64_t>(t.tile_cols, s.out_plane - column);
  for (int64_t block = 0; block * kDepth < w.k; ++block) {
    const int64_t depth = w.depth(block);
    gather_panel(a, s, image, column, cols, block * kDepth, depth, t.tile_cols, packed);
    for (int64_t tile = first; tile < last; ++tile) {
      const int64_t row = w.row(tile), rows = w.row(tile + 1) - row;
      float* const out = y + row * s.out_plane + column;
      TileArgs g;
      g.k = depth;
      g.a = w.at(block, tile);
      g.ahead = g.a + kAheadSteps * t.a_stride;
      g.fetch = reinterpret_cast<const std::byte*>(g.a);
      g.packed = packed;
      if (block == 0) {
        for (int64_t i = 0; i < rows; ++i) {
          std::fill(out + i * s.out_plane, out + i * s.out_plane + cols, bias ? bias[row + i] : 0.0f);
        }
      }
      if (cols == t.tile_cols) {
        g.c = out;
        g.ldc = s.out_plane;
        g.accumulate = true;
        t.tile[rows - 1](g);
        continue;
      }
      g.c = edge;
      g.ldc = t.tile_cols;
      t.tile[rows - 1](g);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) out[i * s.out_plane + j] += edge[i * t.tile_cols + j];
      }
    }
  }
}

void pack_weights(const Context& ctx, const PackedWeights& w, const float* weights) {
  const double bytes = 8.0 * static_cast<double>(ctx.table->tile_rows * std::min(kDepth, w.k));
  for_range(ctx, ceil_div(w.k, kDepth) * w.tiles, bytes, 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i / w.tiles, tile = i % w.tiles, row = w.row(tile);
      ctx.table->pack_a(w.row(tile + 1) - row, w.depth(block), weights + row * w.k + block * kDepth, w.k,
                        w.at(block, tile));
    }
  });
}

void by_panels(const Context& ctx, const ConvArgs& a, const Shape& s, float* packed,
               std::span<float* const> panels) {
  const KernelTable& t = *ctx.table;
  const int64_t most = block_rows(a, s), blocks = ceil_div(a.out_channels, most);
  const int64_t columns = ceil_div(s.out_plane, t.tile_cols);
  for (int64_t g = 0; g < a.groups; ++g) {
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t row = a.out_channels * b / blocks, rows = a.out_channels * (b + 1) / blocks - row;
      const int64_t first_filter = g * a.out_channels + row;
      const PackedWeights w{rows, s.k, ceil_div(rows, t.tile_rows), t.a_stride, packed};
      pack_weights(ctx, w, a.weights + first_filter * s.k);
      // Few panels for many threads: each gathers its panel for part of the rows only.
      const int64_t wanted = ceil_div(4 * ctx.pool->size(), std::max<int64_t>(1, a.batch * columns));
      const int64_t splits =
          ctx.pool->size() == 1 ? 1 : std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, w.tiles / 4));
      const auto work = [&](int worker, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t split = i % splits, column = i / splits % columns, n = i / splits / columns;
          panel(ctx, a, s, w, a.x + (n * a.groups + g) * a.in_channels * s.in_plane,
                a.bias ? a.bias + first_filter : nullptr,
                a.y + (n * a.groups * a.out_channels + first_filter) * s.out_plane, column * t.tile_cols,
                w.tiles * split / splits, w.tiles * (split + 1) / splits,
                panels[static_cast<size_t>(worker)]);
        }
      };
      const int64_t chunks = a.batch * columns * splits;
      const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(s.k) *
                           static_cast<double>(a.batch * columns * t.tile_cols);
      if (ctx.pool->size() == 1 || flops < 1e6) {
        work(0, 0, chunks);
      } else {
        ctx.pool->parallel_for(chunks, work);
      }
    }
  }
}

/// One channel in, `out_channels` out: rows of the output gather rows of the input, tap by tap.
void by_rows(const Context& ctx, const ConvArgs& a, const Shape& s) {
  const int64_t filters = a.groups * a.out_channels;
  const double bytes = 4.0 * static_cast<double>(s.out_plane) * static_cast<double>(s.taps + 1);
  for_range(ctx, a.batch * filters, bytes, 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t filter = i % filters;
      const float* const plane = a.x + (i / filters * a.groups + filter / a.out_channels) * s.in_plane;
      const float* const weights = a.weights + filter * s.taps;
      for (int64_t oy = 0; oy < a.out_height; ++oy) {
        float* const out = a.y + i * s.out_plane + oy * a.out_width;
        std::fill(out, out + a.out_width, a.bias ? a.bias[filter] : 0.0f);
        for (int64_t tap = 0; tap < s.taps; ++tap) {
          const int64_t y = oy * a.stride_h - a.pad_top + tap / a.kernel_w * a.dilation_h;
          const int64_t x = tap % a.kernel_w * a.dilation_w - a.pad_left;
          if (y < 0 || y >= a.height) continue;
          const Inside in = inside(x, a.stride_w, a.width, a.out_width);
          const float* const from = plane + y * a.width + x;
          if (a.stride_w == 1) {
            ctx.table->axpy(weights[tap], from + in.first, out + in.first, in.last - in.first);
          } else {
            for (int64_t j = in.first; j < in.last; ++j) out[j] += weights[tap] * from[j * a.stride_w];
          }
        }
      }
    }
  });
}

}  // namespace

size_t conv_scratch_bytes(const ConvArgs& args, int n_threads) {
  if (args.in_channels == 1 && args.groups > 1) return 0;
  const Shape s(args);
  const int64_t floats = packed_floats(block_rows(args, s), s.k) + n_threads * (kPanelFloats + 16) + 32;
  return static_cast<size_t>(floats) * sizeof(float);
}

void conv(const Context& ctx, const ConvArgs& args, std::span<std::byte> scratch) {
  const ConvArgs a = flattened(args);
  const Shape s(a);
  if (a.batch <= 0 || a.groups <= 0 || a.out_channels <= 0 || s.out_plane <= 0) return;
  if (a.in_channels == 1 && a.groups > 1) {
    by_rows(ctx, a, s);
    return;
  }
  Scratch memory(scratch);
  float* const packed = memory.take<float>(packed_floats(block_rows(a, s), s.k));
  std::array<float*, kMaxThreads> panels{};
  if (packed == nullptr) return;
  for (int i = 0; i < ctx.pool->size(); ++i) {
    panels[static_cast<size_t>(i)] = memory.take<float>(kPanelFloats);
    if (panels[static_cast<size_t>(i)] == nullptr) return;
  }
  by_panels(ctx, a, s, packed, panels);
}

namespace {

/// f(plane, oy, ox, first row, last row, first column, last column, y, x) for each window; the ranges are of
/// taps that lie inside.
template <typename F>
void for_each_window(const Context& ctx, const PoolArgs& a, F&& f) {
  const double bytes = 4.0 * static_cast<double>(a.out_height * a.out_width) *
                       static_cast<double>(a.kernel_h * a.kernel_w + 1);
  for_range(ctx, a.planes, bytes, 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const float* const plane = a.x + p * a.height * a.width;
      float* const out = a.y + p * a.out_height * a.out_width;
      for (int64_t oy = 0; oy < a.out_height; ++oy) {
        const int64_t y = oy * a.stride_h - a.pad_top;
        const Inside rows = inside(y, a.dilation_h, a.height, a.kernel_h);
        for (int64_t ox = 0; ox < a.out_width; ++ox) {
          const int64_t x = ox * a.stride_w - a.pad_left;
          const Inside columns = inside(x, a.dilation_w, a.width, a.kernel_w);
          out[oy * a.out_width + ox] = f(plane, y, x, rows, columns);
        }
      }
    }
  });
}

/// Positions of one axis that a window takes in, declared padding included.
int64_t counted(int64_t start, int64_t dilation, int64_t kernel, int64_t end) {
  return std::min(kernel, ceil_div(end - start, dilation));
}

}  // namespace

void max_pool(const Context& ctx, const PoolArgs& a) {
  for_each_window(ctx, a, [&](const float* plane, int64_t y, int64_t x, Inside rows, Inside columns) {
    float best = -std::numeric_limits<float>::infinity();
    for (int64_t r = rows.first; r < rows.last; ++r) {
      const float* const from = plane + (y + r * a.dilation_h) * a.width + x;
      for (int64_t c = columns.first; c < columns.last; ++c) {
        const float v = from[c * a.dilation_w];
        best = v > best || std::isnan(v) ? v : best;
      }
    }
    return best;
  });
}

void average_pool(const Context& ctx, const PoolArgs& a) {
  for_each_window(ctx, a, [&](const float* plane, int64_t y, int64_t x, Inside rows, Inside columns) {
    float sum = 0;
    for (int64_t r = rows.first; r < rows.last; ++r) {
      const float* const from = plane + (y + r * a.dilation_h) * a.width + x;
      for (int64_t c = columns.first; c < columns.last; ++c) sum += from[c * a.dilation_w];
    }
    const int64_t count = a.count_padding ? counted(y, a.dilation_h, a.kernel_h, a.height + a.pad_bottom) *
                                                counted(x, a.dilation_w, a.kernel_w, a.width + a.pad_right)
                                          : (rows.last - rows.first) * (columns.last - columns.first);
    return sum / static_cast<float>(count);
  });
}

}  // namespace decant::kernels
