#include <memory>
#include <vector>

#include "formats/onnx/reader.h"
#include "ir/graph.h"
#include "ir/op.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  const auto bytes = std::make_shared<std::vector<std::byte>>(begin, begin + size);
  auto graph = decant::onnx::read_model_bytes(*bytes, bytes, "", "input.onnx");
  if (!graph.ok()) return 0;
  if (!decant::ir::infer_types(**graph).ok()) return 0;
  (void)decant::ir::validate(**graph);
  return 0;
}
