#include "hub/reference.h"

#include <gtest/gtest.h>

namespace decant::hub {
namespace {

TEST(Reference, Parts) {
  const auto plain = parse_reference("hf://owner/name");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->repository, "owner/name");
  EXPECT_EQ(plain->revision, "main");
  EXPECT_EQ(plain->file, "");
  const auto full = parse_reference("hf://Owner-1/na.me_2@refs%2Fpr%2F3/onnx/model_q4.onnx");
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->repository, "Owner-1/na.me_2");
  EXPECT_EQ(full->revision, "refs/pr/3");
  EXPECT_EQ(full->file, "onnx/model_q4.onnx");
}

TEST(Reference, RefusesWhatCouldLeaveTheCache) {
  for (const char* text :
       {"owner/name", "hf://", "hf://owner", "hf://owner/", "hf:///name", "hf://../name", "hf://owner/..",
        "hf://owner/a..b", "hf://owner/a--b", "hf://owner/name@", "hf://owner/name@../x",
        "hf://owner/name@..%2Fx", "hf://owner/name/../x", "hf://owner/name//x", "hf://owner/name/a\\b",
        "hf://owner/name/a\nb", "hf://own er/name"}) {
    EXPECT_FALSE(parse_reference(text).ok()) << text;
  }
}

TEST(Reference, SafePaths) {
  EXPECT_TRUE(is_safe_path("a/b.c"));
  EXPECT_TRUE(is_safe_path("..a/...b"));
  for (const char* path : {"", "/a", "a/", "a//b", ".", "a/./b", "a/../b", "..", "a\\b"})
    EXPECT_FALSE(is_safe_path(path)) << path;
}

}  // namespace
}  // namespace decant::hub
