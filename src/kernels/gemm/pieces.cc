#include <algorithm>
#include <atomic>

#include "kernels/gemm/gemm.h"
#include "kernels/low_bit.h"

namespace decant::kernels {
namespace {

constexpr int64_t kTileElements = kPieceRows * kPieceStep;
constexpr int64_t kEdgeFloats = 2 * kPieceRows * kPieceCols;
/// Rows that repay splitting an f32 weight into three pieces. With fewer, vector units are as fast, and
/// hardware threads that share a core's tile unit do not slow them down.
constexpr int64_t kRowsForF32 = 256;
constexpr int64_t kPanelElements = kDepth / kPieceStep * kPieces * 2 * kTileElements;
constexpr int64_t kDecodedFloats = kDepth * kPieceCols;

int64_t block_rows(int64_t m, int64_t k) {
  const int64_t fit = kPackedBytes / (std::max<int64_t>(k, 1) * kPieces * 2);
  return std::min(m, std::clamp<int64_t>(fit / 32 * 32, 64, 1024));
}

int64_t packed_elements(int64_t rows, int64_t k) {
  return ceil_div(rows, kPieceRows) * ceil_div(k, kPieceStep) * kPieces * kTileElements;
}

/// Rows of A, and in pieces: tiles of 16 rows one after the other, each with the whole of k. A panel of B
/// with one piece in place of three is as much longer in k.
struct PackedRows {
  int64_t rows = 0, k = 0;
  const float* a = nullptr;
  int64_t lda = 0;
  uint16_t* data = nullptr;
  bool once = false;  ///< only the first pieces

  int64_t pieces() const { return once ? 1 : kPieces; }
  int64_t depth() const { return once ? kDepth * kPieces : kDepth; }
  int64_t tiles() const { return ceil_div(rows, kPieceRows); }
  int64_t stride() const { return ceil_div(k, kPieceStep) * pieces() * kTileElements; }
  const uint16_t* at(int64_t tile, int64_t k0) const {
    return data + tile * stride() + k0 / kPieceStep * pieces() * kTileElements;
  }
};

struct WorkerMemory {
  uint16_t* panel = nullptr;
  float* edge = nullptr;
  float* decoded = nullptr;  ///< of weights of few bits: [kDepth][kPieceCols]
};

/// C of tiles [first, last) and columns [column, end).
struct SlabTask {
  const MatmulPart* part = nullptr;
  int64_t column = 0, end = 0;
  int64_t first = 0, last = 0;
};

/// Depth k0 of the panel at `column`.
struct Panel {
  const MatmulPart* part = nullptr;
  int64_t column = 0, k0 = 0;

  int64_t cols() const { return std::min(kPieceCols, part->n - column); }
  const void* rows() const {
    return element_at(part->b, part->b_dtype,
                      part->b_transposed ? column * part->ldb + k0 : k0 * part->ldb + column);
  }
};

class PanelWorker {
 public:
  PanelWorker(const KernelTable& table, const PackedRows& a, int64_t first_row, const WorkerMemory& memory)
      : table_(table), kernels_(*table.pieces), a_(a), first_row_(first_row), memory_(memory) {}

  void run(const SlabTask& task, const SlabTask* next) {
    for (int64_t k0 = 0; k0 < a_.k; k0 += a_.depth()) {
      for (int64_t column = task.column; column < task.end; column += kPieceCols) {
        Panel following;
        if (column + kPieceCols < task.end) {
          following = {task.part, column + kPieceCols, k0};
        } else if (k0 + a_.depth() < a_.k) {
          following = {task.part, task.column, k0 + a_.depth()};
        } else if (next) {
          following = {next->part, next->column, 0};
        }
        run({task.part, column, k0}, task.first, task.last, following);
      }
    }
  }

 private:
  int64_t depth(const Panel& p) const { return std::min(a_.depth(), a_.k - p.k0); }

  /// Weights of few bits, decoded: k rows from `k0` on of the panel's columns.
  void decode(const Panel& p, int64_t k0, int64_t k) {
    const LowBitMatrix& w = *p.part->low_bit;
    const auto& decode = table_.low_bit->decode[w.form.bits == 8][w.halves()];
    for (int64_t column = 0; column < p.cols(); column += kLowBitGroup) {
      const LowBitArgs g = low_bit_arguments(w, (p.column + column) / kLowBitGroup);
      decode(g, k0 / kPieceStep, ceil_div(k, kPieceStep), memory_.decoded + column, kPieceCols);
    }
  }

  /// False when a value has no pieces.
  bool pack(const Panel& p) {
    if (!p.part->low_bit) {
      const auto& pack = p.part->b_transposed ? kernels_.pack_b_nk : kernels_.pack_b_kn;
      return pack[element_type(p.part->b_dtype)](depth(p), p.cols(), p.rows(), p.part->ldb, memory_.panel);
    }
    const auto pack = a_.once ? kernels_.pack_b_once : kernels_.pack_b_kn[kElementF32];
    uint16_t* to = memory_.panel;
    for (int64_t k = 0; k < depth(p); k += kDepth, to += kPanelElements / (a_.once ? kPieces : 1)) {
      const int64_t count = std::min(kDepth, depth(p) - k);
      decode(p, p.k0 + k, count);
      if (!pack(count, p.cols(), memory_.decoded, kPieceCols, to)) return false;
    }
    return true;
  }

  void run(const Panel& p, int64_t first, int64_t last, const Panel& next) {
    if (!pack(p)) {
      stream(p, first * kPieceRows, std::min(a_.rows, last * kPieceRows));
      return;
    }
    const auto& tiles = a_.once ? kernels_.tile_once : kernels_.tile[element_type(p.part->b_dtype)];
    PieceTileArgs g;
    g.b = memory_.panel;
    g.a_stride = a_.stride();
    g.steps = ceil_div(depth(p), kPieceStep);
    if (next.part && !next.part->low_bit) plan_fetch(next, ceil_div(last - first, 2) * g.steps, g);
    for (int64_t tile = first; tile < last; tile += 2) {
      const int64_t count = std::min<int64_t>(2, last - tile);
      g.a = a_.at(tile, p.k0);
      compute(tiles[count - 1], g, p, tile * kPieceRows, std::min(a_.rows, (tile + count) * kPieceRows));
      g.fetch += g.steps * g.fetch_rows * g.fetch_stride;
    }
  }

  /// The same without pieces, slowly.
  void stream(const Panel& p, int64_t row, int64_t end) {
    constexpr int64_t kRows = 8;
    const MatmulPart& part = *p.part;
    const auto& gemv = part.b_transposed ? table_.gemv_nk : table_.gemv_kn;
    for (int64_t k = 0; part.low_bit && k < depth(p); k += kDepth) {
      const int64_t count = std::min(kDepth, depth(p) - k);
      decode(p, p.k0 + k, count);
      for (int64_t i = row; i < end; i += kRows) {
        const bool begins = p.k0 + k == 0;
        gemv[kElementF32](std::min(kRows, end - i), p.cols(), count, a_.a + i * a_.lda + p.k0 + k, a_.lda,
                          memory_.decoded, kPieceCols, part.bias && begins ? part.bias + p.column : nullptr,
                          part.accumulate || !begins, part.c + (first_row_ + i) * part.ldc + p.column,
                          part.ldc);
      }
    }
    for (; row < end && !part.low_bit; row += kRows) {
      gemv[element_type(part.b_dtype)](
          std::min(kRows, end - row), p.cols(), depth(p), a_.a + row * a_.lda + p.k0, a_.lda, p.rows(),
          part.ldb, part.bias && p.k0 == 0 ? part.bias + p.column : nullptr, part.accumulate || p.k0 > 0,
          part.c + (first_row_ + row) * part.ldc + p.column, part.ldc);
    }
  }

  /// Spreads the rows of B that are packed next over the steps of this panel's tiles.
  void plan_fetch(const Panel& next, int64_t steps, PieceTileArgs& g) const {
    const MatmulPart& p = *next.part;
    const auto size = static_cast<int64_t>(size_of(p.b_dtype));
    g.fetch = static_cast<const std::byte*>(next.rows());
    g.fetch_stride = p.ldb * size;
    g.fetch_bytes = (p.b_transposed ? depth(next) : next.cols()) * size;
    g.fetch_rows = ceil_div(p.b_transposed ? next.cols() : depth(next), steps);
  }

  /// Rows [row, end) of the packed ones. The first block of k also adds the bias.
  void compute(PieceKernels::Tile tile, PieceTileArgs& g, const Panel& panel, int64_t row, int64_t end) {
    const MatmulPart& p = *panel.part;
    const int64_t cols = panel.cols();
    float* const out = p.c + (first_row_ + row) * p.ldc + panel.column;
    const float* const bias = p.bias && panel.k0 == 0 ? p.bias + panel.column : nullptr;
    const bool accumulate = p.accumulate || panel.k0 > 0;
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
                const auto pack = a.once ? kernels.pack_a_once : kernels.pack_a;
                if (!pack(std::min(kPieceRows, a.rows - row), a.k, a.a + row * a.lda, a.lda,
                          a.data + tile * a.stride()))
                  fits.store(false, std::memory_order_relaxed);
              }
            });
  if (!fits) return false;

  const int threads = ctx.pool->size();
  const int64_t panels = panels_of(parts, kPieceCols), width = slab_panels(panels, threads);
  const Chunks chunks = slabs_of(parts, kPieceCols, width);
  // Fewer slabs than threads: each packs its slab for part of the rows only.
  const int64_t pairs = ceil_div(tiles, 2);
  const int64_t splits = std::clamp<int64_t>(ceil_div(threads, std::max<int64_t>(1, chunks.total())), 1,
                                             std::max<int64_t>(1, pairs / 4));
  const int64_t tasks = chunks.total() * splits;
  const auto task_of = [&](int64_t i) {
    const size_t part = chunks.part_of(i / splits);
    const int64_t split = i % splits, column = (i / splits - chunks.start[part]) * width * kPieceCols;
    return SlabTask{&parts[part], column, std::min(parts[part].n, column + width * kPieceCols),
                    pairs * split / splits * 2, std::min(tiles, pairs * (split + 1) / splits * 2)};
  };
  const auto work = [&](int worker, int64_t begin, int64_t end) {
    kernels.enter();
    PanelWorker panel(*ctx.table, a, first_row, memory[static_cast<size_t>(worker)]);
    for (int64_t i = begin; i < end; ++i) {
      const SlabTask next = i + 1 < tasks ? task_of(i + 1) : SlabTask{};
      panel.run(task_of(i), next.part ? &next : nullptr);
    }
    kernels.leave();
  };
  const double flops = 2.0 * static_cast<double>(a.rows) * static_cast<double>(a.k * panels * kPieceCols);
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
                        n_threads * (kPanelElements * 2 + (kEdgeFloats + kDecodedFloats) * 4 + 192) + 64;
  return static_cast<size_t>(bytes);
}

bool matmul_pieces(const Context& ctx, int64_t m, int64_t k, const float* a, int64_t lda,
                   std::span<const MatmulPart> parts, std::span<std::byte> scratch, bool once) {
  const auto is_f32 = [](const MatmulPart& part) { return !part.low_bit && part.b_dtype == DType::kFloat32; };
  if (m < kRowsForF32 && !once && std::any_of(parts.begin(), parts.end(), is_f32)) return false;
  const int64_t most = block_rows(m, k);
  Scratch pieces(scratch);
  auto* const packed = pieces.take<uint16_t>(packed_elements(most, k));
  if (!packed || k <= 0) return false;
  std::array<WorkerMemory, kMaxThreads> memory{};
  for (int i = 0; i < ctx.pool->size(); ++i) {
    WorkerMemory& w = memory[static_cast<size_t>(i)];
    w.panel = pieces.take<uint16_t>(kPanelElements);
    w.edge = pieces.take<float>(kEdgeFloats);
    w.decoded = pieces.take<float>(kDecodedFloats);
    if (!w.panel || !w.edge || !w.decoded) return false;
  }
  const int64_t blocks = ceil_div(m, most);
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t row = m * i / blocks, rows = m * (i + 1) / blocks - row;
    const float* const block = a + row * lda;
    if (multiply(ctx, {rows, k, block, lda, packed, once}, row, parts, memory)) continue;
    std::array<MatmulPart, kMaxMatmulParts> moved;
    for (size_t p = 0; p < parts.size(); ++p) {
      moved[p] = parts[p];
      moved[p].c += row * parts[p].ldc;
    }
    if (parts[0].low_bit) {
      low_bit_decoded(ctx, rows, block, lda, {moved.data(), parts.size()}, scratch);
      continue;
    }
    matmul_tiles(ctx, rows, k, block, lda, std::span<const MatmulPart>(moved.data(), parts.size()), scratch);
  }
  return true;
}

}  // namespace decant::kernels
