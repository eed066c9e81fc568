#include "app/bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>

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

/// Bytes/s of summing `bytes` of memory with all threads: each fetches ahead on a long stretch, which is as
/// fast as this machine reads.
double read_bandwidth(ThreadPool& pool, size_t bytes) {
  constexpr size_t kChunk = size_t{1} << 21;
  constexpr size_t kAhead = 4096 / sizeof(uint64_t);
  bytes = std::clamp<size_t>(bytes, size_t{64} << 20, size_t{1} << 30) / kChunk * kChunk;
  std::vector<uint64_t> data(bytes / sizeof(uint64_t), 1);
  std::vector<uint64_t> sums(static_cast<size_t>(pool.size()) * 8);
  double best = 0;
  for (int round = 0; round < 4; ++round) {
    const auto begin = Clock::now();
    pool.parallel_for(static_cast<int64_t>(bytes / kChunk), [&](int worker, int64_t first, int64_t last) {
      const uint64_t* p = data.data() + static_cast<size_t>(first) * (kChunk / 8);
      const size_t n = static_cast<size_t>(last - first) * (kChunk / 8);
      uint64_t lanes[32] = {};
      for (size_t i = 0; i + 32 <= n; i += 32) {
        for (size_t l = 0; l < 32; ++l) lanes[l] += p[i + l];
        for (size_t l = 0; l < 32; l += 8) __builtin_prefetch(p + i + l + kAhead);
      }
      for (uint64_t lane : lanes) sums[static_cast<size_t>(worker) * 8] += lane;
    });
    best = std::max(best, static_cast<double>(bytes) / seconds_since(begin));
  }
  return sums[0] == UINT64_MAX ? 0 : best;
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

double BenchCase::median() const {
  std::vector<double> sorted = tokens_per_second;
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? 0 : sorted[sorted.size() / 2];
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

  std::mt19937 random(1);
  const int64_t first[] = {1};
  DECANT_RETURN_IF_ERROR(session.append(first));
  const size_t vocabulary = session.logits().size();

  for (int64_t n : options.prompt_tokens) {
    BenchCase c = base;
    c.name = "prefill";
    c.tokens = n;
    c.bytes_per_token = n ? weights / n : 0;
    c.read_bandwidth = read_bandwidth(engine->pool, static_cast<size_t>(weights));
    for (int i = 0; i <= options.repeat; ++i) {
      const std::vector<int64_t> ids = wide(random_ids(n, vocabulary, random));
      DECANT_RETURN_IF_ERROR(session.rewind(0));
      session.plan().set_profiling(options.profile && i > 0);
      const auto begin = Clock::now();
      DECANT_RETURN_IF_ERROR(session.append(ids));
      if (i > 0)
        c.tokens_per_second.push_back(static_cast<double>(n) / seconds_since(begin));  // the first warms up
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
  c.read_bandwidth = read_bandwidth(engine->pool, static_cast<size_t>(weights));
  for (int i = 0; i < options.repeat; ++i) {
    DECANT_RETURN_IF_ERROR(session.rewind(0));
    DECANT_RETURN_IF_ERROR(session.append(wide(random_ids(options.context, vocabulary, random))));
    session.plan().set_profiling(options.profile);
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
