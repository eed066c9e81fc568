#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace decant {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MappedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "decant-mapped-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "model/sub");
    put("secret", "secret");
    put("model/weights.bin", "weights");
    put("model/sub/part.bin", "part");
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const fs::path& name, std::string_view text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  void link(const fs::path& target, const fs::path& name) { fs::create_symlink(target, root_ / name); }

  static std::string text(const Result<std::shared_ptr<const MappedFile>>& file) {
    if (!file.ok()) return "error: " + file.status().to_string();
    const auto bytes = (*file)->bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string beneath(const std::string& location, const OpenOptions& options = {}) {
    return text(MappedFile::open_beneath((root_ / "model").string(), location, options));
  }

  fs::path root_;
};

TEST_F(MappedFileTest, OpensFilesAndFollowsTheUsersLinks) {
  link("model/weights.bin", "alias");
  EXPECT_EQ(text(MappedFile::open((root_ / "alias").string())), "weights");
  put("empty", "");
  const auto empty = MappedFile::open((root_ / "empty").string());
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE((*empty)->bytes().empty());
}

TEST_F(MappedFileTest, RefusesWhatIsNoFile) {
  EXPECT_EQ(MappedFile::open((root_ / "absent").string()).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(text(MappedFile::open(root_.string())), HasSubstr("is a folder"));
  EXPECT_THAT(text(MappedFile::open("")), HasSubstr("empty"));
  EXPECT_THAT(text(MappedFile::open(std::string("a\0b", 3))), HasSubstr("NUL"));
  EXPECT_THAT(text(MappedFile::open("/dev/null")), HasSubstr("is a device"));
  ASSERT_EQ(::mkfifo((root_ / "model/pipe").c_str(), 0600), 0);
  EXPECT_THAT(text(MappedFile::open((root_ / "model/pipe").string())), HasSubstr("is a pipe"));
  EXPECT_THAT(beneath("pipe"), HasSubstr("is a pipe"));
  EXPECT_THAT(beneath("sub"), HasSubstr("is a folder"));
}

TEST_F(MappedFileTest, OpensBeneath) {
  EXPECT_EQ(beneath("weights.bin"), "weights");
  EXPECT_EQ(beneath("./sub//part.bin"), "part");
  EXPECT_THAT(beneath("absent.bin"), HasSubstr("absent.bin"));
  const fs::path before = fs::current_path();
  fs::current_path(root_ / "model");
  EXPECT_EQ(text(MappedFile::open_beneath("", "weights.bin")), "weights");
  fs::current_path(before);
}

TEST_F(MappedFileTest, RefusesLocationsThatCouldLeave) {
  for (const std::string& location :
       {std::string("../secret"), std::string("sub/../../secret"), std::string("sub/../weights.bin"),
        std::string(".."), (root_ / "secret").string(), std::string(""), std::string("sub\\part.bin"),
        std::string("C:weights.bin"), std::string("weights.bin\0.txt", 16), std::string("./")}) {
    const auto file = MappedFile::open_beneath((root_ / "model").string(), location);
    ASSERT_FALSE(file.ok()) << location;
    EXPECT_EQ(file.status().code(), StatusCode::kInvalidModel) << location;
  }
}

TEST_F(MappedFileTest, LinksMayNotLeaveTheFolder) {
  link("weights.bin", "model/inside");
  link("../weights.bin", "model/sub/up_inside");
  link("../secret", "model/outside");
  link("..", "model/parent");
  link(root_ / "secret", "model/absolute");
  link(root_ / "model/weights.bin", "model/absolute_inside");
  link("loop", "model/loop");
  link("/proc/self/root", "model/magic");
  EXPECT_EQ(beneath("inside"), "weights");
  EXPECT_EQ(beneath("sub/up_inside"), "weights");
  EXPECT_EQ(beneath("absolute_inside"), "weights");
  EXPECT_THAT(beneath("outside"), HasSubstr("leaves"));
  EXPECT_THAT(beneath("parent/secret"), HasSubstr("leaves"));
  EXPECT_THAT(beneath("absolute"), HasSubstr("leaves"));
  EXPECT_THAT(beneath("loop"), HasSubstr("error"));
  EXPECT_THAT(beneath("magic/etc/passwd"), HasSubstr("leaves"));
}

TEST_F(MappedFileTest, HardLinksNeedPermission) {
  fs::create_hard_link(root_ / "secret", root_ / "model/hard");
  EXPECT_THAT(beneath("hard"), HasSubstr("hard links"));
  EXPECT_EQ(beneath("hard", {.allow_hard_links = true}), "secret");
}

// The layout of a hub cache: names in snapshots/REV link into blobs.
TEST_F(MappedFileTest, HubSnapshotsReachTheirBlobs) {
  put("hub/models--a--b/blobs/aa11", "graph");
  put("hub/models--a--b/blobs/store/bb22", "data");
  put("hub/models--a--b/snapshots/other/private", "other revision");
  put("hub/models--a--b/refs/main", "rev");
  const fs::path snapshot = "hub/models--a--b/snapshots/rev";
  fs::create_directories(root_ / snapshot / "onnx");
  link("../../blobs/aa11", snapshot / "model.onnx");
  link("../../../blobs/store/bb22", snapshot / "onnx/model.onnx_data");
  link(fs::absolute(root_ / "hub/models--a--b/blobs/aa11"), snapshot / "absolute");
  link("../../refs/main", snapshot / "refs");
  link("../other/private", snapshot / "other");
  link("../../../../secret", snapshot / "outside");
  link("../../blobs/leak", snapshot / "through_blob");
  link("../../../secret", "hub/models--a--b/blobs/leak");

  const auto get = [&](const fs::path& folder, const std::string& name) {
    return text(MappedFile::open_beneath((root_ / folder).string(), name));
  };
  EXPECT_EQ(get(snapshot, "model.onnx"), "graph");
  EXPECT_EQ(get(snapshot, "onnx/model.onnx_data"), "data");
  EXPECT_EQ(get(snapshot / "onnx", "model.onnx_data"), "data");
  EXPECT_EQ(get(snapshot, "absolute"), "graph");
  EXPECT_THAT(get(snapshot, "refs"), HasSubstr("leaves"));
  EXPECT_THAT(get(snapshot, "other"), HasSubstr("leaves"));
  EXPECT_THAT(get(snapshot, "outside"), HasSubstr("leaves"));
  EXPECT_THAT(get(snapshot, "through_blob"), HasSubstr("leaves"));
  link(root_ / snapshot, "shortcut");
  EXPECT_EQ(get("shortcut", "model.onnx"), "graph");
}

TEST_F(MappedFileTest, ReleaseKeepsContents) {
  put("big", std::string(100000, 'x'));
  const auto file = MappedFile::open((root_ / "big").string());
  ASSERT_TRUE(file.ok());
  const auto bytes = (*file)->bytes();
  (*file)->release(bytes.subspan(100, 50000));
  (*file)->release(bytes);
  (*file)->release({});
  EXPECT_EQ(text(file), std::string(100000, 'x'));
}

}  // namespace
}  // namespace decant
