#include "kernels/gemm/gemm.h"

// Products with few rows of A: bound by reading B, which is read once and in place.
//
// A [N,K] matrix is split into rows, so every thread reads one stretch of memory. So is a [K,N] matrix whose
// rows are short: each split of K sums into its own row of partial results, added up in order at the end.
// Columns of it would be pieces of a few hundred bytes, which no prefetcher follows (three quarters of the
// bandwidth in bf16). The splits follow from the shape alone, so the sums do not depend on the number of
// threads.
namespace decant::kernels {
namespace {

// Of C that stay in the first cache level while B is streamed.
constexpr int64_t kSlabFloats = 4096;
// Columns: whole cache lines for every element type.
constexpr int64_t kSlabStep = 32;
// Of a row of B that one worker reads before it jumps to the next row.
constexpr int64_t kSlabBytesMin = 1024;
constexpr double kChunkBytesMin = 32 * 1024;
// Longer rows of B are split by columns alone.
constexpr int64_t kShortRowBytes = 16 * 1024;
// Rows of B in a split of K at least: partial sums are then one percent of what is read.
constexpr int64_t kSplitRows = 144;
constexpr int64_t kMaxSplits = 8;
constexpr int64_t kSplitStep = 8;  // rows of B that the kernels read side by side

int64_t splits_of(const MatmulPart& p, int64_t k) {
  const auto size = static_cast<int64_t>(size_of(p.b_dtype));
  if (p.b_transposed || p.n * size > kShortRowBytes) return 1;
  return std::clamp<int64_t>(k / kSplitRows, 1, kMaxSplits);
}

/// Columns [begin, end) of C from rows [first, last) of B and as many columns of A.
struct Slice {
  int64_t begin, end, first, last;
};

void stream_slice(const Context& ctx, int64_t m, const float* a, int64_t lda, const MatmulPart& p,
                  const Slice& s) {
  const ElementType type = element_type(p.b_dtype);
  const int64_t k = s.last - s.first;
  a += s.first;
  if (p.b_transposed) {
    ctx.table->gemv_nk[type](m, s.end - s.begin, k, a, lda,
                             element_at(p.b, p.b_dtype, s.begin * p.ldb + s.first), p.ldb,
                             p.bias ? p.bias + s.begin : nullptr, p.accumulate, p.c + s.begin, p.ldc);
    return;
  }
  const int64_t slab = kSlabFloats / m / kSlabStep * kSlabStep;
  for (int64_t from = s.begin; from < s.end; from += slab) {
    ctx.table->gemv_kn[type](m, std::min(slab, s.end - from), k, a, lda,
                             element_at(p.b, p.b_dtype, s.first * p.ldb + from), p.ldb,
                             p.bias ? p.bias + from : nullptr, p.accumulate, p.c + from, p.ldc);
  }
}

/// Where the splits of K after the first of each part sum: [split - 1][m][n].
struct Partials {
  std::array<float*, kMaxMatmulParts> data{};
  std::array<int64_t, kMaxMatmulParts> splits{};

  Partials(int64_t m, int64_t k, std::span<const MatmulPart> parts, std::span<std::byte> scratch) {
    Scratch memory(scratch);
    for (size_t i = 0; i < parts.size(); ++i) {
      splits[i] = splits_of(parts[i], k);
      if (splits[i] > 1) data[i] = memory.take<float>((splits[i] - 1) * m * parts[i].n);
      if (!data[i]) splits[i] = 1;
    }
  }
};

void add_up(int64_t m, const MatmulPart& p, const float* partials, int64_t splits) {
  for (int64_t i = 0; i < m; ++i) {
    float* const out = p.c + i * p.ldc;
    for (int64_t s = 1; s < splits; ++s) {
      const float* const more = partials + ((s - 1) * m + i) * p.n;
      for (int64_t j = 0; j < p.n; ++j) out[j] += more[j];
    }
  }
}

}  // namespace

size_t matmul_stream_scratch_bytes(int64_t m, int64_t n, int64_t k) {
  constexpr auto kFloats = static_cast<int64_t>(sizeof(float));
  const int64_t columns = std::min(n, kShortRowBytes / 2), splits = std::min(k / kSplitRows, kMaxSplits);
  if (splits < 2) return 0;
  return static_cast<size_t>(static_cast<int64_t>(kMaxMatmulParts) *
                             ((splits - 1) * m * columns * kFloats + 64));
}

void matmul_stream(const Context& ctx, int64_t m, int64_t k, const float* a, int64_t lda,
                   std::span<const MatmulPart> parts, std::span<std::byte> scratch) {
  double bytes = 0;
  for (const MatmulPart& p : parts)
    bytes += static_cast<double>(p.n) * static_cast<double>(k * size_of(p.b_dtype));
  const int threads = ctx.pool->size();
  const Partials partials(m, k, parts, bytes < kInlineBytes ? std::span<std::byte>{} : scratch);
  // About four chunks per thread in all, each of one part, none too small to be a stream.
  const double target = std::max(kChunkBytesMin, bytes / (4 * threads));
  Chunks chunks;
  chunks.parts = parts.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    const MatmulPart& p = parts[i];
    const auto size = static_cast<int64_t>(size_of(p.b_dtype));
    const double part_bytes = static_cast<double>(p.n) * static_cast<double>(k * size);
    const int64_t narrowest = p.b_transposed ? 8 : std::max(kSlabStep, kSlabBytesMin / size);
    auto n = static_cast<int64_t>(part_bytes / target + 0.5);
    n = std::min(ceil_div(n, partials.splits[i]), p.n / narrowest);
    if (n < threads && parts.size() == 1 && partials.splits[i] == 1)
      n = std::min<int64_t>(threads, ceil_div(p.n, kSlabStep));
    chunks.start[i + 1] = chunks.start[i] + partials.splits[i] * std::max<int64_t>(1, n);
  }
  const auto work = [&](int, int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const size_t i = chunks.part_of(chunk);
      MatmulPart p = parts[i];
      const int64_t splits = partials.splits[i], count = (chunks.start[i + 1] - chunks.start[i]) / splits;
      const int64_t split = (chunk - chunks.start[i]) / count, column = (chunk - chunks.start[i]) % count;
      const int64_t step = p.b_transposed ? 4 : kSlabStep, steps = ceil_div(p.n, step);
      const int64_t blocks = ceil_div(k, kSplitStep);
      const Slice slice{steps * column / count * step, std::min(p.n, steps * (column + 1) / count * step),
                        blocks * split / splits * kSplitStep,
                        std::min(k, blocks * (split + 1) / splits * kSplitStep)};
      if (split > 0) {
        p.c = partials.data[i] + (split - 1) * m * p.n;
        p.ldc = p.n;
        p.bias = nullptr;
        p.accumulate = false;
      }
      if (slice.begin < slice.end) stream_slice(ctx, m, a, lda, p, slice);
    }
  };
  if (threads == 1 || bytes < kInlineBytes) {
    work(0, 0, chunks.total());
  } else {
    ctx.pool->parallel_for(chunks.total(), work);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (partials.splits[i] > 1) add_up(m, parts[i], partials.data[i], partials.splits[i]);
  }
}

}  // namespace decant::kernels
