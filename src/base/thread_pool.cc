#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace decant {
namespace {

constexpr int kSpins = 2000;          // a waiting helper polls about this often before it sleeps
constexpr int64_t kMaxUnits = 65535;  // units of work in a region: 16 bits each for begin and end of a part

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#if defined(__linux__)
void sleep_while(std::atomic<uint32_t>& word, uint32_t seen) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}
void wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, 1 << 30, nullptr, nullptr, 0);
}
#else
void sleep_while(std::atomic<uint32_t>& word, uint32_t seen) { word.wait(seen); }
void wake_all(std::atomic<uint32_t>& word) { word.notify_all(); }
#endif

/// A part of a region: which region it belongs to and the units [begin, end) nobody has taken yet, in one
/// word, so that a helper that was put aside in the middle of a claim can never take work from a later
/// region.
constexpr uint64_t pack_part(uint32_t epoch, uint32_t begin, uint32_t end) {
  return uint64_t{epoch} << 32 | begin << 16 | end;
}
constexpr uint32_t part_epoch(uint64_t part) { return static_cast<uint32_t>(part >> 32); }
constexpr uint32_t part_begin(uint64_t part) { return static_cast<uint32_t>(part) >> 16; }
constexpr uint32_t part_end(uint64_t part) { return static_cast<uint32_t>(part) & 0xffff; }

struct alignas(64) Part {
  std::atomic<uint64_t> word{0};
};

}  // namespace

struct ThreadPool::Shared {
  explicit Shared(int n) : parts(static_cast<size_t>(n)) {}

  alignas(64) std::atomic<uint32_t> epoch{0};  // of the published region; also what sleepers wait on
  std::atomic<uint32_t> sleepers{0};
  std::atomic<bool> stop{false};
  // The published region. Written only when no unit of an earlier one is unfinished, so that a helper whose
  // claim on `epoch` succeeds has read the values that belong to it.
  std::atomic<Task> task{nullptr};
  std::atomic<void*> context{nullptr};
  std::atomic<int64_t> n_chunks{0};
  std::atomic<int64_t> chunks_per_unit{1};
  alignas(64) std::atomic<int64_t> units_done{0};
  std::vector<Part> parts;
  std::vector<std::thread> threads;

  int64_t work(uint32_t region, int worker);
  void help(int worker);
};

/// Takes and runs units of `region` until none is left to take; returns how many.
int64_t ThreadPool::Shared::work(uint32_t region, int worker) {
  const Task f = task.load(std::memory_order_relaxed);
  void* const c = context.load(std::memory_order_relaxed);
  const int64_t chunks = n_chunks.load(std::memory_order_relaxed);
  const int64_t per_unit = chunks_per_unit.load(std::memory_order_relaxed);
  const int n = static_cast<int>(parts.size());
  int64_t done = 0;
  for (int i = 0; i < n; ++i) {
    const int victim = worker + i < n ? worker + i : worker + i - n;
    std::atomic<uint64_t>& word = parts[static_cast<size_t>(victim)].word;
    uint64_t part = word.load(std::memory_order_acquire);
    while (part_epoch(part) == region && part_begin(part) < part_end(part)) {
      const bool own = i == 0;
      const uint32_t begin = part_begin(part), end = part_end(part);
      const uint64_t rest = own ? pack_part(region, begin + 1, end) : pack_part(region, begin, end - 1);
      if (!word.compare_exchange_weak(part, rest, std::memory_order_acq_rel, std::memory_order_acquire)) {
        continue;
      }
      const int64_t unit = own ? begin : end - 1;
      f(c, worker, unit * per_unit, std::min((unit + 1) * per_unit, chunks));
      ++done;
      part = word.load(std::memory_order_acquire);
    }
  }
  return done;
}

void ThreadPool::Shared::help(int worker) {
  uint32_t seen = 0;
  while (true) {
    uint32_t now = epoch.load(std::memory_order_acquire);
    for (int spin = 0; now == seen && spin < kSpins; ++spin) {
      pause_cpu();
      now = epoch.load(std::memory_order_acquire);
    }
    if (now == seen) {
      sleepers.fetch_add(1, std::memory_order_seq_cst);
      if (epoch.load(std::memory_order_seq_cst) == seen) sleep_while(epoch, seen);
      sleepers.fetch_sub(1, std::memory_order_relaxed);
      continue;
    }
    if (stop.load(std::memory_order_acquire)) return;
    seen = now;
    const int64_t done = work(now, worker);
    if (done > 0) units_done.fetch_add(done, std::memory_order_release);
  }
}

ThreadPool::ThreadPool(int n_threads) {
  const int n = std::clamp(n_threads, 1, 256);
  if (n == 1) return;
  shared_ = std::make_unique<Shared>(n);
  Shared* const shared = shared_.get();
  try {
    for (int i = 1; i < n; ++i) shared->threads.emplace_back([shared, i] { shared->help(i); });
  } catch (const std::system_error&) {
    // Fewer threads than asked for: the parts without an owner are stolen by the others.
  }
  size_ = n;
}

ThreadPool::~ThreadPool() {
  if (!shared_) return;
  shared_->stop.store(true, std::memory_order_release);
  shared_->epoch.fetch_add(1, std::memory_order_seq_cst);
  wake_all(shared_->epoch);
  for (std::thread& t : shared_->threads) t.join();
}

void ThreadPool::run(int64_t n_chunks, Task task, void* context) {
  if (n_chunks <= 0) return;
  if (!shared_ || n_chunks == 1) {
    task(context, 0, 0, n_chunks);
    return;
  }
  Shared& s = *shared_;
  const int64_t per_unit = (n_chunks + kMaxUnits - 1) / kMaxUnits;
  const int64_t units = (n_chunks + per_unit - 1) / per_unit;
  const uint32_t region = s.epoch.load(std::memory_order_relaxed) + 1;
  s.task.store(task, std::memory_order_relaxed);
  s.context.store(context, std::memory_order_relaxed);
  s.n_chunks.store(n_chunks, std::memory_order_relaxed);
  s.chunks_per_unit.store(per_unit, std::memory_order_relaxed);
  s.units_done.store(0, std::memory_order_relaxed);
  for (int i = 0; i < size_; ++i) {
    const auto begin = static_cast<uint32_t>(units * i / size_);
    const auto end = static_cast<uint32_t>(units * (i + 1) / size_);
    s.parts[static_cast<size_t>(i)].word.store(pack_part(region, begin, end), std::memory_order_release);
  }
  s.epoch.store(region, std::memory_order_seq_cst);
  if (s.sleepers.load(std::memory_order_seq_cst) > 0) wake_all(s.epoch);

  const int64_t mine = s.work(region, 0);
  for (int spin = 0; mine + s.units_done.load(std::memory_order_acquire) < units; ++spin) {
    if (spin < kSpins) {
      pause_cpu();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace decant
