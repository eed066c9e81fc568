#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "base/status.h"
#include "base/thread_pool.h"
#include "kernels/low_bit.h"

namespace decant::runtime {

/// Weights of products in the form that kernels read, packed once however many plans use them, for as long as
/// one does. Thread-safe but for the pool.
class LowBitStore {
 public:
  /// `rows` packed; fails when there is no memory.
  Result<std::shared_ptr<const kernels::LowBitMatrix>> pack(const LowBitRows& rows, ThreadPool& pool);

 private:
  /// Memory for many matrices, one after the other in the order in which a plan reads them.
  struct Arena;
  struct Packed;
  Result<std::shared_ptr<Arena>> arena_with(size_t bytes);

  std::mutex mutex_;
  std::map<LowBitSource, std::weak_ptr<const Packed>> packed_;
  std::weak_ptr<Arena> arena_;
};

}  // namespace decant::runtime
