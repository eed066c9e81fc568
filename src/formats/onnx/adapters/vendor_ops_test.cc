#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "formats/onnx/model_bytes_test.h"
#include "formats/onnx/reader.h"
#include "ir/packed_constant.h"

namespace decant::onnx {
namespace {

using namespace testing;  // NOLINT: the builders of models
using ::testing::HasSubstr;

Result<std::unique_ptr<ir::Graph>> read(const ModelParts& parts) {
  auto owner = std::make_shared<std::string>(model_bytes(parts));
  return read_model_bytes(std::as_bytes(std::span(owner->data(), owner->size())), owner, "", "m.onnx");
}

std::string int_attribute(const std::string& name, int64_t value) {
  std::string out;
  protozero::pbf_writer a(out);
  a.add_string(1, name);
  a.add_int64(3, value);
  a.add_enum(20, 2);
  return out;
}

constexpr int kFloatCode = 1, kUInt8Code = 2, kInt32Code = 6;

/// x [batch, 4] times packed weights [2, 4]: one block of 16 codes each.
struct PackedProduct {
  int64_t n = 2, k = 4, block = 16, bits = 4;
  std::vector<int64_t> code_dims = {2, 1, 8}, scale_dims = {2, 1};
  int scale_type = kFloatCode;
  std::vector<int32_t> groups;

  Result<std::unique_ptr<ir::Graph>> build() const {
    const auto elements = [](const std::vector<int64_t>& dims) {
      size_t count = 1;
      for (const int64_t d : dims) count *= static_cast<size_t>(d);
      return count;
    };
    ModelParts parts;
    parts.initializers = {
        tensor_bytes("codes", code_dims, std::string(elements(code_dims), '\x21'), kUInt8Code),
        tensor_bytes("scales", scale_dims, std::string(elements(scale_dims) * 4, '\0'), scale_type)};
    std::vector<std::string> inputs = {"x", "codes", "scales"};
    if (!groups.empty()) {
      inputs.insert(inputs.end(), {"", "groups"});
      parts.initializers.push_back(tensor_bytes(
          "groups", {static_cast<int64_t>(groups.size())},
          std::string(reinterpret_cast<const char*>(groups.data()), groups.size() * 4), kInt32Code));
    }
    parts.nodes = {node_bytes("MatMulNBits", inputs, {"y"},
                              {int_attribute("N", n), int_attribute("K", k),
                               int_attribute("block_size", block), int_attribute("bits", bits)},
                              "com.microsoft")};
    return read(parts);
  }
  std::string error() const {
    auto graph = build();
    return graph.ok() ? "read" : graph.status().to_string();
  }
};

TEST(VendorOps, WeightsStayPacked) {
  auto graph = PackedProduct().build();
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  ASSERT_EQ((*graph)->nodes().size(), 1u);
  const ir::Node& node = *(*graph)->nodes()[0];
  EXPECT_EQ(node.op(), "FusedMatMul");
  const ir::ConstantPtr& weights = node.input(1)->constant;
  ASSERT_TRUE(weights && weights->packed());
  EXPECT_EQ(weights->dims(), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(weights->packed()->layout.bits, 4);
  EXPECT_EQ(weights->packed()->layout.row_bits, 64);
  auto half = ir::cast_constant(weights, DType::kFloat16);
  EXPECT_TRUE(half->packed());
  EXPECT_EQ(half->dtype(), DType::kFloat16);
}

TEST(VendorOps, RefusesWeightsThatDoNotFit) {
  const auto with = [](const std::function<void(PackedProduct&)>& change) {
    PackedProduct p;
    change(p);
    return p.error();
  };
  EXPECT_EQ(with([](auto& p) { p.groups = {0, 0, 0, 0}; }), "read");
  EXPECT_THAT(with([](auto& p) { p.groups = {0, 0, 1, 0}; }), HasSubstr("group index 1"));
  EXPECT_THAT(with([](auto& p) { p.groups = {0, 0}; }), HasSubstr("g_idx is shorter"));
  EXPECT_THAT(with([](auto& p) { p.n = 3; }), HasSubstr("B is uint8[2,1,8]"));
  EXPECT_THAT(with([](auto& p) { p.n = int64_t{1} << 40; }), HasSubstr("'N'"));
  EXPECT_THAT(with([](auto& p) { p.n = -1; }), HasSubstr("'N' is -1"));
  EXPECT_THAT(with([](auto& p) { p.k = 17; }), HasSubstr("B is"));
  EXPECT_THAT(with([](auto& p) { p.block = 0; }), HasSubstr("'block_size'"));
  EXPECT_THAT(with([](auto& p) { p.block = 20; }), HasSubstr("multiple of 8"));
  EXPECT_THAT(with([](auto& p) { p.bits = 9; }), HasSubstr("9 bits"));
  EXPECT_THAT(with([](auto& p) { p.code_dims = {2, 1, 7}; }), HasSubstr("B is"));
  EXPECT_THAT(with([](auto& p) { p.scale_dims = {2, 2}; }), HasSubstr("scales are"));
  EXPECT_THAT(with([](auto& p) { p.scale_type = kInt32Code; }), HasSubstr("scales of int32"));
}

TEST(VendorOps, AttentionNamesWhatIsMissing) {
  ModelParts parts;
  parts.nodes = {
      node_bytes("GroupQueryAttention", {"x"}, {"y"}, {int_attribute("num_heads", 4)}, "com.microsoft")};
  auto graph = read(parts);
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.status().message(), HasSubstr("'kv_num_heads' is missing"));
  parts.nodes = {node_bytes("GroupQueryAttention", {"x"}, {"y"},
                            {int_attribute("num_heads", 4), int_attribute("kv_num_heads", 3)},
                            "com.microsoft")};
  graph = read(parts);
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.status().message(), HasSubstr("4 heads for 3"));
}

}  // namespace
}  // namespace decant::onnx
