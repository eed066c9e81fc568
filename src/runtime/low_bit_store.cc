#include "runtime/low_bit_store.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <string>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "base/memory_limit.h"

namespace decant::runtime {
namespace {

constexpr size_t kLine = 64;
/// Arenas are whole huge pages, which save most misses of the address cache; what is not touched takes no
/// memory.
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kArenaBytes = size_t{64} << 20;

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

}  // namespace

struct LowBitStore::Arena {
  std::byte* data = nullptr;
  size_t size = 0, used = 0;

  ~Arena() { ::operator delete (data, std::align_val_t{kHugePage}); }
};

struct LowBitStore::Packed {
  std::shared_ptr<Arena> arena;
  kernels::LowBitMatrix matrix;
};

Result<std::shared_ptr<LowBitStore::Arena>> LowBitStore::arena_with(size_t bytes) {
  auto arena = arena_.lock();
  if (arena && arena->size - arena->used >= bytes) return arena;
  const size_t size = round_up(std::max(bytes, kArenaBytes), kHugePage);
  arena = std::make_shared<Arena>();
  if (bytes <= memory_limit())
    arena->data = static_cast<std::byte*>(::operator new (size, std::align_val_t{kHugePage}, std::nothrow));
  if (!arena->data)
    return resource_error("no memory for " + std::to_string(bytes) + " bytes of packed weights");
  arena->size = size;
#if defined(__linux__)
  ::madvise(arena->data, size, MADV_HUGEPAGE);
#endif
  arena_ = arena;
  return arena;
}

Result<std::shared_ptr<const kernels::LowBitMatrix>> LowBitStore::pack(const LowBitRows& rows,
                                                                       ThreadPool& pool) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const Packed>& known = packed_[rows.source()];
  if (auto packed = known.lock())
    return std::shared_ptr<const kernels::LowBitMatrix>(packed, &packed->matrix);
  auto packed = std::make_shared<Packed>();
  packed->matrix.form = rows.form();
  const size_t bytes = round_up(packed->matrix.bytes(), kLine);
  DECANT_ASSIGN(packed->arena, arena_with(bytes));
  std::byte* const data = packed->arena->data + packed->arena->used;
  packed->arena->used += bytes;
  packed->matrix.data = data;
  kernels::pack_low_bit(pool, rows, packed->matrix, data);
  known = packed;
  return std::shared_ptr<const kernels::LowBitMatrix>(packed, &packed->matrix);
}

}  // namespace decant::runtime
