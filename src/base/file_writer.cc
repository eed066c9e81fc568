#include "base/file_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "base/os_error.h"

namespace decant {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  return path.substr(0, slash + 1);
}

/// Unique enough that a collision is a retry, not a failure: process, moment, count.
std::string temporary_name() {
  static std::atomic<uint64_t> count{0};
  const auto now = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  return ".decant-" + std::to_string(::getpid()) + "-" + std::to_string(now) + "-" + std::to_string(count++) +
         ".tmp";
}

}  // namespace

FileWriter::FileWriter(int fd, std::string temporary, std::string final_path)
    : fd_(fd), temporary_(std::move(temporary)), final_path_(std::move(final_path)) {}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      temporary_(std::exchange(other.temporary_, {})),
      final_path_(std::move(other.final_path_)),
      position_(other.position_) {}

FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<FileWriter> FileWriter::create(const std::string& final_path) {
  if (final_path.empty() || final_path.ends_with('/') || final_path.find('\0') != std::string::npos) {
    return invalid_argument("'" + final_path + "' is no name for a file to write");
  }
  struct stat info {};
  if (::stat(final_path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return invalid_argument(final_path + " is " + kind_of_file(info.st_mode) +
                            ", it cannot be replaced by a file");
  }
  const std::string folder = folder_of(final_path);
  for (int attempt = 0; attempt < 16; ++attempt) {
    std::string temporary = folder + temporary_name();
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd >= 0) return FileWriter(fd, std::move(temporary), final_path);
    if (errno != EEXIST) return os_error(errno, "cannot write " + final_path);
  }
  return os_error(EEXIST, "cannot write " + final_path);
}

Status FileWriter::write(std::span<const std::byte> bytes) {
  if (fd_ < 0) return internal_error(final_path_ + ": write after commit or after an error");
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (n < 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      ::close(std::exchange(fd_, -1));
      return os_error(error, "writing " + final_path_);
    }
    position_ += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return ok_status();
}

Status FileWriter::pad_to(uint64_t alignment) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  if (alignment == 0) return invalid_argument("alignment 0");
  uint64_t missing = (alignment - position_ % alignment) % alignment;
  while (missing > 0) {
    const uint64_t n = std::min<uint64_t>(missing, kZeros.size());
    DECANT_RETURN_IF_ERROR(write(std::span(kZeros).first(n)));
    missing -= n;
  }
  return ok_status();
}

Status FileWriter::commit() {
  if (fd_ < 0) return internal_error(final_path_ + ": commit after commit or after an error");
  const int sync_error = ::fsync(fd_) == 0 ? 0 : errno;
  const int close_error = ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno;
  // File systems without fsync answer EINVAL; there the close is all there is.
  if (sync_error != 0 && sync_error != EINVAL) return os_error(sync_error, "writing " + final_path_);
  if (close_error != 0 && close_error != EINTR) return os_error(close_error, "writing " + final_path_);
  if (::rename(temporary_.c_str(), final_path_.c_str()) != 0)
    return os_error(errno, "writing " + final_path_);
  temporary_.clear();
  const std::string folder = folder_of(final_path_);
  const UniqueFd folder_fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder_fd) (void)::fsync(folder_fd.get());
  return ok_status();
}

Status write_file(const std::string& path, std::string_view text) {
  DECANT_ASSIGN(FileWriter writer, FileWriter::create(path));
  DECANT_RETURN_IF_ERROR(writer.write(text));
  return writer.commit();
}

Result<std::string> read_file(const std::string& path, uint64_t limit) {
  if (path.empty() || path.find('\0') != std::string::npos)
    return invalid_argument("'" + path + "' is no file name");
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd) return os_error(errno, path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return os_error(errno, path);
  if (!S_ISREG(info.st_mode))
    return invalid_argument(path + " is " + kind_of_file(info.st_mode) + ", not a file");
  const auto too_large = [&] {
    return invalid_argument(path + " is larger than the limit of " + std::to_string(limit) + " bytes");
  };
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > limit) return too_large();
  std::string text(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (true) {
    if (done == text.size()) {
      // At the expected end: one more byte tells whether the file has grown (or had no size, as in /proc).
      char extra = 0;
      const ssize_t n = ::read(fd.get(), &extra, 1);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return os_error(errno, path);
      if (n == 0) return text;
      if (done >= limit) return too_large();
      text.push_back(extra);
      text.resize(static_cast<size_t>(std::min<uint64_t>(limit, text.size() + 65536)));
      ++done;
      continue;
    }
    const ssize_t n = ::read(fd.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error(errno, path);
    if (n == 0) {
      text.resize(done);
      return text;
    }
    done += static_cast<size_t>(n);
  }
}

}  // namespace decant
