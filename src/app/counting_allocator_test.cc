#include "app/counting_allocator.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> allocations{0};

void* counted(size_t n) {
  ++allocations;
  return std::malloc(n ? n : 1);
}
}  // namespace

namespace decant::app::testing {
int64_t allocation_count() { return allocations; }
}  // namespace decant::app::testing

void* operator new(size_t n) {
  if (void* p = counted(n)) return p;
  throw std::bad_alloc();
}
// The nothrow form too: a sanitizer's own would not pair with the delete below.
void* operator new(size_t n, const std::nothrow_t&) noexcept { return counted(n); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
