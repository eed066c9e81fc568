#include "base/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace decant {
namespace {

uint64_t number_in(const char* path) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number && number > 0 ? number : std::numeric_limits<uint64_t>::max();
}

uint64_t read_limit() {
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) limit = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
  // "max" in the first is no number.
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    limit = std::min(limit, number_in(path));
  return limit;
}

}  // namespace

uint64_t memory_limit() {
  static const uint64_t limit = read_limit();
  return limit;
}

}  // namespace decant
