#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hub/reference.h"

namespace decant::hub {

/// The cache folder that huggingface_hub uses, in its layout: models--owner--name/{blobs,refs,snapshots},
/// where a snapshot's files are links into blobs. Processes may share it.
class Cache {
 public:
  /// HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub.
  static Cache from_environment();
  explicit Cache(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path repository(const Reference& reference) const;
  std::filesystem::path snapshot(const Reference& reference, std::string_view commit) const;
  /// `etag`: the file's sha256 or git blob id.
  std::filesystem::path blob(const Reference& reference, std::string_view etag) const;

  /// The commit that the revision stood for when it was last downloaded, or that it is.
  std::optional<std::string> commit(const Reference& reference) const;
  Status set_commit(const Reference& reference, std::string_view commit) const;

  /// Paths of a snapshot's files whose blobs exist, sorted; empty when there is no such snapshot.
  std::vector<std::string> files(const Reference& reference, std::string_view commit) const;

  /// Makes the snapshot's `file` a relative link to the blob; replaces what was there, at once.
  Status link(const Reference& reference, std::string_view commit, std::string_view file,
              std::string_view etag) const;

 private:
  std::filesystem::path root_;
};

/// An exclusive lock between processes (flock), held for the object's life.
class FileLock {
 public:
  /// Waits for the lock of one blob.
  static Result<FileLock> acquire(const Cache& cache, const Reference& reference, std::string_view etag);
  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace decant::hub
