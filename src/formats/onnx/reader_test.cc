#include "formats/onnx/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "formats/onnx/model_bytes_test.h"

namespace decant::onnx {
namespace {

using namespace testing;  // NOLINT: the builders beside this test
using ::testing::HasSubstr;

Result<std::unique_ptr<ir::Graph>> read(const std::string& bytes, const std::string& folder = "") {
  auto owner = std::make_shared<std::string>(bytes);
  return read_model_bytes(std::as_bytes(std::span(owner->data(), owner->size())), owner, folder, "m.onnx");
}
std::string error_of(const ModelParts& parts, const std::string& folder = "") {
  auto graph = read(model_bytes(parts), folder);
  return graph.ok() ? "read" : graph.status().to_string();
}

std::string matrix() {
  std::string raw(64, '\0');
  for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<char>(i);
  return raw;
}

ModelParts matmul() {
  ModelParts parts;
  parts.nodes = {node_bytes("MatMul", {"x", "w"}, {"y"})};
  parts.initializers = {tensor_bytes("w", {4, 4}, matrix())};
  return parts;
}

TEST(OnnxReader, ReadsGraphAndViewsWeights) {
  auto owner = std::make_shared<std::string>(model_bytes(matmul()));
  auto graph = read_model_bytes(std::as_bytes(std::span(owner->data(), owner->size())), owner, "", "m.onnx");
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  ASSERT_EQ((*graph)->nodes().size(), 1u);
  const ir::Node& node = *(*graph)->nodes()[0];
  EXPECT_EQ(node.op(), "MatMul");
  EXPECT_EQ(ir::to_string(*(*graph)->inputs()[0]->shape), "[batch, 4]");
  const auto* data = node.input(1)->constant->tensor().data_as<char>();
  EXPECT_TRUE(data >= owner->data() && data < owner->data() + owner->size());
}

TEST(OnnxReader, OrderOfNodesDoesNotMatter) {
  ModelParts parts;
  parts.nodes = {node_bytes("Neg", {"a"}, {"y"}), node_bytes("Abs", {"x"}, {"a"})};
  auto graph = read(model_bytes(parts));
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  EXPECT_EQ((*graph)->nodes()[0]->op(), "Abs");
}

TEST(OnnxReader, EveryTruncationIsAnError) {
  const std::string whole = model_bytes(matmul());
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(read(whole.substr(0, n)).ok()) << n;
}

TEST(OnnxReader, EveryFlippedByteIsHandled) {
  const std::string whole = model_bytes(matmul());
  for (size_t n = 0; n < whole.size(); ++n) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[n] = static_cast<char>(damaged[n] ^ flip);
      (void)read(damaged);
    }
  }
}

TEST(OnnxReader, HostileTensors) {
  auto with = [](std::string tensor) {
    ModelParts parts = matmul();
    parts.initializers = {std::move(tensor)};
    return error_of(parts);
  };
  EXPECT_THAT(with(tensor_bytes("w", {4, 4}, matrix().substr(4))), HasSubstr("tensor 'w'"));
  EXPECT_THAT(with(tensor_bytes("w", {4, 4}, matrix() + matrix())), HasSubstr("raw data has 128"));
  EXPECT_THAT(with(tensor_bytes("w", {int64_t{1} << 32, int64_t{1} << 32}, "")), HasSubstr("too large"));
  EXPECT_THAT(with(tensor_bytes("w", {(int64_t{1} << 62) + 4, 4}, matrix())), HasSubstr("too large"));
  EXPECT_THAT(with(tensor_bytes("w", {-4, -4}, matrix())), HasSubstr("negative"));
  EXPECT_THAT(with(tensor_bytes("w", {4, int64_t{1} << 40}, "")), HasSubstr("tensor 'w'"));
  EXPECT_THAT(with(tensor_bytes("w", {4, 4}, matrix(), 22)), HasSubstr("int4"));
  EXPECT_THAT(with(tensor_bytes("w", {4, 4}, matrix(), 99)), HasSubstr("type 99"));
}

TEST(OnnxReader, HostileGraphs) {
  ModelParts cycle;
  cycle.nodes = {node_bytes("Add", {"x", "b"}, {"a"}), node_bytes("Neg", {"a"}, {"b"}),
                 node_bytes("Abs", {"b"}, {"y"})};
  EXPECT_THAT(error_of(cycle), HasSubstr("cycle"));
  ModelParts twice;
  twice.nodes = {node_bytes("Neg", {"x"}, {"y"}), node_bytes("Abs", {"x"}, {"y"})};
  EXPECT_THAT(error_of(twice), HasSubstr("defined twice"));
  ModelParts undefined;
  undefined.nodes = {node_bytes("Add", {"x", "nope"}, {"y"})};
  EXPECT_THAT(error_of(undefined), HasSubstr("n_Add"));
  ModelParts nothing = matmul();
  nothing.opset = 0;
  EXPECT_THAT(error_of(nothing), HasSubstr("opset"));
  nothing.opset = 9999;
  EXPECT_THAT(error_of(nothing), HasSubstr("9999"));
  nothing.opset = 18;
  nothing.ir_version = 9999;
  EXPECT_THAT(error_of(nothing), HasSubstr("IR version"));
  ModelParts nul;
  nul.nodes = {node_bytes("Neg", {"x"}, {std::string("y\0z", 3)})};
  EXPECT_THAT(error_of(nul), HasSubstr("NUL"));
}

TEST(OnnxReader, HostileWireData) {
  EXPECT_FALSE(read("").ok());
  EXPECT_FALSE(read(std::string("\x3a\xff\xff\xff\xff\x07", 6) + std::string(50, 'x')).ok());
  EXPECT_FALSE(read("\x08" + std::string(11, '\xff') + "\x01" + model_bytes(matmul())).ok());
  std::string groups;
  for (int i = 0; i < 100000; ++i) groups += "\xa3\x06";
  EXPECT_FALSE(read(groups + model_bytes(matmul())).ok());
}

TEST(OnnxReader, DeepSubgraphsAndFunctionsAreBounded) {
  std::string body;
  for (int i = 0; i < 3000; ++i) {
    std::string graph;
    protozero::pbf_writer(graph).add_message(
        1, node_bytes("If", {"x"}, {"o"}, {message_attribute("then_branch", 6, 5, body)}));
    body = graph;
  }
  ModelParts deep;
  deep.nodes = {node_bytes("If", {"x"}, {"y"}, {message_attribute("then_branch", 6, 5, body)})};
  EXPECT_THAT(error_of(deep), HasSubstr("deep"));

  ModelParts recursive;
  recursive.nodes = {node_bytes("f", {"x"}, {"y"}, {}, "loc")};
  recursive.functions = {function_bytes("f", {node_bytes("g", {"a"}, {"b"}, {}, "loc")}),
                         function_bytes("g", {node_bytes("f", {"a"}, {"b"}, {}, "loc")})};
  EXPECT_THAT(error_of(recursive), HasSubstr("calls itself"));

  ModelParts laughs;
  laughs.nodes = {node_bytes("f0", {"x"}, {"y"}, {}, "loc")};
  for (int i = 0; i < 28; ++i) {
    const std::string next = "f" + std::to_string(i + 1);
    laughs.functions.push_back(function_bytes(
        "f" + std::to_string(i),
        {node_bytes(next, {"a"}, {"t"}, {}, "loc"), node_bytes(next, {"t"}, {"b"}, {}, "loc")}));
  }
  laughs.functions.push_back(function_bytes("f28", {node_bytes("Neg", {"a"}, {"b"})}));
  EXPECT_THAT(error_of(laughs), HasSubstr("after inlining"));
}

TEST(OnnxReader, InlinesFunctions) {
  ModelParts parts;
  parts.nodes = {node_bytes("f", {"x"}, {"y"}, {}, "loc")};
  parts.functions = {function_bytes("f", {node_bytes("Neg", {"a"}, {"t"}), node_bytes("Abs", {"t"}, {"b"})})};
  auto graph = read(model_bytes(parts));
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  ASSERT_EQ((*graph)->nodes().size(), 3u);
  EXPECT_EQ((*graph)->outputs()[0]->name, "y");
}

TEST(OnnxReader, OldFormsBecomeInputs) {
  ModelParts parts;
  parts.opset = 11;
  parts.nodes = {node_bytes("ReduceSum", {"x"}, {"s"}, {ints_attribute("axes", {1})}),
                 node_bytes("Softmax", {"s"}, {"y"})};
  auto graph = read(model_bytes(parts));
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  const ir::Node& sum = *(*graph)->nodes()[0];
  ASSERT_TRUE(sum.input(1) && sum.input(1)->constant);
  EXPECT_EQ(sum.input(1)->constant->tensor().to_ints(), std::vector<int64_t>{1});
  EXPECT_EQ(sum.attribute<std::vector<int64_t>>("axes"), nullptr);
  EXPECT_EQ((*graph)->nodes()[1]->int_attribute("axis", 0), -1);
  parts.opset = 13;
  const std::string message = error_of(parts);
  for (const char* part : {"n_ReduceSum", "ReduceSum", "13", "axes"}) EXPECT_THAT(message, HasSubstr(part));
}

class External : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("onnx_external_" + std::to_string(::getpid()));
    std::filesystem::create_directories(root_ / "model");
    std::ofstream(root_ / "secret.bin") << matrix();
    std::ofstream(root_ / "model/w.bin") << "x" << matrix();
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::string try_read(const std::string& location, const std::string& offset = "0",
                       const std::string& length = "64") {
    ModelParts parts = matmul();
    parts.initializers = {external_bytes("w", {4, 4}, location, offset, length)};
    return error_of(parts, (root_ / "model").string());
  }
  std::filesystem::path root_;
};

TEST_F(External, StaysInsideTheFolder) {
  EXPECT_EQ(try_read("w.bin", "1"), "read");
  for (const char* location :
       {"../secret.bin", "sub/../../secret.bin", "", ".", "/etc/hostname", "absent.bin"}) {
    EXPECT_THAT(try_read(location), HasSubstr("tensor 'w'")) << location;
  }
  std::filesystem::create_symlink(root_ / "secret.bin", root_ / "model/link.bin");
  std::filesystem::create_directory_symlink(root_, root_ / "model/dir");
  std::filesystem::create_hard_link(root_ / "secret.bin", root_ / "model/hard.bin");
  ASSERT_EQ(::mkfifo((root_ / "model/fifo").c_str(), 0600), 0);
  for (const char* location : {"link.bin", "dir/secret.bin", "hard.bin", "fifo"}) {
    EXPECT_NE(try_read(location), "read") << location;
  }
}

TEST_F(External, BoundsAreChecked) {
  for (const char* offset :
       {"2", "4096", "9223372036854775800", "18446744073709551615", "-8", "abc", "", "1e3"}) {
    EXPECT_NE(try_read("w.bin", offset), "read") << offset;
  }
  EXPECT_NE(try_read("w.bin", "0", "16"), "read");
  // The same accessor serves attributes.
  ModelParts parts;
  parts.nodes = {
      node_bytes("Constant", {}, {"w"},
                 {message_attribute("value", 5, 4, external_bytes("v", {4, 4}, "../secret.bin", "0", "64"))}),
      node_bytes("MatMul", {"x", "w"}, {"y"})};
  EXPECT_NE(error_of(parts, (root_ / "model").string()), "read");
}

}  // namespace
}  // namespace decant::onnx
