#include "app/bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <new>
#include <numeric>
#include <random>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "app/layout.h"
#include "app/text_model.h"
#include "base/log.h"
#include "hub/digest.h"
#include "runtime/ops/matmul.h"
#include "runtime/plan.h"

namespace decant::app {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Bytes of the constants that products read: what a decode step streams.
int64_t weight_bytes(const ir::Graph& graph) {
  int64_t sum = 0;
  for (const auto& v : graph.values()) {
    if (!v->constant) continue;
    size_t bytes = 0;
    for (const ir::Node* user : v->users()) {
      if (user->is("Gather")) continue;
      kernels::LowBitMatrix packed;
      const auto rows = runtime::low_bit_weights(*user);
      if (rows) packed.form = rows->form();
      bytes = std::max(bytes, rows ? packed.bytes() : v->constant->bytes());
    }
    sum += static_cast<int64_t>(bytes);
  }
  return sum;
}

/// Sums an amount of memory with all threads: each fetches ahead on long stretches, which is as fast as this
/// machine reads.
class ReadLoop {
 public:
  ReadLoop(ThreadPool& pool, int64_t bytes)
      : pool_(pool),
        chunks_(std::clamp<int64_t>(bytes / kChunkBytes, 32, 512)),
        sums_(static_cast<size_t>(pool.size()) * 8) {
    const size_t size = static_cast<size_t>(chunks_ * kChunkBytes);
    data_ = static_cast<uint64_t*>(::operator new (size, std::align_val_t{kChunkBytes}, std::nothrow));
    if (!data_) return;
#if defined(__linux__)
    ::madvise(data_, size, MADV_HUGEPAGE);
#endif
    std::fill_n(data_, size / sizeof(uint64_t), uint64_t{1});
  }
  ~ReadLoop() { ::operator delete (data_, std::align_val_t{kChunkBytes}); }
  ReadLoop(const ReadLoop&) = delete;
  ReadLoop& operator=(const ReadLoop&) = delete;

  /// Bytes/s, the best of three passes; 0 when there is no memory for it.
  double rate() {
    double best = 0;
    if (!data_) return best;
    for (int pass = 0; pass < 3; ++pass) {
      const auto begin = Clock::now();
      pool_.parallel_for(chunks_, [&](int worker, int64_t first, int64_t last) {
        sums_[static_cast<size_t>(worker) * 8] +=
            sum(static_cast<size_t>(first) * kChunk, static_cast<size_t>(last) * kChunk);
      });
      best = std::max(best, static_cast<double>(chunks_ * kChunkBytes) / seconds_since(begin));
    }
    return best;
  }

 private:
  static constexpr int64_t kChunkBytes = 1 << 21;
  static constexpr size_t kChunk = kChunkBytes / sizeof(uint64_t);
  static constexpr size_t kAhead = 4096 / sizeof(uint64_t);

  uint64_t sum(size_t begin, size_t end) const {
    uint64_t lanes[32] = {};
    const uint64_t* const p = data_;
    for (size_t i = begin; i < end; i += 32) {
      for (size_t l = 0; l < 32; ++l) lanes[l] += p[i + l];
      for (size_t l = 0; l < 32; l += 8) __builtin_prefetch(p + i + l + kAhead);
    }
    return std::accumulate(std::begin(lanes), std::end(lanes), uint64_t{0});
  }

  ThreadPool& pool_;
  int64_t chunks_;
  uint64_t* data_ = nullptr;
  std::vector<uint64_t> sums_;
};

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

std::vector<int32_t> random_ids(int64_t n, size_t vocabulary, std::mt19937& random) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(random() % vocabulary));
  return ids;
}

std::vector<int64_t> wide(const std::vector<int32_t>& ids) { return {ids.begin(), ids.end()}; }

/// The last sample's time by operator.
void log_profile(const runtime::Plan& plan, const BenchCase& c) {
  std::string table = "last sample of " + c.name + ", " + std::to_string(c.tokens) + " tokens:\n";
  char row[128];
  for (const auto& p : plan.profile()) {
    std::snprintf(row, sizeof row, "%-28s %9.2f ms  %8lld calls\n", p.op.c_str(), 1e3 * p.seconds,
                  static_cast<long long>(p.calls));
    table += row;
  }
  log(LogLevel::kInfo, table);
}

}  // namespace

double BenchCase::median() const { return median_of(tokens_per_second); }

double BenchCase::read_bandwidth() const { return median_of(read_bandwidths); }

double BenchCase::bandwidth_share() const {
  std::vector<double> shares;
  for (size_t i = 0; i < tokens_per_second.size(); ++i) {
    if (read_bandwidths[i] > 0)
      shares.push_back(tokens_per_second[i] * static_cast<double>(bytes_per_token) / read_bandwidths[i]);
  }
  return median_of(shares);
}

Status bench(const BenchOptions& options, const std::function<void(const BenchCase&)>& report) {
  LoadOptions load;
  load.threads = options.threads;
  load.isa = options.isa;
  load.with_text = false;
  load.dtype = options.dtype;
  load.precision = options.precision;
  load.max_cache_len = options.context + options.new_tokens + 1;
  for (int64_t n : options.prompt_tokens) load.max_cache_len = std::max(load.max_cache_len, n + 1);
  DECANT_ASSIGN(auto model, TextModel::load(options.model, load));
  DECANT_ASSIGN(auto engine, runtime::Engine::create(options.threads, options.isa));
  DECANT_ASSIGN(const Layout layout, find_layout(options.model, options.dtype));

  runtime::Session& session = model->session();
  BenchCase base;
  base.isa = std::string(to_string(engine->isa));
  base.threads = engine->pool.size();
  DECANT_ASSIGN(base.model_sha256, hub::digest_of_file(layout.decoder()->path, hub::Digest::kSha256));
  const int64_t weights = weight_bytes(session.plan().graph());

  ReadLoop read_loop(engine->pool, weights);

  std::mt19937 random(1);
  const int64_t first[] = {1};
  DECANT_RETURN_IF_ERROR(session.append(first));
  const size_t vocabulary = session.logits().size();

  for (int64_t n : options.prompt_tokens) {
    BenchCase c = base;
    c.name = "prefill";
    c.tokens = n;
    c.bytes_per_token = n ? weights / n : 0;
    for (int i = 0; i <= options.repeat; ++i) {
      const std::vector<int64_t> ids = wide(random_ids(n, vocabulary, random));
      DECANT_RETURN_IF_ERROR(session.rewind(0));
      session.plan().set_profiling(options.profile && i > 0);
      const double read = read_loop.rate();
      const auto begin = Clock::now();
      DECANT_RETURN_IF_ERROR(session.append(ids));
      if (i == 0) continue;  // warms up
      c.tokens_per_second.push_back(static_cast<double>(n) / seconds_since(begin));
      c.read_bandwidths.push_back(read);
    }
    session.plan().set_profiling(false);
    report(c);
    if (options.profile) log_profile(session.plan(), c);
  }

  BenchCase c = base;
  c.name = "decode";
  c.tokens = options.new_tokens;
  c.bytes_per_token =
      weights + session.state_bytes_per_position() * (options.context + options.new_tokens / 2);
  for (int i = 0; i < options.repeat; ++i) {
    DECANT_RETURN_IF_ERROR(session.rewind(0));
    DECANT_RETURN_IF_ERROR(session.append(wide(random_ids(options.context, vocabulary, random))));
    session.plan().set_profiling(options.profile);
    c.read_bandwidths.push_back(read_loop.rate());
    const auto begin = Clock::now();
    for (int64_t t = 0; t < options.new_tokens; ++t) {
      const int64_t id[] = {static_cast<int64_t>(random() % vocabulary)};
      DECANT_RETURN_IF_ERROR(session.append(id));
    }
    c.tokens_per_second.push_back(static_cast<double>(options.new_tokens) / seconds_since(begin));
    session.plan().set_profiling(false);
  }
  report(c);
  if (options.profile) log_profile(session.plan(), c);
  return ok_status();
}

}  // namespace decant::app
