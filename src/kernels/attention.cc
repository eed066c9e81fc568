#include <array>
#include <cmath>

#include "kernels/parallel.h"

namespace decant::kernels {
namespace {

// Queries from which keys and values are packed.
constexpr int64_t kBlockedQueries = 8;
// Query rows (positions x heads of a group) that share packed keys, where there is work enough for the
// threads, and where there is not: 18 and 8 tiles of 14.
constexpr int64_t kBlockRows = 252, kBlockRowsFew = 112;
// Keys whose scores are held at a time.
constexpr int64_t kBlockKeys = kScoreStride;
constexpr int64_t kMaxTileCols = 32;
constexpr int64_t kTileRowsMin = 4;
// Positions that a worker takes at least.
constexpr int64_t kSplitMin = 64;

/// What the rows of one query head and batch share.
struct Problem {
  const AttentionArgs& g;
  int64_t batch, kv_head;
  int64_t length, offset;

  Problem(const AttentionArgs& args, int64_t b, int64_t h)
      : g(args),
        batch(b),
        kv_head(h),
        length(args.kv_lengths ? args.kv_lengths[b] : args.kv_length),
        offset(args.offsets ? args.offsets[b] : args.offset) {}

  /// Positions that query i may attend, masks aside.
  int64_t begin(int64_t i) const {
    return g.window_left < 0 ? 0 : std::clamp<int64_t>(i + offset - g.window_left, 0, length);
  }
  int64_t end(int64_t i) const { return g.causal ? std::clamp<int64_t>(i + offset + 1, 0, length) : length; }

  const void* keys() const {
    return element_at(g.k, g.kv_dtype, batch * g.k_strides.batch + kv_head * g.k_strides.head);
  }
  const void* values() const {
    return element_at(g.v, g.kv_dtype, batch * g.v_strides.batch + kv_head * g.v_strides.head);
  }
  const float* query(int64_t head, int64_t i) const {
    return g.q + batch * g.q_strides.batch + head * g.q_strides.head + i * g.q_strides.position;
  }
  float* out(int64_t head, int64_t i) const {
    return g.out + batch * g.out_strides.batch + head * g.out_strides.head + i * g.out_strides.position;
  }
  const void* mask(int64_t head, int64_t i) const {
    return element_at(g.mask, g.mask_dtype,
                      batch * g.mask_batch_stride + head * g.mask_head_stride + i * g.mask_query_stride);
  }
};

int64_t group_of(const AttentionArgs& g) { return g.kv_heads > 0 ? g.q_heads / g.kv_heads : 0; }

bool is_blocked(const AttentionArgs& g) {
  return g.q_len >= kBlockedQueries && g.q_len * group_of(g) >= 16 && group_of(g) <= kBlockRows;
}

/// Added to a score, this or less leaves a weight of zero beside any position that is open.
constexpr float kClosed = -1e30f;
constexpr int64_t kScanBlock = 64;

/// One past the last position below `end` that the mask row leaves open: keys and values behind it are not
/// read, so that a mask over a whole buffer costs what its filled part does. A float row that closes
/// everything keeps its end: there the weights are what the scores say.
int64_t open_end(const AttentionArgs& g, const void* mask, int64_t end) {
  if (!mask || g.mask_key_stride != 1) return end;
  int64_t n = end;
  if (g.mask_dtype == DType::kBool) {
    const auto* open = static_cast<const uint8_t*>(mask);
    for (; n >= kScanBlock; n -= kScanBlock) {
      uint8_t any = 0;
      for (int64_t i = 0; i < kScanBlock; ++i) any |= open[n - kScanBlock + i];
      if (any) break;
    }
    while (n > 0 && !open[n - 1]) --n;
    return n;
  }
  const auto* added = static_cast<const float*>(mask);
  for (; n >= kScanBlock; n -= kScanBlock) {
    int any = 0;
    for (int64_t i = 0; i < kScanBlock; ++i) any |= !(added[n - kScanBlock + i] <= kClosed);
    if (any) break;
  }
  while (n > 0 && added[n - 1] <= kClosed) --n;
  return n > 0 ? n : end;
}

int64_t longest(const AttentionArgs& g) {
  int64_t n = g.kv_length;
  if (g.kv_lengths) n = g.batch > 0 ? *std::max_element(g.kv_lengths, g.kv_lengths + g.batch) : 0;
  return n;
}

void write_row(const KernelTable& t, float sum, const float* acc, int64_t n, float* out) {
  std::copy(acc, acc + n, out);
  t.scale(sum > 0 ? 1.0f / sum : 0.0f, out, n);
}

/// Tasks of a call are (batch, key/value head, part of the positions).
struct FewPlan {
  int64_t rows, heads, parts, tasks;

  FewPlan(const AttentionArgs& g, int threads)
      : rows(group_of(g) * g.q_len), heads(g.batch * g.kv_heads), parts(1), tasks(heads) {
    if (threads > 1 && heads > 0 && heads < 4 * threads) parts = ceil_div(4 * threads, heads);
    tasks = heads * parts;
  }
  int64_t worker_floats(const AttentionArgs& g) const { return rows * g.qk_dim + attend_scratch(rows); }
  int64_t result_floats(const AttentionArgs& g) const { return rows * (g.v_dim + 2); }
};

struct RowInfo {
  int64_t *begin, *end;
  const void** mask;
};

void few_queries(const Context& ctx, const AttentionArgs& g, std::span<std::byte> scratch) {
  const KernelTable& t = *ctx.table;
  FewPlan plan(g, ctx.pool->size());
  const int64_t usable = std::max<int64_t>(1, longest(g) / kSplitMin);
  plan.parts = std::min(plan.parts, usable);
  plan.tasks = plan.heads * plan.parts;
  const int64_t group = group_of(g), rows = plan.rows;

  Scratch memory(scratch);
  float* const results = memory.take<float>(plan.tasks * plan.result_floats(g));
  // Heads that share a mask share the end of what it leaves open.
  int64_t* const open_ends = memory.take<int64_t>(g.batch * g.q_len);
  const bool shared_mask = g.mask && g.mask_head_stride == 0;
  if (shared_mask) {
    for (int64_t b = 0; b < g.batch; ++b) {
      const Problem p(g, b, 0);
      for (int64_t i = 0; i < g.q_len; ++i) open_ends[b * g.q_len + i] = open_end(g, p.mask(0, i), p.end(i));
    }
  }
  std::array<float*, 256> floats{};
  std::array<RowInfo, 256> infos{};
  for (int i = 0; i < ctx.pool->size(); ++i) {
    floats[static_cast<size_t>(i)] = memory.take<float>(plan.worker_floats(g));
    infos[static_cast<size_t>(i)] = {memory.take<int64_t>(rows), memory.take<int64_t>(rows),
                                     memory.take<const void*>(rows)};
  }

  const auto one = [&](int worker, int64_t task) {
    const int64_t head = task / plan.parts, part = task % plan.parts;
    const Problem p(g, head / g.kv_heads, head % g.kv_heads);
    float* const q = floats[static_cast<size_t>(worker)];
    const RowInfo& info = infos[static_cast<size_t>(worker)];
    int64_t first = p.length, last = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t h = p.kv_head * group + r / g.q_len, i = r % g.q_len;
      const float* const x = p.query(h, i);
      std::copy(x, x + g.qk_dim, q + r * g.qk_dim);
      info.begin[r] = p.begin(i);
      info.end[r] = p.end(i);
      if (g.mask) {
        info.mask[r] = p.mask(h, i);
        info.end[r] = shared_mask ? open_ends[p.batch * g.q_len + i] : open_end(g, info.mask[r], info.end[r]);
      }
      first = std::min(first, info.begin[r]);
      last = std::max(last, info.end[r]);
    }
    last = std::max(first, last);
    t.scale(g.scale, q, rows * g.qk_dim);
    AttendArgs a;
    a.rows = rows;
    a.qk_dim = g.qk_dim;
    a.v_dim = g.v_dim;
    a.q = q;
    a.k = p.keys();
    a.k_stride = g.k_strides.position;
    a.v = p.values();
    a.v_stride = g.v_strides.position;
    a.begin = first + (last - first) * part / plan.parts;
    a.end = first + (last - first) * (part + 1) / plan.parts;
    a.row_begin = info.begin;
    a.row_end = info.end;
    a.row_mask = g.mask ? info.mask : nullptr;
    a.mask_is_bool = g.mask_dtype == DType::kBool;
    a.mask_stride = g.mask_key_stride;
    a.softcap = g.softcap;
    a.max = results + task * plan.result_floats(g);
    a.sum = a.max + rows;
    a.acc = a.sum + rows;
    a.scratch = q + rows * g.qk_dim;
    t.attend[element_type(g.kv_dtype)](a);
  };
  const double bytes = 2.0 * static_cast<double>(plan.heads * longest(g) * (g.qk_dim + g.v_dim) * rows);
  if (bytes < kInlineBytes) {
    for (int64_t i = 0; i < plan.tasks; ++i) one(0, i);
  } else {
    ctx.pool->parallel_for(plan.tasks, [&](int worker, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) one(worker, i);
    });
  }

  // Sums of the parts, each relative to the largest score of all.
  for (int64_t head = 0; head < plan.heads; ++head) {
    const Problem p(g, head / g.kv_heads, head % g.kv_heads);
    for (int64_t r = 0; r < rows; ++r) {
      const auto result = [&](int64_t part) {
        return results + (head * plan.parts + part) * plan.result_floats(g);
      };
      const auto acc = [&](int64_t part) { return result(part) + 2 * rows + r * g.v_dim; };
      float top = -INFINITY, total = 0;
      for (int64_t i = 0; i < plan.parts; ++i) top = std::max(top, result(i)[r]);
      float* const sum = acc(0);
      for (int64_t i = 0; i < plan.parts; ++i) {
        const float weight = result(i)[r] == -INFINITY ? 0.0f : std::exp(result(i)[r] - top);
        total += weight * result(i)[rows + r];
        if (i == 0) {
          if (plan.parts > 1) t.scale(weight, sum, g.v_dim);
          continue;
        }
        for (int64_t d = 0; d < g.v_dim; ++d) sum[d] += weight * acc(i)[d];
      }
      write_row(t, total, sum, g.v_dim, p.out(p.kv_head * group + r / g.q_len, r % g.q_len));
    }
  }
}

struct BlockedPlan {
  int64_t group, queries = 1, blocks = 1, rows, v_padded;

  BlockedPlan(const AttentionArgs& g, int threads) : group(group_of(g)) {
    split(g, kBlockRows);
    if (g.batch * g.kv_heads * blocks < 4 * threads) split(g, kBlockRowsFew);
    rows = group * queries;
    v_padded = ceil_div(g.v_dim, kMaxTileCols) * kMaxTileCols;
  }
  void split(const AttentionArgs& g, int64_t most) {
    const int64_t fit =
        std::clamp<int64_t>(most / std::max<int64_t>(1, group), 1, std::max<int64_t>(1, g.q_len));
    blocks = ceil_div(g.q_len, fit);
    queries = ceil_div(g.q_len, std::max<int64_t>(1, blocks));
  }
  /// q packed, keys and values packed, scores, sums, and max and sum of each row.
  int64_t worker_floats(const AttentionArgs& g) const {
    return (rows * 4 / 3 + 32) * g.qk_dim + (g.qk_dim + kBlockKeys) * kMaxTileCols +
           (rows + kMaxTileRows) * (kBlockKeys + v_padded) + 2 * rows + 128;
  }
};

class BlockedWorker {
 public:
  BlockedWorker(const KernelTable& t, const Problem& p, const BlockedPlan& plan, int64_t first_query,
                float* memory)
      : t_(t), p_(p), g_(p.g), first_(first_query) {
    queries_ = std::min(plan.queries, g_.q_len - first_query);
    rows_ = plan.group * queries_;
    tiles_ = ceil_div(rows_, t.tile_rows);
    v_cols_ = ceil_div(g_.v_dim, t.tile_cols) * t.tile_cols;
    q_ = memory;
    keys_ = q_ + (plan.rows * 4 / 3 + 32) * g_.qk_dim;
    values_ = keys_ + kMaxTileCols * g_.qk_dim;
    scores_ = values_ + kMaxTileCols * kBlockKeys;
    acc_ = scores_ + (plan.rows + kMaxTileRows) * kBlockKeys;
    max_ = acc_ + (plan.rows + kMaxTileRows) * plan.v_padded;
    sum_ = max_ + plan.rows;
  }

  void run() {
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      int64_t end = 0;
      for (int64_t r = tile_row(tile); r < tile_row(tile + 1); ++r) end = std::max(end, p_.end(query(r)));
      tile_end_[static_cast<size_t>(tile)] = end;
    }
    pack_queries();
    std::fill(max_, max_ + rows_, -INFINITY);
    std::fill(sum_, sum_ + rows_, 0.0f);
    std::fill(acc_, acc_ + rows_ * v_cols_, 0.0f);
    const int64_t begin = p_.begin(first_);
    int64_t end = p_.end(first_ + queries_ - 1);
    if (g_.mask) {
      int64_t open = begin;
      const int64_t masks = g_.mask_head_stride == 0 ? queries_ : rows_;
      for (int64_t r = 0; r < masks && open < end; ++r)
        open = std::max(open, open_end(g_, p_.mask(head(r), query(r)), end));
      end = std::min(end, open);
    }
    for (int64_t key = begin; key < end; key += kBlockKeys) {
      const int64_t n = std::min(kBlockKeys, end - key);
      score(key, n);
      weigh(key, n);
      add(key, n);
    }
    for (int64_t r = 0; r < rows_; ++r)
      write_row(t_, sum_[r], acc_ + r * v_cols_, g_.v_dim, p_.out(head(r), query(r)));
  }

 private:
  int64_t head(int64_t row) const { return p_.kv_head * (rows_ / queries_) + row / queries_; }
  int64_t query(int64_t row) const { return first_ + row % queries_; }
  int64_t tile_row(int64_t tile) const { return rows_ * tile / tiles_; }

  /// How many of the n keys from `key` on some row of the tile may attend.
  int64_t attended(int64_t tile, int64_t key, int64_t n) const {
    return std::clamp<int64_t>(tile_end_[static_cast<size_t>(tile)] - key, 0, n);
  }

  void pack_queries() {
    // Rows are gathered and scaled in the buffer of the scores and sums, a tile at a time, then packed.
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      const int64_t first = tile_row(tile), n = tile_row(tile + 1) - first;
      for (int64_t d = 0; d < g_.qk_dim; d += kBlockKeys) {
        const int64_t dims = std::min(kBlockKeys, g_.qk_dim - d);
        for (int64_t i = 0; i < n; ++i) {
          const float* const x = p_.query(head(first + i), query(first + i)) + d;
          std::copy(x, x + dims, scores_ + i * kBlockKeys);
          t_.scale(g_.scale, scores_ + i * kBlockKeys, dims);
        }
        t_.pack_a(n, dims, scores_, kBlockKeys, q_ + (tile * g_.qk_dim + d) * t_.a_stride);
      }
    }
  }

  void score(int64_t key, int64_t n) {
    const ElementType type = element_type(g_.kv_dtype);
    TileArgs a;
    a.k = g_.qk_dim;
    a.packed = keys_;
    a.ldc = kBlockKeys;
    for (int64_t j = 0; j < n; j += t_.tile_cols) {
      const void* const k = element_at(p_.keys(), g_.kv_dtype, (key + j) * g_.k_strides.position);
      t_.pack_b_nk[type](g_.qk_dim, std::min<int64_t>(t_.tile_cols, n - j), k, g_.k_strides.position, keys_);
      for (int64_t tile = 0; tile < tiles_; ++tile) {
        if (j >= attended(tile, key, n)) continue;
        a.a = a.ahead = q_ + tile * g_.qk_dim * t_.a_stride;
        a.fetch = reinterpret_cast<const std::byte*>(a.a);
        a.c = scores_ + tile_row(tile) * kBlockKeys + j;
        t_.tile[tile_row(tile + 1) - tile_row(tile) - 1](a);
      }
    }
  }

  void weigh(int64_t key, int64_t n) {
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      const int64_t keys = attended(tile, key, n);
      if (keys == 0) continue;
      for (int64_t r = tile_row(tile); r < tile_row(tile + 1); ++r) weigh_row(r, key, keys);
    }
  }

  void weigh_row(int64_t r, int64_t key, int64_t n) {
    SoftmaxStepArgs s;
    s.scores = scores_ + r * kBlockKeys;
    s.begin = key;
    s.n = n;
    s.row_begin = p_.begin(query(r));
    s.row_end = p_.end(query(r));
    s.mask = g_.mask ? p_.mask(head(r), query(r)) : nullptr;
    s.mask_is_bool = g_.mask_dtype == DType::kBool;
    s.mask_stride = g_.mask_key_stride;
    s.softcap = g_.softcap;
    s.max = max_ + r;
    s.sum = sum_ + r;
    const float factor = t_.softmax_step(s);
    if (factor != 1.0f) t_.scale(factor, acc_ + r * v_cols_, v_cols_);
  }

  void add(int64_t key, int64_t n) {
    const ElementType type = element_type(g_.kv_dtype);
    TileArgs a;
    a.packed = values_;
    a.ldb = g_.v_strides.position;
    a.ldc = v_cols_;
    a.accumulate = true;
    for (int64_t d = 0; d < g_.v_dim; d += t_.tile_cols) {
      a.b = element_at(p_.values(), g_.kv_dtype, key * g_.v_strides.position + d);
      // The first tile that attends all keys packs them.
      bool packed = false;
      if (d + t_.tile_cols > g_.v_dim || attended(tiles_ - 1, key, n) < n) {
        t_.pack_b_kn[type](n, std::min<int64_t>(t_.tile_cols, g_.v_dim - d), a.b, a.ldb, values_);
        packed = true;
      }
      for (int64_t i = 0; i < tiles_; ++i) {
        const int64_t tile = tiles_ - 1 - i;  // later queries attend more
        const int64_t row = tile_row(tile), rows = tile_row(tile + 1) - row;
        a.k = attended(tile, key, n);
        if (a.k == 0) continue;
        a.a = a.ahead = scores_ + row * kBlockKeys;
        a.fetch = reinterpret_cast<const std::byte*>(a.a);
        a.c = acc_ + row * v_cols_ + d;
        (packed ? t_.value_tile : t_.first_value_tile[type])[rows - 1](a);
        packed = true;
      }
    }
  }

  const KernelTable& t_;
  const Problem& p_;
  const AttentionArgs& g_;
  int64_t first_, queries_, rows_, tiles_, v_cols_;
  std::array<int64_t, kBlockRows / kTileRowsMin + 1> tile_end_{};
  float *q_, *keys_, *values_, *scores_, *acc_, *max_, *sum_;
};

void many_queries(const Context& ctx, const AttentionArgs& g, std::span<std::byte> scratch) {
  const BlockedPlan plan(g, ctx.pool->size());
  Scratch memory(scratch);
  std::array<float*, 256> floats{};
  for (int i = 0; i < ctx.pool->size(); ++i)
    floats[static_cast<size_t>(i)] = memory.take<float>(plan.worker_floats(g));
  ctx.pool->parallel_for(g.batch * g.kv_heads * plan.blocks, [&](int worker, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t head = i / plan.blocks, block = i % plan.blocks;
      const Problem p(g, head / g.kv_heads, head % g.kv_heads);
      if (block * plan.queries >= g.q_len) continue;
      BlockedWorker(*ctx.table, p, plan, block * plan.queries, floats[static_cast<size_t>(worker)]).run();
    }
  });
}

}  // namespace

size_t attention_scratch_bytes(const AttentionArgs& g, int n_threads) {
  const int64_t threads = std::clamp(n_threads, 1, 256);
  int64_t bytes = 0;
  if (is_blocked(g)) {
    bytes = threads * (BlockedPlan(g, n_threads).worker_floats(g) * 4 + 64);
  } else {
    const FewPlan plan(g, n_threads);
    bytes = plan.tasks * plan.result_floats(g) * 4 + 64 + g.batch * g.q_len * 8 + 64;
    bytes += threads * (plan.worker_floats(g) * 4 + plan.rows * 24 + 4 * 64);
  }
  return static_cast<size_t>(bytes);
}

void attention(const Context& ctx, const AttentionArgs& g, std::span<std::byte> scratch) {
  if (g.batch <= 0 || g.q_len <= 0 || g.kv_heads <= 0 ||
      scratch.size() < attention_scratch_bytes(g, ctx.pool->size())) {
    return;
  }
  if (is_blocked(g)) {
    many_queries(ctx, g, scratch);
  } else {
    few_queries(ctx, g, scratch);
  }
}

}  // namespace decant::kernels
