#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "formats/onnx/messages.h"
#include "ir/graph.h"

namespace decant::onnx {

/// AttributeProto.AttributeType
enum AttributeType : int64_t {
  kFloatAttribute = 1,
  kIntAttribute = 2,
  kStringAttribute = 3,
  kTensorAttribute = 4,
  kGraphAttribute = 5,
  kFloatsAttribute = 6,
  kIntsAttribute = 7,
  kStringsAttribute = 8,
  kTypeAttribute = 13,
};

/// Numbers and strings; tensors and graphs need a builder. Unsupported kinds (sparse, types, lists of graphs
/// or tensors) are errors that name the attribute.
Result<ir::Attribute> plain_attribute(const AttributeMessage& message);

/// Names that mean one type in every ONNX operator ("axis", "epsilon", ...) must have it: typed access would
/// fall back to the default otherwise.
Status check_attribute_type(std::string_view domain, std::string_view name, int64_t type);

}  // namespace decant::onnx
