#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "formats/safetensors/safetensors_file.h"

// Any bytes give a file or an error; what a file hands out is inside the map.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0) return 0;
  const bool written = ::write(fd, data, size) == static_cast<ssize_t>(size);
  const auto file = decant::safetensors::SafetensorsFile::open("/proc/self/fd/" + std::to_string(fd));
  ::close(fd);
  if (!written || !file.ok()) return 0;
  unsigned sum = 0;
  for (const auto& tensor : (*file)->tensors()) {
    for (const std::byte byte : tensor.bytes) sum += std::to_integer<unsigned>(byte);
  }
  volatile unsigned sink = sum;
  (void)sink;
  return 0;
}
