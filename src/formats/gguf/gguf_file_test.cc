#include "formats/gguf/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

namespace decant::gguf {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

/// Writes the pieces of a file, right or wrong.
class Builder {
 public:
  template <typename T>
  Builder& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  Builder& text(std::string_view s) {
    put<uint64_t>(s.size());
    bytes_ += s;
    return *this;
  }
  Builder& header(uint64_t tensors, uint64_t pairs, uint32_t version = 3) {
    bytes_ += "GGUF";
    return put<uint32_t>(version).put<uint64_t>(tensors).put<uint64_t>(pairs);
  }
  Builder& key(std::string_view name, ValueType type) {
    return text(name).put<uint32_t>(static_cast<uint32_t>(type));
  }
  Builder& array(std::string_view name, ValueType element, uint64_t count) {
    return key(name, ValueType::kArray).put<uint32_t>(static_cast<uint32_t>(element)).put<uint64_t>(count);
  }
  Builder& tensor(std::string_view name, std::vector<uint64_t> dims, uint32_t type, uint64_t offset) {
    text(name).put<uint32_t>(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) put(dim);
    return put(type).put(offset);
  }
  Builder& pad(size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  Builder& zeros(size_t count) {
    bytes_.append(count, '\0');
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class GgufTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "decant-gguf-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  Result<std::shared_ptr<const GgufFile>> open(const std::string& bytes, const std::string& name = "m.gguf") {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
    return GgufFile::open((root_ / name).string());
  }
  std::string error(const Builder& builder) {
    const auto file = open(builder.bytes());
    return file.ok() ? "no error" : file.status().to_string();
  }
  fs::path root_;
};

/// A model with a pair of each type and two tensors.
Builder good(uint32_t version = 3) {
  Builder b;
  b.header(2, 15, version);
  b.key("general.architecture", ValueType::kString).text("llama");
  b.key("u8", ValueType::kUInt8).put<uint8_t>(200);
  b.key("i8", ValueType::kInt8).put<int8_t>(-5);
  b.key("u16", ValueType::kUInt16).put<uint16_t>(60000);
  b.key("i16", ValueType::kInt16).put<int16_t>(-300);
  b.key("u32", ValueType::kUInt32).put<uint32_t>(4000000000u);
  b.key("i32", ValueType::kInt32).put<int32_t>(-7);
  b.key("f32", ValueType::kFloat32).put<float>(0.5f);
  b.key("yes", ValueType::kBool).put<uint8_t>(1);
  b.key("odd", ValueType::kBool).put<uint8_t>(2);
  b.key("u64", ValueType::kUInt64).put<uint64_t>(~uint64_t{0});
  b.key("f64", ValueType::kFloat64).put<double>(0.1);
  b.array("words", ValueType::kString, 3).text("a").text("").text("bc");
  b.array("ints", ValueType::kInt32, 2).put<int32_t>(-1).put<int32_t>(9);
  b.array("floats", ValueType::kFloat32, 2).put<float>(1.5f).put<float>(-2.0f);
  b.tensor("w", {4, 2}, 0, 0);    // F32, numpy shape [2, 4]
  b.tensor("q", {32, 3}, 2, 32);  // Q4_0, numpy shape [3, 32]
  b.pad();
  for (int i = 0; i < 8; ++i) b.put<float>(static_cast<float>(i));
  b.zeros(3 * 18);
  return b;
}

TEST_F(GgufTest, ReadsMetadataAndTensors) {
  for (const uint32_t version : {2u, 3u}) {
    const auto opened = open(good(version).bytes());
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    const GgufFile& file = **opened;
    EXPECT_EQ(file.version(), version);
    EXPECT_EQ(*file.get_string("general.architecture"), "llama");
    EXPECT_EQ(*file.get_u64("u8"), 200u);
    EXPECT_EQ(*file.get_i64("i8"), -5);
    EXPECT_EQ(*file.get_u64("u16"), 60000u);
    EXPECT_EQ(*file.get_i64("i16"), -300);
    EXPECT_EQ(*file.get_u64("u32"), 4000000000u);
    EXPECT_EQ(*file.get_f64("f32"), 0.5);
    EXPECT_EQ(*file.get_f64("i32"), -7.0);
    EXPECT_EQ(*file.get_f64("f64"), 0.1);
    EXPECT_EQ(*file.get_u64("u64"), ~uint64_t{0});
    EXPECT_TRUE(*file.get_bool("yes"));
    EXPECT_THAT(*file.get_strings("words"), ElementsAre("a", "", "bc"));
    EXPECT_THAT(*file.get_ints("ints"), ElementsAre(-1, 9));
    EXPECT_THAT(*file.get_floats("floats"), ElementsAre(1.5f, -2.0f));
    EXPECT_EQ(*file.array_size("words"), 3u);
    EXPECT_EQ(file.keys().size(), 15u);
    EXPECT_EQ(*file.get_u64("absent", 7), 7u);

    ASSERT_EQ(file.tensors().size(), 2u);
    const Tensor* w = file.find("w");
    ASSERT_NE(w, nullptr);
    EXPECT_THAT(w->dims, ElementsAre(2, 4));
    EXPECT_EQ(w->bytes.size(), 32u);
    float last = 0;
    std::memcpy(&last, w->bytes.data() + 28, 4);
    EXPECT_EQ(last, 7.0f);
    const Tensor* q = file.find("q");
    ASSERT_NE(q, nullptr);
    EXPECT_EQ(q->encoding, Encoding::kQ4_0);
    EXPECT_THAT(q->dims, ElementsAre(3, 32));
    EXPECT_EQ(q->bytes.size(), 54u);
    EXPECT_EQ(file.find("absent"), nullptr);
  }
}

TEST_F(GgufTest, AccessorsCheckTypes) {
  const auto opened = open(good().bytes());
  ASSERT_TRUE(opened.ok());
  const GgufFile& file = **opened;
  EXPECT_EQ(file.get_u64("absent").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(file.get_u64("i8").status().code(), StatusCode::kInvalidModel);
  EXPECT_FALSE(file.get_u64("f32").ok());
  EXPECT_FALSE(file.get_u64("f32", 3).ok());
  EXPECT_FALSE(file.get_u64("yes").ok());
  EXPECT_FALSE(file.get_i64("u64").ok());
  EXPECT_FALSE(file.get_bool("u8").ok());
  EXPECT_FALSE(file.get_bool("odd").ok());
  EXPECT_FALSE(file.get_f64("words").ok());
  EXPECT_FALSE(file.get_string("words").ok());
  EXPECT_FALSE(file.get_strings("ints").ok());
  EXPECT_FALSE(file.get_strings("general.architecture").ok());
  EXPECT_FALSE(file.get_ints("floats").ok());
  EXPECT_FALSE(file.get_floats("ints").ok());
  EXPECT_FALSE(file.array_size("u8").ok());
  EXPECT_THAT(file.get_floats("words").status().message(), HasSubstr("array of string"));
}

TEST_F(GgufTest, RefusesOtherFormats) {
  EXPECT_THAT(error(Builder()), HasSubstr("not a GGUF"));
  EXPECT_THAT(error(Builder().header(0, 0, 1)), HasSubstr("version 1"));
  EXPECT_THAT(error(Builder().header(0, 0, 4)), HasSubstr("version 4"));
  EXPECT_THAT(error(Builder().header(0, 0, 3u << 24)), HasSubstr("byte order"));
  EXPECT_EQ(error(Builder().header(0, 0)), "no error");
}

TEST_F(GgufTest, RefusesLyingCounts) {
  constexpr uint64_t kHuge = uint64_t{1} << 60;
  EXPECT_THAT(error(Builder().header(kHuge, 0)), HasSubstr("announces"));
  EXPECT_THAT(error(Builder().header(0, kHuge)), HasSubstr("announces"));
  EXPECT_THAT(error(Builder().header(0, 1).put(kHuge).zeros(64)), HasSubstr("ends inside"));
  EXPECT_THAT(error(Builder().header(0, 1).key("s", ValueType::kString).put(kHuge).zeros(64)),
              HasSubstr("'s'"));
  EXPECT_THAT(error(Builder().header(0, 1).array("a", ValueType::kInt64, kHuge).zeros(64)), HasSubstr("'a'"));
  EXPECT_THAT(error(Builder().header(0, 1).array("a", ValueType::kInt64, (kHuge << 1) + 1).zeros(64)),
              HasSubstr("'a'"));
  EXPECT_THAT(error(Builder().header(0, 1).array("a", ValueType::kString, kHuge).zeros(64)),
              HasSubstr("'a'"));
  EXPECT_THAT(error(Builder().header(0, 1).array("a", ValueType::kArray, 1).zeros(64)),
              HasSubstr("array of arrays"));
  EXPECT_THAT(error(Builder().header(0, 1).key("t", static_cast<ValueType>(13)).zeros(64)),
              HasSubstr("type 13"));
  EXPECT_THAT(error(Builder().header(0, 1).key("", ValueType::kUInt8).zeros(64)), HasSubstr("0 bytes"));
  Builder twice;
  twice.header(0, 2).key("k", ValueType::kUInt8).put<uint8_t>(1).key("k", ValueType::kUInt8).put<uint8_t>(1);
  EXPECT_THAT(error(twice), HasSubstr("twice"));
}

TEST_F(GgufTest, RefusesBadAlignment) {
  const auto with = [](uint32_t alignment) {
    return Builder().header(0, 1).key("general.alignment", ValueType::kUInt32).put(alignment);
  };
  EXPECT_THAT(error(with(0)), HasSubstr("power of two"));
  EXPECT_THAT(error(with(24)), HasSubstr("power of two"));
  EXPECT_THAT(error(with(1u << 31)), HasSubstr("power of two"));
  EXPECT_EQ(error(with(64)), "no error");
  EXPECT_THAT(error(Builder().header(0, 1).key("general.alignment", ValueType::kUInt64).put<uint64_t>(32)),
              HasSubstr("uint64"));
}

TEST_F(GgufTest, RefusesBadTensors) {
  const auto with = [](std::vector<uint64_t> dims, uint32_t type, uint64_t offset, size_t data = 4096) {
    return Builder().header(1, 0).tensor("t", std::move(dims), type, offset).pad().zeros(data);
  };
  EXPECT_EQ(error(with({32}, 2, 0)), "no error");
  EXPECT_EQ(error(with({}, 0, 0)), "no error");
  EXPECT_THAT(error(with({0}, 0, 0)), HasSubstr("dimension 0 is 0"));
  EXPECT_THAT(error(with({uint64_t{1} << 63}, 0, 0)), HasSubstr("dimension 0"));
  EXPECT_THAT(error(with({uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0)), HasSubstr("2^48"));
  EXPECT_THAT(error(with({1, 1, 1, 1, 1}, 0, 0)), HasSubstr("5 dimensions"));
  EXPECT_THAT(error(with({33}, 2, 0)), HasSubstr("whole blocks of Q4_0"));
  EXPECT_THAT(error(with({32, 8}, 12, 0)), HasSubstr("whole blocks of Q4_K"));
  EXPECT_THAT(error(with({32}, 20, 0)), HasSubstr("'t' is stored as IQ4_NL"));
  EXPECT_THAT(error(with({32}, 4, 0)), HasSubstr("type 4"));
  EXPECT_THAT(error(with({32}, 999, 0)), HasSubstr("type 999"));
  EXPECT_THAT(error(with({8}, 0, 16)), HasSubstr("multiple of 32"));
  EXPECT_THAT(error(with({8}, 0, 4096)), HasSubstr("pass the end"));
  EXPECT_THAT(error(with({8}, 0, ~uint64_t{0} - 31)), HasSubstr("pass the end"));
  EXPECT_THAT(error(with({2048}, 0, 0)), HasSubstr("pass the end"));
  EXPECT_THAT(error(Builder().header(2, 0).tensor("a", {8}, 0, 0).tensor("a", {8}, 0, 32).pad().zeros(64)),
              HasSubstr("twice"));
  EXPECT_THAT(error(Builder().header(2, 0).tensor("a", {16}, 0, 0).tensor("b", {8}, 0, 32).pad().zeros(64)),
              HasSubstr("overlap"));
}

TEST_F(GgufTest, EveryTruncationIsAnError) {
  const std::string bytes = good().bytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto file = open(bytes.substr(0, length));
    ASSERT_FALSE(file.ok()) << length;
    ASSERT_THAT(file.status().message(), HasSubstr("m.gguf"));
  }
}

TEST_F(GgufTest, RandomCorruptionNeverCrashes) {
  const std::string bytes = good().bytes();
  std::mt19937 random(7);
  for (int round = 0; round < 600; ++round) {
    std::string bad = bytes;
    for (unsigned i = 0; i <= random() % 4; ++i) bad[random() % bad.size()] = static_cast<char>(random());
    const auto file = open(bad);
    if (!file.ok()) continue;
    for (const auto key : (*file)->keys()) {
      (void)(*file)->get_u64(key);
      (void)(*file)->get_strings(key);
      (void)(*file)->get_ints(key);
      (void)(*file)->get_floats(key);
      (void)(*file)->get_bool(key);
    }
    for (const Tensor& tensor : (*file)->tensors()) {
      unsigned sum = 0;
      for (const std::byte b : tensor.bytes) sum += std::to_integer<unsigned>(b);
      ASSERT_LE(sum, 255u * tensor.bytes.size());
    }
  }
}

TEST_F(GgufTest, SplitSets) {
  const auto part = [](uint16_t number, uint16_t count, std::string_view tensor) {
    Builder b;
    b.header(1, 3);
    b.key("split.no", ValueType::kUInt16).put(number);
    b.key("split.count", ValueType::kUInt16).put(count);
    b.key("split.tensors.count", ValueType::kInt32).put<int32_t>(2);
    return b.tensor(tensor, {8}, 0, 0).pad().zeros(32).bytes();
  };
  EXPECT_THAT(open(part(0, 2, "a"), "m-00001-of-00002.gguf").status().message(),
              HasSubstr("m-00002-of-00002.gguf"));
  EXPECT_THAT(open(part(1, 2, "b"), "m-00002-of-00002.gguf").status().message(),
              HasSubstr("open the first part"));
  EXPECT_THAT(open(part(0, 2, "a"), "other.gguf").status().message(), HasSubstr("open the first part"));
  const auto file = open(part(0, 2, "a"), "m-00001-of-00002.gguf");
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  EXPECT_EQ((*file)->tensors().size(), 2u);
  EXPECT_NE((*file)->find("b"), nullptr);
  ASSERT_FALSE(open(part(1, 2, "a"), "m-00002-of-00002.gguf").ok());
  EXPECT_THAT(open(part(0, 2, "a"), "m-00001-of-00002.gguf").status().message(), HasSubstr("twice"));
  ASSERT_FALSE(open(part(0, 2, "b"), "m-00002-of-00002.gguf").ok());
  EXPECT_THAT(open(part(0, 2, "a"), "m-00001-of-00002.gguf").status().message(), HasSubstr("part 1 of 2"));
}

}  // namespace
}  // namespace decant::gguf
