#include <array>

#include "kernels/parallel.h"

namespace decant::kernels {
namespace {

// Rows of A up to which B is streamed in place; packing it would cost more.
constexpr int64_t kStreamRows = 8;
// Of k in a packed panel of B: 32 columns of it take half of a 48 KB first cache level, a tile of A a
// quarter.
constexpr int64_t kDepth = 192;
// Of k that packed rows of A are fetched ahead: 1 KB.
constexpr int64_t kAheadSteps = 16;
// Of A packed at a time: shared by the threads, read from the second or third cache level.
constexpr int64_t kPackedBytes = 4 << 20;
constexpr int64_t kBlockRowsMin = 56, kBlockRowsMax = 1008;
// Of C that stay in the first cache level while B is streamed.
constexpr int64_t kSlabFloats = 4096;
// Columns: whole cache lines for every element type.
constexpr int64_t kSlabStep = 32;
// Of a row of B that one worker reads before it jumps to the next row.
constexpr int64_t kSlabBytesMin = 1024;
constexpr double kChunkBytesMin = 32 * 1024;

int64_t block_rows(int64_t m, int64_t k) {
  const int64_t fit = kPackedBytes / (std::max<int64_t>(k, 1) * static_cast<int64_t>(sizeof(float)));
  return std::min(m, std::clamp(fit / 56 * 56, kBlockRowsMin, kBlockRowsMax));
}

/// For any table: tiles of 4, 6, 8 or 14 rows are stored with a stride of at most 4/3 of that, plus one tile
/// that is not full.
int64_t packed_floats(int64_t rows, int64_t k) { return (rows * 4 / 3 + 32) * k; }

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

void stream_columns(const Context& ctx, int64_t m, int64_t k, const float* a, int64_t lda,
                    const MatmulPart& p, int64_t begin, int64_t end) {
  const ElementType type = element_type(p.b_dtype);
  if (p.b_transposed) {
    ctx.table->gemv_nk[type](m, end - begin, k, a, lda, element_at(p.b, p.b_dtype, begin * p.ldb), p.ldb,
                             p.bias ? p.bias + begin : nullptr, p.accumulate, p.c + begin, p.ldc);
    return;
  }
  const int64_t slab = kSlabFloats / m / kSlabStep * kSlabStep;
  for (int64_t from = begin; from < end; from += slab) {
    ctx.table->gemv_kn[type](m, std::min(slab, end - from), k, a, lda, element_at(p.b, p.b_dtype, from),
                             p.ldb, p.bias ? p.bias + from : nullptr, p.accumulate, p.c + from, p.ldc);
  }
}

void stream(const Context& ctx, int64_t m, int64_t k, const float* a, int64_t lda,
            std::span<const MatmulPart> parts) {
  double bytes = 0;
  for (const MatmulPart& p : parts)
    bytes += static_cast<double>(p.n) * static_cast<double>(k * size_of(p.b_dtype));
  const int threads = ctx.pool->size();
  if (threads == 1 || bytes < kInlineBytes) {
    for (const MatmulPart& p : parts) stream_columns(ctx, m, k, a, lda, p, 0, p.n);
    return;
  }
  // About four chunks per thread in all, each of one part, none too small to be a stream.
  const double target = std::max(kChunkBytesMin, bytes / (4 * threads));
  Chunks chunks;
  chunks.parts = parts.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    const MatmulPart& p = parts[i];
    const auto size = static_cast<int64_t>(size_of(p.b_dtype));
    const double part_bytes = static_cast<double>(p.n) * static_cast<double>(k * size);
    const int64_t narrowest = p.b_transposed ? 8 : std::max(kSlabStep, kSlabBytesMin / size);
    int64_t n = std::min(static_cast<int64_t>(part_bytes / target + 0.5), p.n / narrowest);
    if (n < threads && parts.size() == 1) n = std::min<int64_t>(threads, ceil_div(p.n, kSlabStep));
    chunks.start[i + 1] = chunks.start[i] + std::max<int64_t>(1, n);
  }
  ctx.pool->parallel_for(chunks.total(), [&](int, int64_t begin, int64_t end) {
    while (begin < end) {
      const size_t i = chunks.part_of(begin);
      const MatmulPart& p = parts[i];
      const int64_t first = begin - chunks.start[i],
                    last = std::min(end, chunks.start[i + 1]) - chunks.start[i];
      const int64_t count = chunks.start[i + 1] - chunks.start[i];
      const int64_t step = p.b_transposed ? 4 : kSlabStep, steps = ceil_div(p.n, step);
      const int64_t from = steps * first / count * step, to = std::min(p.n, steps * last / count * step);
      if (from < to) stream_columns(ctx, m, k, a, lda, p, from, to);
      begin += last - first;
    }
  });
}

/// Rows of A packed for the tiles: depth blocks one after the other, in each the tiles one after the other.
struct PackedA {
  int64_t rows, k, tiles, stride;
  float* data;

  int64_t row(int64_t tile) const { return rows * tile / tiles; }  // balanced, so that none is nearly empty
  int64_t depth(int64_t block) const { return std::min(kDepth, k - block * kDepth); }
  float* at(int64_t block, int64_t tile) const {
    return data + block * kDepth * tiles * stride + tile * depth(block) * stride;
  }
};

void panel(const Context& ctx, const PackedA& a, const MatmulPart& p, float* c, int64_t column,
           int64_t first_tile, int64_t last_tile, float* packed_b, float* edge) {
  const KernelTable& t = *ctx.table;
  const ElementType type = element_type(p.b_dtype);
  const int64_t cols = std::min<int64_t>(t.tile_cols, p.n - column);
  const bool whole = cols == t.tile_cols;
  for (int64_t block = 0; block * kDepth < a.k; ++block) {
    const int64_t k0 = block * kDepth, depth = a.depth(block);
    if (p.b_transposed) {
      t.pack_b_nk[type](depth, cols, element_at(p.b, p.b_dtype, column * p.ldb + k0), p.ldb, packed_b);
    } else {
      t.pack_b_kn[type](depth, cols, element_at(p.b, p.b_dtype, k0 * p.ldb + column), p.ldb, packed_b);
    }
    const float* const bias = p.bias && block == 0 ? p.bias + column : nullptr;
    const bool accumulate = p.accumulate || block > 0;
    for (int64_t tile = first_tile; tile < last_tile; ++tile) {
      const int64_t row = a.row(tile), rows = a.row(tile + 1) - row;
      float* const out = c + row * p.ldc + column;
      const float* const packed_a = a.at(block, tile);
      const float* const ahead = packed_a + kAheadSteps * t.a_stride;
      if (whole) {
        t.tile[rows - 1](depth, packed_a, packed_b, out, p.ldc, bias, accumulate, ahead);
        continue;
      }
      t.tile[rows - 1](depth, packed_a, packed_b, edge, t.tile_cols, nullptr, false, ahead);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) {
          const float y = edge[i * t.tile_cols + j] + (bias ? bias[j] : 0.0f);
          out[i * p.ldc + j] = accumulate ? out[i * p.ldc + j] + y : y;
        }
      }
    }
  }
}

void blocked(const Context& ctx, const PackedA& a, const float* rows_of_a, int64_t lda, int64_t first_row,
             std::span<const MatmulPart> parts, std::span<float* const> panels) {
  const KernelTable& t = *ctx.table;
  const int64_t depth_blocks = ceil_div(a.k, kDepth);
  const double tile_bytes = 8.0 * static_cast<double>(t.tile_rows * std::min(kDepth, a.k));
  for_range(ctx, depth_blocks * a.tiles, tile_bytes, 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i / a.tiles, tile = i % a.tiles, row = a.row(tile);
      t.pack_a(a.row(tile + 1) - row, a.depth(block), rows_of_a + row * lda + block * kDepth, lda,
               a.at(block, tile));
    }
  });

  Chunks chunks;
  chunks.parts = parts.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    chunks.start[i + 1] = chunks.start[i] + ceil_div(parts[i].n, t.tile_cols);
  }
  // Few panels for many threads: each packs its panel for part of the rows only.
  const int64_t wanted = ceil_div(4 * ctx.pool->size(), std::max<int64_t>(1, chunks.total()));
  const int64_t splits =
      ctx.pool->size() == 1 ? 1 : std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, a.tiles / 4));
  const auto work = [&](int worker, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = i / splits, split = i % splits;
      const size_t part = chunks.part_of(index);
      const MatmulPart& p = parts[part];
      panel(ctx, a, p, p.c + first_row * p.ldc, (index - chunks.start[part]) * t.tile_cols,
            a.tiles * split / splits, a.tiles * (split + 1) / splits, panels[static_cast<size_t>(worker)],
            panels[static_cast<size_t>(worker)] + kDepth * t.tile_cols);
    }
  };
  const double flops =
      2.0 * static_cast<double>(a.rows) * static_cast<double>(a.k * chunks.total() * t.tile_cols);
  if (ctx.pool->size() == 1 || flops < 1e6) {
    work(0, 0, chunks.total() * splits);
  } else {
    ctx.pool->parallel_for(chunks.total() * splits, work);
  }
}

constexpr int64_t kPanelFloats = (kDepth + kMaxTileRows) * 32;
constexpr int kMaxThreads = 256;

}  // namespace

size_t matmul_scratch_bytes(int64_t m, int64_t, int64_t k, int n_threads) {
  if (m <= kStreamRows) return 0;
  const int64_t floats = packed_floats(block_rows(m, k), k) + n_threads * (kPanelFloats + 16) + 32;
  return static_cast<size_t>(floats) * sizeof(float);
}

void matmul_group(const Context& ctx, int64_t m, int64_t k, const float* a, int64_t lda,
                  std::span<const MatmulPart> parts, std::span<std::byte> scratch) {
  if (parts.size() > kMaxMatmulParts) {
    matmul_group(ctx, m, k, a, lda, parts.subspan(kMaxMatmulParts), scratch);
    parts = parts.first(kMaxMatmulParts);
  }
  if (m <= 0 || parts.empty()) return;
  if (m <= kStreamRows) {
    stream(ctx, m, k, a, lda, parts);
    return;
  }
  const int64_t most = block_rows(m, k);
  Scratch memory(scratch);
  float* const packed = memory.take<float>(packed_floats(most, k));
  std::array<float*, kMaxThreads> panels{};
  bool enough = packed != nullptr && k > 0;
  for (int i = 0; enough && i < ctx.pool->size(); ++i) {
    panels[static_cast<size_t>(i)] = memory.take<float>(kPanelFloats);
    enough = panels[static_cast<size_t>(i)] != nullptr;
  }
  const int64_t blocks = enough ? ceil_div(m, most) : ceil_div(m, kStreamRows);
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t row = m * i / blocks, rows = m * (i + 1) / blocks - row;
    if (enough) {
      const KernelTable& t = *ctx.table;
      const PackedA block{rows, k, ceil_div(rows, t.tile_rows), t.a_stride, packed};
      blocked(ctx, block, a + row * lda, lda, row, parts, panels);
    } else {  // slower, but never out of bounds
      std::array<MatmulPart, kMaxMatmulParts> moved;
      for (size_t p = 0; p < parts.size(); ++p) {
        moved[p] = parts[p];
        moved[p].c += row * parts[p].ldc;
      }
      stream(ctx, rows, k, a + row * lda, lda, std::span<const MatmulPart>(moved.data(), parts.size()));
    }
  }
}

}  // namespace decant::kernels
