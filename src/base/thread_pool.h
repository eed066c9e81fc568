#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace decant {

/// A fixed set of threads that run one parallel region at a time; the calling thread is one of them (worker
/// 0).
///
/// A region is `n_chunks` chunks. Each worker owns an equal, contiguous part and takes it front to back, so
/// that its reads stay one stream; when done it takes chunks from the far end of the others' parts. The
/// caller waits only for chunks that another worker has begun: a helper that sleeps, or that the system has
/// put aside, delays nothing. Between regions helpers spin for a bounded time and then sleep in the kernel.
///
/// A region allocates nothing. One caller at a time; a task must not start a region on its own pool.
class ThreadPool {
 public:
  /// Runs chunks [begin, end); `worker` in [0, size()) is not shared by two chunks that run at once (index
  /// for scratch).
  using Task = void (*)(void* context, int worker, int64_t begin, int64_t end);

  /// `n_threads` (clamped to 1..256) includes the caller. A thread that cannot be started is done without.
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  /// Calls `task` until every chunk of [0, n_chunks) has been run exactly once; returns when all are done and
  /// their writes are visible. Runs inline with one thread or one chunk.
  void run(int64_t n_chunks, Task task, void* context);

  /// `run` for a callable `f(worker, begin, end)`, which stays on the caller's stack.
  template <typename F>
  void parallel_for(int64_t n_chunks, F&& f) {
    using Fn = std::remove_reference_t<F>;
    run(
        n_chunks,
        [](void* context, int worker, int64_t begin, int64_t end) {
          (*static_cast<Fn*>(context))(worker, begin, end);
        },
        const_cast<void*>(static_cast<const void*>(&f)));
  }

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
  int size_ = 1;
};

}  // namespace decant
