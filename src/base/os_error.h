#pragma once

#include <string>

#include "base/status.h"

namespace decant {

/// Turns an errno value into a Status "`what`: text". A missing name is kNotFound; lack of memory, disk,
/// handles and read errors are kResource; all else (permissions, wrong kind of file) is kInvalidArgument.
/// Thread-safe.
Status os_error(int error, const std::string& what);

/// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = other.release();
    }
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset();

 private:
  int fd_ = -1;
};

/// "a folder", "a pipe", ...: what a file of this st_mode is, for messages.
std::string kind_of_file(unsigned mode);

}  // namespace decant
