#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace decant {

/// Writes a file under a temporary name beside its final one, and gives it the final name in commit().
/// Without commit() (an error, a kill) nothing with the final name appears, and the destructor removes the
/// temporary file. Not thread-safe.
class FileWriter {
 public:
  ~FileWriter();
  FileWriter(FileWriter&&) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;

  static Result<FileWriter> create(const std::string& final_path);

  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  /// Writes zeros up to the next multiple of `alignment`.
  Status pad_to(uint64_t alignment);
  uint64_t position() const { return position_; }

  /// Flushes to disk and renames. The writer is done afterwards.
  Status commit();

 private:
  FileWriter(int fd, std::string temporary, std::string final_path);
  int fd_ = -1;
  std::string temporary_;
  std::string final_path_;
  uint64_t position_ = 0;
};

/// Whole small file in one call, same guarantee.
Status write_file(const std::string& path, std::string_view text);
/// Whole small file; refuses files above `limit` bytes.
Result<std::string> read_file(const std::string& path, uint64_t limit = uint64_t{1} << 30);

}  // namespace decant
