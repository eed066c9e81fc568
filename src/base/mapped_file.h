#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace decant {

/// How a file named by another file may be reached. Hub caches hold links into a blob store, so links are
/// followed there as long as the target stays below `root`.
struct OpenOptions {
  bool allow_hard_links = false;  ///< accept a link count other than one
};

/// A read-only, private memory map of a regular file. Immutable and thread-safe; pages are read on first
/// touch. Truncating the file while it is mapped faults the process (SIGBUS): do not write models in place.
class MappedFile {
 public:
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// Maps `path` as the user gave it (links are followed). Fails for folders, devices, pipes and empty names.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);

  /// Maps `location`, a relative name read from a file inside `folder`. Refused: absolute names, "..", NUL or
  /// backslash, anything but a regular file, files with several hard links, and links that leave `folder`.
  /// The one exception is a hub snapshot (…/snapshots/REV/ beside …/blobs/), whose links may end in that blob
  /// store.
  static Result<std::shared_ptr<const MappedFile>> open_beneath(const std::string& folder,
                                                                const std::string& location,
                                                                const OpenOptions& options = {});

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  /// Tells the kernel that a range will not be read again soon (streaming writers), so that it leaves
  /// resident memory.
  void release(std::span<const std::byte> range) const;

 private:
  MappedFile(std::string path, const std::byte* data, size_t size);
  static Result<std::shared_ptr<const MappedFile>> map_descriptor(int fd, const std::string& path);

  std::string path_;
  const std::byte* data_;
  size_t size_;
};

}  // namespace decant
