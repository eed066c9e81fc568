#include "formats/safetensors/safetensors_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/file_writer.h"
#include "formats/safetensors/safetensors_writer.h"

namespace decant::safetensors {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class SafetensorsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "decant-safetensors-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  static std::string file_bytes(const std::string& header, size_t data) {
    const uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data, '\1');
  }
  void put(const std::string& name, const std::string& bytes) {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
  }
  Result<std::shared_ptr<const SafetensorsFile>> open(const std::string& name) {
    return SafetensorsFile::open((root_ / name).string());
  }
  std::string error(const std::string& header, size_t data) {
    put("m.safetensors", file_bytes(header, data));
    const auto file = open("m.safetensors");
    return file.ok() ? "no error" : file.status().to_string();
  }
  fs::path root_;
};

constexpr const char* kGood =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]},)"
    R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"s":{"dtype":"BOOL","shape":[],"data_offsets":[22,23]},)"
    R"("e":{"dtype":"I64","shape":[0,4],"data_offsets":[16,16]}}  )";

TEST_F(SafetensorsTest, Reads) {
  put("m.safetensors", file_bytes(kGood, 23));
  const auto opened = open("m.safetensors");
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  const SafetensorsFile& file = **opened;
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.tensors()[1].name, "e");
  EXPECT_THAT(file.find("a")->dims, ElementsAre(2, 2));
  EXPECT_EQ(file.find("b")->dtype, DType::kBFloat16);
  EXPECT_EQ(file.find("b")->bytes.size(), 6u);
  EXPECT_TRUE(file.find("s")->dims.empty());
  EXPECT_TRUE(file.find("e")->bytes.empty());
  EXPECT_EQ(file.find("x"), nullptr);
  EXPECT_THAT(file.metadata(), ElementsAre(std::pair<std::string, std::string>("format", "pt")));
  EXPECT_EQ(error("{}", 0), "no error");
}

TEST_F(SafetensorsTest, RefusesBadHeaders) {
  EXPECT_THAT(error("", 0), HasSubstr("begin with"));
  EXPECT_THAT(error(" {}", 0), HasSubstr("begin with"));
  EXPECT_THAT(error("[]", 0), HasSubstr("begin with"));
  EXPECT_THAT(error("{\"a\":}", 0), HasSubstr("not JSON"));
  EXPECT_THAT(error("{\"\xff\":{}}", 0), HasSubstr("not JSON"));
  EXPECT_THAT(error(std::string("{\"a\":") + std::string(100000, '['), 0), HasSubstr("not JSON"));
  EXPECT_THAT(error("{\"a\":1}", 0), HasSubstr("'a'"));
  EXPECT_THAT(error("{\"__metadata__\":{\"a\":1}}", 0), HasSubstr("not a string"));
  EXPECT_THAT(error("{\"__metadata__\":[]}", 0), HasSubstr("not an object"));
  for (const uint64_t length : {uint64_t{3}, uint64_t{100000001}, ~uint64_t{0}}) {
    put("m.safetensors", std::string(reinterpret_cast<const char*>(&length), 8) + "{}");
    EXPECT_THAT(open("m.safetensors").status().message(), HasSubstr("announces a header")) << length;
  }
}

TEST_F(SafetensorsTest, RefusesBadEntries) {
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  EXPECT_EQ(error(one("F32", "[2]", "[0,8]"), 8), "no error");
  EXPECT_THAT(error(one("F8_E4M3", "[2]", "[0,2]"), 2), HasSubstr("unsupported"));
  EXPECT_THAT(error(one("F8_E4M3", "[2]", "[0,2]"), 2), HasSubstr("'t' has dtype 'F8_E4M3'"));
  EXPECT_THAT(error(one("F32", "[-2]", "[0,8]"), 8), HasSubstr("shape"));
  EXPECT_THAT(error(one("F32", "[2.5]", "[0,8]"), 8), HasSubstr("shape"));
  EXPECT_THAT(error(one("F32", "2", "[0,8]"), 8), HasSubstr("shape"));
  EXPECT_THAT(error(one("F32", "[4294967296,4294967296]", "[0,8]"), 8), HasSubstr("2^48"));
  EXPECT_THAT(error(one("F32", "[0,18446744073709551615]", "[0,0]"), 0), HasSubstr("shape"));
  EXPECT_THAT(error(one("F32", "[2]", "[0,4]"), 8), HasSubstr("do not span"));
  EXPECT_THAT(error(one("F32", "[2]", "[8,0]"), 8), HasSubstr("do not span"));
  EXPECT_THAT(error(one("F32", "[2]", "[-8,0]"), 8), HasSubstr("data_offsets"));
  EXPECT_THAT(error(one("F32", "[2]", "[0,8,8]"), 8), HasSubstr("data_offsets"));
  EXPECT_THAT(error(one("F32", "[2]", "[8]"), 8), HasSubstr("data_offsets"));
  EXPECT_THAT(error(one("F32", "[2]", "[0,8]"), 7), HasSubstr("truncated"));
  EXPECT_THAT(error(one("F32", "[2]", "[0,8]"), 9), HasSubstr("after its last tensor"));
  EXPECT_THAT(error(one("F32", "[2]", "[4,12]"), 12), HasSubstr("holes"));
  EXPECT_THAT(error(R"({"t":{"dtype":"F32","shape":[2]}})", 8), HasSubstr("lacks"));
  EXPECT_THAT(error(R"({"t":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8),
              HasSubstr("two"));
  const std::string t = R"("t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  EXPECT_THAT(error("{" + t + "," + t + "}", 4), HasSubstr("two entries 't'"));
  EXPECT_THAT(error("{" + t + R"(,"u":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6),
              HasSubstr("overlap"));
}

TEST_F(SafetensorsTest, EveryTruncationIsAnError) {
  const std::string bytes = file_bytes(kGood, 23);
  for (size_t length = 0; length < bytes.size(); ++length) {
    put("m.safetensors", bytes.substr(0, length));
    ASSERT_FALSE(open("m.safetensors").ok()) << length;
  }
}

TEST_F(SafetensorsTest, RandomCorruptionNeverCrashes) {
  const std::string bytes = file_bytes(kGood, 23);
  std::mt19937 random(11);
  for (int round = 0; round < 600; ++round) {
    std::string bad = bytes;
    for (unsigned i = 0; i <= random() % 3; ++i) bad[random() % bad.size()] = static_cast<char>(random());
    put("m.safetensors", bad);
    (void)open("m.safetensors");
  }
}

TEST_F(SafetensorsTest, ManyTensorsTakeLinearTime) {
  std::string header = "{";
  constexpr size_t kCount = 100000;
  for (size_t i = 0; i < kCount; ++i) {
    header += (i ? ",\"t" : "\"t") + std::to_string(i) + R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" +
              std::to_string(i) + "," + std::to_string(i + 1) + "]}";
  }
  EXPECT_EQ(error(header + "}", kCount), "no error");
}

TEST_F(SafetensorsTest, ShardedFolders) {
  const auto shard = [](const std::string& name) {
    return file_bytes("{\"" + name + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  };
  put("m-1.safetensors", shard("a"));
  put("model.safetensors.index.json", R"({"metadata":{"total_size":16},"weight_map":{"a":"m-1.safetensors",)"
                                      R"("b":"m-2.safetensors"}})");
  EXPECT_THAT(open("").status().message(), HasSubstr("'m-2.safetensors'"));
  put("m-2.safetensors", shard("b"));
  for (const char* name : {"", "model.safetensors.index.json"}) {
    const auto file = open(name);
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    EXPECT_EQ((*file)->tensors().size(), 2u);
    EXPECT_NE((*file)->find("b"), nullptr);
  }
  put("m-2.safetensors", shard("c"));
  EXPECT_THAT(open("").status().message(), HasSubstr("'b' is not in shard 'm-2.safetensors'"));
  put("m-2.safetensors", shard("a"));
  EXPECT_THAT(open("").status().message(), HasSubstr("again in"));
  for (const char* location : {"../x.safetensors", "/etc/passwd", ""}) {
    put("model.safetensors.index.json", std::string(R"({"weight_map":{"a":")") + location + "\"}}");
    EXPECT_EQ(open("").status().code(), StatusCode::kInvalidModel) << location;
  }
  for (const char* text :
       {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{}})", R"({"weight_map":{"a":1}})"}) {
    put("model.safetensors.index.json", text);
    EXPECT_EQ(open("").status().code(), StatusCode::kInvalidModel) << text;
  }
  fs::remove(root_ / "model.safetensors.index.json");
  EXPECT_EQ(open("").status().code(), StatusCode::kNotFound);
}

TEST_F(SafetensorsTest, WriterRoundTrip) {
  const std::vector<float> values = {1.0f, -2.0f, 3.5f};
  const std::vector<int64_t> ids = {7, 8};
  const char flag = 1;
  const std::vector<NamedTensor> tensors = {
      {"flag", DType::kBool, {}, std::as_bytes(std::span(&flag, 1))},
      {"x \"quoted\" \xC3\xA9", DType::kFloat32, {3, 1}, std::as_bytes(std::span(values))},
      {"ids", DType::kInt64, {1, 2}, std::as_bytes(std::span(ids))},
      {"none", DType::kFloat16, {0}, {}},
  };
  const std::string path = (root_ / "out.safetensors").string();
  ASSERT_TRUE(write_safetensors(path, tensors).ok());
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  ASSERT_EQ((*file)->tensors().size(), 4u);
  for (const NamedTensor& tensor : tensors) {
    const Tensor* read = (*file)->find(tensor.name);
    ASSERT_NE(read, nullptr) << tensor.name;
    EXPECT_EQ(read->dtype, tensor.dtype);
    EXPECT_EQ(read->dims, tensor.dims);
    ASSERT_EQ(read->bytes.size(), tensor.bytes.size());
    EXPECT_TRUE(std::equal(read->bytes.begin(), read->bytes.end(), tensor.bytes.begin()));
    if (!read->bytes.empty()) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(read->bytes.data()) % size_of(read->dtype), 0u);
    }
  }
  EXPECT_TRUE(write_safetensors(path, {}).ok());
}

TEST_F(SafetensorsTest, WriterRefuses) {
  const char byte = 0;
  const auto bytes = std::as_bytes(std::span(&byte, 1));
  const std::string path = (root_ / "out.safetensors").string();
  const auto code = [&](std::vector<NamedTensor> tensors) { return write_safetensors(path, tensors).code(); };
  EXPECT_EQ(code({{"a", DType::kUInt8, {1}, bytes}, {"a", DType::kUInt8, {1}, bytes}}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"a", DType::kUInt8, {2}, bytes}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"a", DType::kUInt8, {-1}, bytes}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"a", DType::kUndefined, {1}, bytes}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"\xff", DType::kUInt8, {1}, bytes}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"__metadata__", DType::kUInt8, {1}, bytes}}), StatusCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace decant::safetensors
