#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kernels/parallel.h"

// What the ways to compute matmul_group share.
namespace decant::kernels {

inline constexpr int kMaxThreads = 256;

/// Rows of A up to which B is streamed in place; packing it would cost more.
inline constexpr int64_t kStreamRows = 8;

/// Of A packed at a time: shared by the threads, read from the second or third cache level.
inline constexpr int64_t kPackedBytes = 4 << 20;

/// Of k in a packed panel of B: 32 columns of it take half of a 48 KB first cache level, a tile of A a
/// quarter.
inline constexpr int64_t kDepth = 192;

/// Numbers chunks through all parts of a group: chunk c is the (c - start)th of the last part that starts at
/// or before it.
struct Chunks {
  std::array<int64_t, kMaxMatmulParts + 1> start{};
  size_t parts = 0;

  int64_t total() const { return start[parts]; }
  size_t part_of(int64_t chunk) const {
    size_t p = 0;
    while (chunk >= start[p + 1]) ++p;
    return p;
  }
};

/// Panels of columns that a worker takes together, block by block of k, so that it visits the pages of each
/// row of B seldom: at most eight, in about equal shares for the threads.
inline int64_t slab_panels(int64_t panels, int threads) {
  constexpr int64_t kMost = 8;
  const int64_t shares = threads * ceil_div(panels, threads * kMost);
  return std::max<int64_t>(1, ceil_div(panels, std::max<int64_t>(1, shares)));
}

/// Chunks of `panels` panels of `cols` columns.
inline Chunks slabs_of(std::span<const MatmulPart> parts, int64_t cols, int64_t panels) {
  Chunks chunks;
  chunks.parts = parts.size();
  for (size_t i = 0; i < parts.size(); ++i)
    chunks.start[i + 1] = chunks.start[i] + ceil_div(parts[i].n, cols * panels);
  return chunks;
}

inline int64_t panels_of(std::span<const MatmulPart> parts, int64_t cols) {
  int64_t n = 0;
  for (const MatmulPart& p : parts) n += ceil_div(p.n, cols);
  return n;
}

/// Bytes for matmul_stream with kMaxMatmulParts parts of at most n columns.
size_t matmul_stream_scratch_bytes(int64_t m, int64_t n, int64_t k);

/// matmul_group for at most kStreamRows rows. With less scratch than matmul_stream_scratch_bytes, columns
/// alone are split.
void matmul_stream(const Context& ctx, int64_t m, int64_t k, const float* a, int64_t lda,
                   std::span<const MatmulPart> parts, std::span<std::byte> scratch);

/// Bytes for matmul_pieces; grows with m up to a bound.
size_t pieces_scratch_bytes(int64_t m, int64_t k, int n_threads);

/// matmul_group on the table's PieceKernels, for dense parts or for parts of few bits; with `once` in bf16
/// products. False, with nothing done, when the scratch is too small.
bool matmul_pieces(const Context& ctx, int64_t m, int64_t k, const float* a, int64_t lda,
                   std::span<const MatmulPart> parts, std::span<std::byte> scratch, bool once = false);

/// Rows of a group of LowBitMatrix; what kernels are told of group `group`.
inline constexpr int64_t kLowBitGroup = 16;
LowBitArgs low_bit_arguments(const LowBitMatrix& weights, int64_t group);

/// Products with parts of few bits, weights decoded to f32 a group and part of k at a time.
void low_bit_decoded(const Context& ctx, int64_t m, const float* a, int64_t lda,
                     std::span<const MatmulPart> parts, std::span<std::byte> scratch);

/// matmul_group for more rows than are streamed, on the table's tiles.
void matmul_tiles(const Context& ctx, int64_t m, int64_t k, const float* a, int64_t lda,
                  std::span<const MatmulPart> parts, std::span<std::byte> scratch);

}  // namespace decant::kernels
