#include <atomic>

#include "kernels/gemm/gemm.h"

namespace decant::kernels {
namespace {

constexpr int64_t kTileElements = kPieceRows * kPieceStep;
constexpr int64_t kEdgeFloats = 2 * kPieceRows * kPieceCols;
constexpr int64_t kPanelElements = kDepth / kPieceStep * kPieces * 2 * kTileElements;
constexpr int64_t kLineBytes = 64;

int64_t block_rows(int64_t m, int64_t k) {
  const int64_t fit = kPackedBytes / (std::max<int64_t>(k, 1) * kPieces * 2);
  return std::min(m, std::clamp<int64_t>(fit / 32 * 32, 64, 1024));
}

int64_t packed_elements(int64_t rows, int64_t k) {
  return ceil_div(rows, kPieceRows) * ceil_div(k, kPieceStep) * kPieces * kTileElements;
}

/// Rows of A, and in pieces: tiles of 16 rows one after the other, each with the whole of k.
struct PackedRows {
  int64_t rows = 0, k = 0;
  const float* a = nullptr;
  int64_t lda = 0;
  uint16_t* data = nullptr;

  int64_t tiles() const { return ceil_div(rows, kPieceRows); }
  int64_t stride() const { return ceil_div(k, kPieceStep) * kPieces * kTileElements; }
  const uint16_t* at(int64_t tile, int64_t k0) const {
    return data + tile * stride() + k0 / kPieceStep * kPieces * kTileElements;
  }
};

struct WorkerMemory {
  uint16_t* panel = nullptr;
  float* edge = nullptr;
};

/// C of tiles [first, last) and one panel of columns.
struct PanelTask {
  const MatmulPart* part = nullptr;
  int64_t column = 0;
  int64_t first = 0, last = 0;
};

class PanelWorker {
 public:
  PanelWorker(const KernelTable& table, const PackedRows& a, int64_t first_row, const WorkerMemory& memory)
      : table_(table), kernels_(*table.pieces), a_(a), first_row_(first_row), memory_(memory) {}

  void run(const PanelTask& task, const PanelTask* next) {
    const MatmulPart& p = *task.part;
    const ElementType type = element_type(p.b_dtype);
    const int64_t cols = std::min(kPieceCols, p.n - task.column);
    PieceTileArgs g;
    g.b = memory_.panel;
    g.a_stride = a_.stride();
    for (int64_t k0 = 0; k0 < a_.k; k0 += kDepth) {
      const int64_t depth = std::min(kDepth, a_.k - k0);
      const auto& pack = p.b_transposed ? kernels_.pack_b_nk : kernels_.pack_b_kn;
      if (!pack[type](depth, cols, rows_of(task, k0), p.ldb, memory_.panel)) {
        stream(task, k0, depth, cols);
        continue;
      }
      g.steps = ceil_div(depth, kPieceStep);
      plan_fetch(task, next, k0, g);
      for (int64_t tile = task.first; tile < task.last; tile += 2) {
        const int64_t tiles = std::min<int64_t>(2, task.last - tile);
        g.a = a_.at(tile, k0);
        compute(kernels_.tile[type][tiles - 1], g, p, k0 == 0, tile * kPieceRows,
                std::min(a_.rows, (tile + tiles) * kPieceRows), task.column, cols);
        g.fetch += g.steps * g.fetch_rows * g.fetch_stride;
      }
    }
  }

 private:
  static const void* rows_of(const PanelTask& task, int64_t k0) {
    const MatmulPart& p = *task.part;
    return element_at(p.b, p.b_dtype, p.b_transposed ? task.column * p.ldb + k0 : k0 * p.ldb + task.column);
  }

  /// The same without pieces, slowly.
  void stream(const PanelTask& task, int64_t k0, int64_t depth, int64_t cols) {
    constexpr int64_t kRows = 8;
    const MatmulPart& p = *task.part;
    const auto& gemv = p.b_transposed ? table_.gemv_nk : table_.gemv_kn;
    const int64_t end = std::min(a_.rows, task.last * kPieceRows);
    for (int64_t row = task.first * kPieceRows; row < end; row += kRows) {
      gemv[element_type(p.b_dtype)](
          std::min(kRows, end - row), cols, depth, a_.a + row * a_.lda + k0, a_.lda, rows_of(task, k0), p.ldb,
          p.bias && k0 == 0 ? p.bias + task.column : nullptr, p.accumulate || k0 > 0,
          p.c + (first_row_ + row) * p.ldc + task.column, p.ldc);
    }
  }

  /// Spreads the rows of B that are packed next over the steps of this panel's tiles.
  void plan_fetch(const PanelTask& task, const PanelTask* next, int64_t k0, PieceTileArgs& g) const {
    g.fetch_rows = 0;
    const bool deeper = k0 + kDepth < a_.k;
    if (!deeper && !next) return;
    const PanelTask& t = deeper ? task : *next;
    const MatmulPart& p = *t.part;
    const auto size = static_cast<int64_t>(size_of(p.b_dtype));
    const int64_t from = deeper ? k0 + kDepth : 0, depth = std::min(kDepth, a_.k - from);
    const int64_t cols = std::min(kPieceCols, p.n - t.column);
    g.fetch = static_cast<const std::byte*>(rows_of(t, from));
    g.fetch_stride = p.ldb * size;
    g.fetch_bytes = (p.b_transposed ? depth : cols) * size + kLineBytes - 1;
    g.fetch_rows = ceil_div(p.b_transposed ? cols : depth, ceil_div(task.last - task.first, 2) * g.steps);
  }

  /// Rows [row, end) of the packed ones. The first block of k also adds the bias.
  void compute(PieceKernels::Tile tile, PieceTileArgs& g, const MatmulPart& p, bool first_block, int64_t row,
               int64_t end, int64_t column, int64_t cols) {
    float* const out = p.c + (first_row_ + row) * p.ldc + column;
    const float* const bias = p.bias && first_block ? p.bias + column : nullptr;
    const bool accumulate = p.accumulate || !first_block;
    if (cols == kPieceCols && (end - row) % kPieceRows == 0 && !bias) {
      g.c = out;
      g.ldc = p.ldc;
      g.accumulate = accumulate;
      tile(g);
      return;
    }
    g.c = memory_.edge;
    g.ldc = kPieceCols;
    g.accumulate = false;
    tile(g);
    for (int64_t i = 0; i < end - row; ++i) {
      const float* const y = memory_.edge + i * kPieceCols;
      float* const c = out + i * p.ldc;
      for (int64_t j = 0; j < cols; ++j) c[j] = y[j] + (bias ? bias[j] : 0.0f) + (accumulate ? c[j] : 0.0f);
    }
  }

  const KernelTable& table_;
  const PieceKernels& kernels_;
  const PackedRows& a_;
  int64_t first_row_;
  const WorkerMemory& memory_;
};

/// False, with nothing done, when a value of A has no pieces.
bool multiply(const Context& ctx, const PackedRows& a, int64_t first_row, std::span<const MatmulPart> parts,
              std::span<const WorkerMemory> memory) {
  const PieceKernels& kernels = *ctx.table->pieces;
  const int64_t tiles = a.tiles();
  std::atomic<bool> fits{true};
  for_range(ctx, tiles, 16.0 * static_cast<double>(kPieceRows * a.k), 1,
            [&](int, int64_t begin, int64_t end) {
              for (int64_t tile = begin; tile < end; ++tile) {
                const int64_t row = tile * kPieceRows;
                if (!kernels.pack_a(std::min(kPieceRows, a.rows - row), a.k, a.a + row * a.lda, a.lda,
                                    a.data + tile * a.stride()))
                  fits.store(false, std::memory_order_relaxed);
              }
            });
  if (!fits) return false;

  Chunks chunks;
  chunks.parts = parts.size();
  for (size_t i = 0; i < parts.size(); ++i)
    chunks.start[i + 1] = chunks.start[i] + ceil_div(parts[i].n, kPieceCols);
  // Few panels for many threads: each packs its panel for part of the rows only.
  const int threads = ctx.pool->size();
  const int64_t wanted = ceil_div(4 * threads, std::max<int64_t>(1, chunks.total()));
  const int64_t splits = threads == 1 ? 1 : std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, tiles / 8));
  const int64_t tasks = chunks.total() * splits;
  const auto task_of = [&](int64_t i) {
    const size_t part = chunks.part_of(i / splits);
    const int64_t pairs = ceil_div(tiles, 2), split = i % splits;
    return PanelTask{&parts[part], (i / splits - chunks.start[part]) * kPieceCols, pairs * split / splits * 2,
                     std::min(tiles, pairs * (split + 1) / splits * 2)};
  };
  const auto work = [&](int worker, int64_t begin, int64_t end) {
    kernels.enter();
    PanelWorker panel(*ctx.table, a, first_row, memory[static_cast<size_t>(worker)]);
    for (int64_t i = begin; i < end; ++i) {
      const PanelTask next = i + 1 < tasks ? task_of(i + 1) : PanelTask{};
      panel.run(task_of(i), next.part ? &next : nullptr);
    }
    kernels.leave();
  };
  const double flops = 2.0 * static_cast<double>(a.rows) * static_cast<double>(a.k * chunks.total() * 32);
  if (threads == 1 || flops < 2e6) {
    work(0, 0, tasks);
  } else {
    ctx.pool->parallel_for(tasks, work);
  }
  return true;
}

}  // namespace

size_t pieces_scratch_bytes(int64_t m, int64_t k, int n_threads) {
  const int64_t bytes = packed_elements(block_rows(m, k), k) * 2 +
                        n_threads * (kPanelElements * 2 + kEdgeFloats * 4 + 128) + 64;
  return static_cast<size_t>(bytes);
}

bool matmul_pieces(const Context& ctx, int64_t m, int64_t k, const float* a, int64_t lda,
                   std::span<const MatmulPart> parts, std::span<std::byte> scratch) {
  const int64_t most = block_rows(m, k);
  Scratch pieces(scratch);
  auto* const packed = pieces.take<uint16_t>(packed_elements(most, k));
  if (!packed || k <= 0) return false;
  std::array<WorkerMemory, kMaxThreads> memory{};
  for (int i = 0; i < ctx.pool->size(); ++i) {
    WorkerMemory& w = memory[static_cast<size_t>(i)];
    w.panel = pieces.take<uint16_t>(kPanelElements);
    w.edge = pieces.take<float>(kEdgeFloats);
    if (!w.panel || !w.edge) return false;
  }
  const int64_t blocks = ceil_div(m, most);
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t row = m * i / blocks, rows = m * (i + 1) / blocks - row;
    const float* const block = a + row * lda;
    if (multiply(ctx, {rows, k, block, lda, packed}, row, parts, memory)) continue;
    std::array<MatmulPart, kMaxMatmulParts> moved;
    for (size_t p = 0; p < parts.size(); ++p) {
      moved[p] = parts[p];
      moved[p].c += row * parts[p].ldc;
    }
    matmul_tiles(ctx, rows, k, block, lda, std::span<const MatmulPart>(moved.data(), parts.size()), scratch);
  }
  return true;
}

}  // namespace decant::kernels
