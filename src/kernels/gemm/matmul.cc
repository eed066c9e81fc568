#include "kernels/gemm/gemm.h"

namespace decant::kernels {
namespace {

// Of k that packed rows of A are fetched ahead: 1 KB.
constexpr int64_t kAheadSteps = 16;
constexpr int64_t kBlockRowsMin = 56, kBlockRowsMax = 1008;
int64_t block_rows(int64_t m, int64_t k) {
  const int64_t fit = kPackedBytes / (std::max<int64_t>(k, 1) * static_cast<int64_t>(sizeof(float)));
  return std::min(m, std::clamp(fit / 56 * 56, kBlockRowsMin, kBlockRowsMax));
}

/// For any table: tiles of 4, 6, 8 or 14 rows are stored with a stride of at most 4/3 of that, plus one tile
/// that is not full.
int64_t packed_floats(int64_t rows, int64_t k) { return (rows * 4 / 3 + 32) * k; }

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

/// Rows of tiles [first, last) and columns [column, end) of C.
struct SlabTask {
  const MatmulPart* part = nullptr;
  int64_t column = 0, end = 0;
  int64_t first = 0, last = 0;
};

/// Block of k of the panel at `column`.
struct Panel {
  const MatmulPart* part = nullptr;
  int64_t column = 0, block = 0;

  const void* rows() const {
    const int64_t k0 = block * kDepth;
    return element_at(part->b, part->b_dtype,
                      part->b_transposed ? column * part->ldb + k0 : k0 * part->ldb + column);
  }
};

class PanelWorker {
 public:
  PanelWorker(const Context& ctx, const PackedA& a, int64_t first_row, float* memory)
      : t_(*ctx.table),
        a_(a),
        first_row_(first_row),
        packed_(memory),
        edge_(memory + kDepth * t_.tile_cols) {}

  void run(const SlabTask& task, const SlabTask* next) {
    for (int64_t block = 0; block * kDepth < a_.k; ++block) {
      for (int64_t column = task.column; column < task.end; column += t_.tile_cols) {
        Panel following;
        if (column + t_.tile_cols < task.end) {
          following = {task.part, column + t_.tile_cols, block};
        } else if ((block + 1) * kDepth < a_.k) {
          following = {task.part, task.column, block + 1};
        } else if (next) {
          following = {next->part, next->column, 0};
        }
        run({task.part, column, block}, task.first, task.last, following);
      }
    }
  }

 private:
  static constexpr int64_t kLineBytes = 64;

  void run(const Panel& panel, int64_t first, int64_t last, const Panel& next) {
    const MatmulPart& p = *panel.part;
    const ElementType type = element_type(p.b_dtype);
    const int64_t cols = std::min<int64_t>(t_.tile_cols, p.n - panel.column);
    TileArgs g;
    g.k = a_.depth(panel.block);
    g.b = panel.rows();
    g.ldb = p.ldb;
    g.packed = packed_;
    g.bias = p.bias && panel.block == 0 ? p.bias + panel.column : nullptr;
    g.accumulate = p.accumulate || panel.block > 0;
    // Whole rows of B are packed by the tile that reads them first.
    const bool fused = !p.b_transposed && cols == t_.tile_cols;
    if (!fused) (p.b_transposed ? t_.pack_b_nk : t_.pack_b_kn)[type](g.k, cols, g.b, g.ldb, packed_);
    for (int64_t tile = first; tile < last; ++tile) {
      const int64_t rows = a_.row(tile + 1) - a_.row(tile);
      g.a = a_.at(panel.block, tile);
      g.ahead = g.a + kAheadSteps * t_.a_stride;
      fetch(next, tile - first - 1, g);
      compute((fused && tile == first ? t_.first_tile[type] : t_.tile)[rows - 1], g, p, a_.row(tile), rows,
              panel.column, cols);
    }
  }

  /// The second tile fetches the first cache line of each row of B that is packed next, and so on.
  void fetch(const Panel& next, int64_t line, TileArgs& g) const {
    g.fetch = reinterpret_cast<const std::byte*>(g.a);
    g.fetch_stride = 0;
    if (line < 0 || !next.part || next.part->b_transposed) return;
    const auto size = static_cast<int64_t>(size_of(next.part->b_dtype));
    if (line * kLineBytes >= t_.tile_cols * size) return;
    g.fetch = static_cast<const std::byte*>(next.rows()) + line * kLineBytes;
    g.fetch_stride = next.part->ldb * size;
  }

  void compute(KernelTable::Tile tile, TileArgs& g, const MatmulPart& p, int64_t row, int64_t rows,
               int64_t column, int64_t cols) {
    float* const out = p.c + (first_row_ + row) * p.ldc + column;
    if (cols == t_.tile_cols) {
      g.c = out;
      g.ldc = p.ldc;
      tile(g);
      return;
    }
    TileArgs whole = g;
    whole.c = edge_;
    whole.ldc = t_.tile_cols;
    whole.bias = nullptr;
    whole.accumulate = false;
    tile(whole);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        const float y = edge_[i * t_.tile_cols + j] + (g.bias ? g.bias[j] : 0.0f);
        out[i * p.ldc + j] = g.accumulate ? out[i * p.ldc + j] + y : y;
      }
    }
  }

  const KernelTable& t_;
  const PackedA& a_;
  int64_t first_row_;
  float *packed_, *edge_;
};

void blocked(const Context& ctx, const PackedA& a, const float* rows_of_a, int64_t lda, int64_t first_row,
             std::span<const MatmulPart> parts, std::span<float* const> slab_memory) {
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

  const int threads = ctx.pool->size();
  const int64_t panels = panels_of(parts, t.tile_cols), width = slab_panels(panels, threads);
  const Chunks chunks = slabs_of(parts, t.tile_cols, width);
  // Fewer slabs than threads: each packs its slab for part of the rows only.
  const int64_t splits = std::clamp<int64_t>(ceil_div(threads, std::max<int64_t>(1, chunks.total())), 1,
                                             std::max<int64_t>(1, a.tiles / 4));
  const int64_t tasks = chunks.total() * splits;
  const auto task_of = [&](int64_t i) {
    const size_t part = chunks.part_of(i / splits);
    const int64_t split = i % splits, column = (i / splits - chunks.start[part]) * width * t.tile_cols;
    return SlabTask{&parts[part], column, std::min(parts[part].n, column + width * t.tile_cols),
                    a.tiles * split / splits, a.tiles * (split + 1) / splits};
  };
  const auto work = [&](int worker, int64_t begin, int64_t end) {
    PanelWorker panel(ctx, a, first_row, slab_memory[static_cast<size_t>(worker)]);
    for (int64_t i = begin; i < end; ++i) {
      const SlabTask next = i + 1 < tasks ? task_of(i + 1) : SlabTask{};
      panel.run(task_of(i), next.part ? &next : nullptr);
    }
  };
  const double flops = 2.0 * static_cast<double>(a.rows) * static_cast<double>(a.k * panels * t.tile_cols);
  if (ctx.pool->size() == 1 || flops < 1e6) {
    work(0, 0, tasks);
  } else {
    ctx.pool->parallel_for(tasks, work);
  }
}

constexpr int64_t kPanelFloats = (kDepth + kMaxTileRows) * 32;

}  // namespace

size_t matmul_scratch_bytes(int64_t m, int64_t n, int64_t k, int n_threads) {
  // Callers may pass fewer rows than they asked for.
  const size_t stream = matmul_stream_scratch_bytes(std::min(m, kStreamRows), n, k);
  if (m <= kStreamRows) return stream;
  const int64_t floats = packed_floats(block_rows(m, k), k) + n_threads * (kPanelFloats + 16) + 32;
  return std::max(
      {static_cast<size_t>(floats) * sizeof(float), pieces_scratch_bytes(m, k, n_threads), stream});
}

void matmul_group(const Context& ctx, int64_t m, int64_t k, const float* a, int64_t lda,
                  std::span<const MatmulPart> parts, std::span<std::byte> scratch) {
  if (parts.size() > kMaxMatmulParts) {
    matmul_group(ctx, m, k, a, lda, parts.subspan(kMaxMatmulParts), scratch);
    parts = parts.first(kMaxMatmulParts);
  }
  if (m <= 0 || parts.empty()) return;
  if (m <= kStreamRows) {
    matmul_stream(ctx, m, k, a, lda, parts, scratch);
  } else if (!ctx.table->pieces || !matmul_pieces(ctx, m, k, a, lda, parts, scratch)) {
    matmul_tiles(ctx, m, k, a, lda, parts, scratch);
  }
}

void matmul_tiles(const Context& ctx, int64_t m, int64_t k, const float* a, int64_t lda,
                  std::span<const MatmulPart> parts, std::span<std::byte> scratch) {
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
      matmul_stream(ctx, rows, k, a + row * lda, lda, std::span<const MatmulPart>(moved.data(), parts.size()),
                    {});
    }
  }
}

}  // namespace decant::kernels
