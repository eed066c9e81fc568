#include "formats/onnx/attribute.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace decant::onnx {
namespace {

struct Known {
  std::string_view name;
  int64_t type;
};

constexpr auto kKnown = std::to_array<Known>({
    {"allowzero", kIntAttribute},
    {"alpha", kFloatAttribute},
    {"approximate", kStringAttribute},
    {"axes", kIntsAttribute},
    {"axis", kIntAttribute},
    {"batch_dims", kIntAttribute},
    {"beta", kFloatAttribute},
    {"block_size", kIntAttribute},
    {"ends", kIntsAttribute},
    {"epsilon", kFloatAttribute},
    {"exclusive", kIntAttribute},
    {"interleaved", kIntAttribute},
    {"is_causal", kIntAttribute},
    {"k", kIntAttribute},
    {"keepdims", kIntAttribute},
    {"kv_num_heads", kIntAttribute},
    {"largest", kIntAttribute},
    {"left_window_size", kIntAttribute},
    {"max", kFloatAttribute},
    {"min", kFloatAttribute},
    {"noop_with_empty_axes", kIntAttribute},
    {"num_heads", kIntAttribute},
    {"num_outputs", kIntAttribute},
    {"pads", kIntsAttribute},
    {"perm", kIntsAttribute},
    {"q_num_heads", kIntAttribute},
    {"reduction", kStringAttribute},
    {"reverse", kIntAttribute},
    {"right_window_size", kIntAttribute},
    {"rotary_embedding_dim", kIntAttribute},
    {"scale", kFloatAttribute},
    {"select_last_index", kIntAttribute},
    {"softcap", kFloatAttribute},
    {"sorted", kIntAttribute},
    {"split", kIntsAttribute},
    {"starts", kIntsAttribute},
    {"stash_type", kIntAttribute},
    {"then_branch", kGraphAttribute},
    {"else_branch", kGraphAttribute},
    {"body", kGraphAttribute},
    {"to", kIntAttribute},
    {"transA", kIntAttribute},
    {"transB", kIntAttribute},
    {"upper", kIntAttribute},
});

constexpr std::array<std::string_view, 15> kTypeNames = {
    "undefined", "float",   "int",    "string",        "tensor",         "graph", "floats", "ints",
    "strings",   "tensors", "graphs", "sparse tensor", "sparse tensors", "type",  "types"};

std::string_view type_name(int64_t type) {
  return type >= 0 && type < static_cast<int64_t>(kTypeNames.size()) ? kTypeNames[static_cast<size_t>(type)]
                                                                     : "unknown type";
}

}  // namespace

Result<ir::Attribute> plain_attribute(const AttributeMessage& message) {
  switch (message.type) {
    case kFloatAttribute:
      return ir::Attribute(message.f);
    case kIntAttribute:
      return ir::Attribute(message.i);
    case kStringAttribute:
      return ir::Attribute(std::string(message.s));
    case kFloatsAttribute:
      return ir::Attribute(message.floats);
    case kIntsAttribute:
      return ir::Attribute(message.ints);
    case kStringsAttribute:
      return ir::Attribute(std::vector<std::string>(message.strings.begin(), message.strings.end()));
    default:
      return unsupported(fmt::format("attribute '{}' is of kind {}, which is not supported", message.name,
                                     type_name(message.type)));
  }
}

Status check_attribute_type(std::string_view domain, std::string_view name, int64_t type) {
  if (!domain.empty()) return ok_status();
  const auto it = std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& k) { return k.name == name; });
  if (it == kKnown.end() || it->type == type) return ok_status();
  return invalid_model(
      fmt::format("attribute '{}' must be of kind {}, is {}", name, type_name(it->type), type_name(type)));
}

}  // namespace decant::onnx
