#include "base/file_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace decant {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FileWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "decant-writer-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string at(const char* name) const { return (root_ / name).string(); }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(root_), fs::directory_iterator()));
  }
  fs::path root_;
};

TEST_F(FileWriterTest, AppearsOnCommitOnly) {
  {
    auto writer = FileWriter::create(at("out"));
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->write("abc").ok());
    EXPECT_FALSE(fs::exists(at("out")));
    ASSERT_TRUE(writer->pad_to(8).ok());
    EXPECT_EQ(writer->position(), 8u);
    FileWriter moved = *std::move(writer);
    ASSERT_TRUE(moved.write("d").ok());
    ASSERT_TRUE(moved.commit().ok());
    EXPECT_FALSE(moved.write("late").ok());
    EXPECT_FALSE(moved.commit().ok());
  }
  EXPECT_EQ(entries(), 1u);
  const auto text = read_file(at("out"));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, std::string("abc\0\0\0\0\0d", 9));
}

TEST_F(FileWriterTest, AbandonedLeavesNothing) {
  ASSERT_TRUE(write_file(at("out"), "old").ok());
  {
    auto writer = FileWriter::create(at("out"));
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->write("new").ok());
  }
  EXPECT_EQ(entries(), 1u);
  EXPECT_EQ(*read_file(at("out")), "old");
}

TEST_F(FileWriterTest, ReplacesALinkNotItsTarget) {
  ASSERT_TRUE(write_file(at("target"), "keep").ok());
  fs::create_symlink("target", root_ / "out");
  ASSERT_TRUE(write_file(at("out"), "new").ok());
  EXPECT_EQ(*read_file(at("target")), "keep");
  EXPECT_EQ(*read_file(at("out")), "new");
}

TEST_F(FileWriterTest, RefusesImpossibleNames) {
  EXPECT_FALSE(write_file("", "x").ok());
  EXPECT_FALSE(write_file(at("absent/out"), "x").ok());
  EXPECT_THAT(write_file(root_.string(), "x").message(), HasSubstr("folder"));
}

TEST_F(FileWriterTest, ReadFileHasALimit) {
  ASSERT_TRUE(write_file(at("in"), "12345").ok());
  EXPECT_EQ(*read_file(at("in"), 5), "12345");
  EXPECT_THAT(read_file(at("in"), 4).status().message(), HasSubstr("limit"));
  EXPECT_EQ(read_file(at("absent")).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(read_file(root_.string()).status().message(), HasSubstr("folder"));
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_file(at("pipe")).status().message(), HasSubstr("pipe"));
  const auto proc = read_file("/proc/self/status");  // a file without a size
  ASSERT_TRUE(proc.ok());
  EXPECT_THAT(*proc, HasSubstr("Pid:"));
}

}  // namespace
}  // namespace decant
