#include "formats/safetensors/safetensors_writer.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_set>

#include "base/checked.h"
#include "base/file_writer.h"
#include "base/quote_name.h"
#include "formats/safetensors/header.h"

namespace decant::safetensors {
namespace {

Status check(const NamedTensor& tensor) {
  const std::string shown = "tensor " + quote_name(tensor.name);
  if (size_of(tensor.dtype) == 0) return invalid_argument(shown + " has no dtype");
  if (tensor.name == "__metadata__") return invalid_argument("no tensor may be called '__metadata__'");
  const auto elements = checked_elements(tensor.dims);
  if (!elements) return invalid_argument(shown + " has a negative dimension or more than 2^48 elements");
  if (*elements * size_of(tensor.dtype) != tensor.bytes.size()) {
    return invalid_argument(shown + " has " + std::to_string(tensor.bytes.size()) +
                            " bytes, its shape and dtype need " +
                            std::to_string(*elements * size_of(tensor.dtype)));
  }
  return ok_status();
}

}  // namespace

Status write_safetensors(const std::string& path, std::span<const NamedTensor> tensors) {
  static_assert(std::endian::native == std::endian::little, "bytes are written as they lie in memory");
  std::unordered_set<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    DECANT_RETURN_IF_ERROR(check(tensor).with_context(path));
    if (!names.insert(tensor.name).second) {
      return invalid_argument(path + ": two tensors are called " + quote_name(tensor.name));
    }
  }
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return size_of(tensors[a].dtype) > size_of(tensors[b].dtype); });

  std::string header;
  try {
    nlohmann::ordered_json json = {{"__metadata__", {{"format", "pt"}}}};
    uint64_t position = 0;
    for (const size_t i : order) {
      const NamedTensor& tensor = tensors[i];
      const uint64_t end = position + tensor.bytes.size();
      json[tensor.name] = {{"dtype", format_name(tensor.dtype)},
                           {"shape", tensor.dims},
                           {"data_offsets", nlohmann::ordered_json::array({position, end})}};
      position = end;
    }
    header = json.dump();
  } catch (const std::exception& e) {
    return invalid_argument(path + ": a tensor name is not valid UTF-8 (" + e.what() + ")");
  }
  header.resize((header.size() + 7) / 8 * 8, ' ');

  DECANT_ASSIGN(FileWriter writer, FileWriter::create(path));
  const uint64_t length = header.size();
  DECANT_RETURN_IF_ERROR(writer.write(std::as_bytes(std::span(&length, 1))));
  DECANT_RETURN_IF_ERROR(writer.write(header));
  for (const size_t i : order) DECANT_RETURN_IF_ERROR(writer.write(tensors[i].bytes));
  return writer.commit();
}

}  // namespace decant::safetensors
