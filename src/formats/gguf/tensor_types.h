#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/dtype.h"
#include "base/encoding.h"

namespace decant::gguf {

struct TensorType {
  Encoding encoding;
  DType dtype;
};

/// The type with this number of the format; nullopt when decant cannot decode it.
std::optional<TensorType> tensor_type(uint32_t id);

/// "IQ4_NL" or "type 1234": for messages about types without a decoder.
std::string tensor_type_name(uint32_t id);

}  // namespace decant::gguf
