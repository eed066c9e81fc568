#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "formats/onnx/reader.h"

/// Any bytes must give a graph or an error; external data is out of reach.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto owner = std::make_shared<std::vector<uint8_t>>(data, data + size);
  const auto bytes = std::as_bytes(std::span<const uint8_t>(*owner));
  (void)decant::onnx::read_model_bytes(bytes, owner, "", "fuzz.onnx");
  return 0;
}
