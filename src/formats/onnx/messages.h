#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/onnx/wire.h"

namespace decant::onnx {

using Bytes = std::span<const std::byte>;

/// The messages of onnx.proto that graphs are made of, as views into the mapped file. Nested graphs and
/// tensors stay unparsed bytes until they are wanted, so that parsing never recurses.

struct TensorMessage {
  std::string_view name;
  std::vector<int64_t> dims;
  int64_t data_type = 0;
  std::optional<Bytes> raw;
  std::vector<int64_t> ints;  ///< int32_data, int64_data or uint64_data
  uint32_t ints_field = 0;    ///< which of them (5, 7, 11)
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::string_view> strings;
  bool has_segment = false;
  int64_t data_location = 0;
  std::vector<std::pair<std::string_view, std::string_view>> external;
};

struct AttributeMessage {
  std::string_view name;
  int64_t type =
      0;  ///< AttributeProto.AttributeType; filled in from the content where the file leaves it out
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  Bytes tensor, graph, value_type;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::string_view reference;  ///< ref_attr_name
};

struct NodeMessage {
  std::string_view name, op, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeMessage> attributes;
};

struct ValueMessage {
  std::string_view name;
  std::string_view
      kind;  ///< "tensor", "sequence", "optional", "optional sequence", ...; empty without a type
  int64_t elem_type = 0;  ///< of the tensors, with `shape`
  bool has_shape = false;
  struct Axis {
    std::optional<int64_t> value;
    std::string_view label;
  };
  std::vector<Axis> shape;
};

struct GraphMessage {
  std::string_view name;
  std::vector<NodeMessage> nodes;
  std::vector<Bytes> initializers;
  std::vector<ValueMessage> inputs, outputs;
  int sparse_initializers = 0;
};

struct FunctionMessage {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<AttributeMessage> defaults;
  std::vector<NodeMessage> nodes;
  std::map<std::string, int64_t> opset_imports;
};

struct ModelMessage {
  int64_t ir_version = 0;
  std::string_view producer_name, producer_version;
  std::optional<Bytes> graph;
  std::map<std::string, int64_t> opset_imports;
  std::vector<Bytes> functions;
};

Result<ValueMessage> parse_type(ParseContext& context, Bytes bytes);
Result<TensorMessage> parse_tensor(ParseContext& context, Bytes bytes);
Result<GraphMessage> parse_graph(ParseContext& context, Bytes bytes);
Result<FunctionMessage> parse_function(ParseContext& context, Bytes bytes);
Result<ModelMessage> parse_model(ParseContext& context, Bytes bytes);

}  // namespace decant::onnx
