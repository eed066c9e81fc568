#include "base/mapped_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/os_error.h"

namespace decant {
namespace {

constexpr int kReadFlags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
constexpr int kMaxLinks = 40;  // as the kernel
constexpr int kMaxComponents = 256;

/// Components of a slash-separated path; empty ones and "." are dropped, ".." is kept.
std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

std::string absolute(const std::vector<std::string>& parts) {
  std::string path;
  for (const std::string& part : parts) path.append("/").append(part);
  return path.empty() ? std::string("/") : path;
}

bool starts_with(const std::vector<std::string>& parts, const std::vector<std::string>& prefix) {
  return parts.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), parts.begin());
}

Status check_location(const std::string& location) {
  std::string reason;
  if (location.empty()) reason = "an empty name";
  if (location.find('\0') != std::string::npos)
    reason = "a name with a NUL byte";
  else if (location.find('\\') != std::string::npos)
    reason = "a name with a backslash";
  else if (location.starts_with('/'))
    reason = "an absolute path";
  else if (location.size() > 1 && location[1] == ':')
    reason = "a path with a drive";
  else if (location.size() > 4096)
    reason = "a path longer than 4096 bytes";
  else if (!location.empty()) {
    const auto parts = split(location);
    if (parts.empty()) reason = "a folder";
    for (const std::string& part : parts) {
      if (part == "..") reason = "a path with \"..\"";
    }
  }
  if (reason.empty()) return ok_status();
  const std::string shown = location.substr(0, std::min<size_t>(location.find('\0'), 200));
  return invalid_model("'" + shown + "' is " + reason +
                       "; a model may only name files inside its own folder");
}

/// Where a walk starts, and which final places (components below the root) it may end in.
struct Root {
  std::vector<std::string> real;   // the root's real absolute path
  std::vector<std::string> start;  // the model's folder, below the root
  std::vector<std::vector<std::string>> allowed;
};

/// The real folder itself, or the repository folder of a hub cache when `real` is .../snapshots/REV[/...] and
/// a blobs folder lies beside snapshots.
Root find_root(const std::vector<std::string>& real) {
  for (size_t i = real.size(); i-- > 0;) {
    if (real[i] != "snapshots" || i + 1 >= real.size()) continue;
    const std::vector<std::string> repository(real.begin(), real.begin() + static_cast<ptrdiff_t>(i));
    struct stat info {};
    if (::lstat((absolute(repository) + "/blobs").c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) continue;
    const std::vector<std::string> start(real.begin() + static_cast<ptrdiff_t>(i), real.end());
    return {repository, start, {start, {"blobs"}}};
  }
  return {real, {}, {{}}};
}

/// Opens the path `parts` below the root one component at a time, so that no link is ever followed by the
/// kernel. Links are resolved here; ".." never leaves the root. Every step is relative to an open folder:
/// renaming or swapping components meanwhile cannot lead out of it.
Result<UniqueFd> walk(const Root& root, const std::vector<std::string>& location, const std::string& shown) {
  const std::string root_path = absolute(root.real);
  const auto leaves = [&] {
    return invalid_model(shown +
                         " is a link that leaves the model's folder; copy the file there if it is trusted");
  };
  std::vector<UniqueFd> folders;
  folders.emplace_back(::open(root_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folders.back()) return os_error(errno, root_path);

  std::vector<std::string> place;                                     // components of the open folders
  std::vector<std::string> todo(location.rbegin(), location.rend());  // next component last
  todo.insert(todo.end(), root.start.rbegin(), root.start.rend());
  int links = 0;
  while (!todo.empty()) {
    const std::string part = std::move(todo.back());
    todo.pop_back();
    if (part == "..") {
      if (place.empty()) return leaves();
      place.pop_back();
      folders.pop_back();
      continue;
    }
    const int parent = folders.back().get();
    UniqueFd fd(::openat(parent, part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) != 0) return os_error(errno, shown);
    if (S_ISLNK(info.st_mode)) {
      std::string target(4096, '\0');
      const ssize_t n = ::readlinkat(fd.get(), "", target.data(), target.size());
      if (n <= 0 || static_cast<size_t>(n) >= target.size() || ++links > kMaxLinks)
        return os_error(ELOOP, shown);
      target.resize(static_cast<size_t>(n));
      std::vector<std::string> steps = split(target);
      if (target.starts_with('/')) {
        if (!starts_with(steps, root.real)) return leaves();
        steps.erase(steps.begin(), steps.begin() + static_cast<ptrdiff_t>(root.real.size()));
        place.clear();
        folders.erase(folders.begin() + 1, folders.end());
      }
      todo.insert(todo.end(), steps.rbegin(), steps.rend());
      continue;
    }
    place.push_back(part);
    if (place.size() + todo.size() > kMaxComponents) return os_error(ENAMETOOLONG, shown);
    if (todo.empty()) {
      bool allowed = false;
      for (const auto& prefix : root.allowed) allowed = allowed || starts_with(place, prefix);
      if (!allowed) return leaves();
      if (!S_ISREG(info.st_mode))
        return invalid_model(shown + " is " + kind_of_file(info.st_mode) + ", not a file");
      UniqueFd file(::openat(parent, part.c_str(), kReadFlags | O_NOFOLLOW));
      if (!file) return os_error(errno, shown);
      return file;
    }
    if (!S_ISDIR(info.st_mode)) return os_error(ENOTDIR, shown);
    folders.push_back(std::move(fd));
  }
  return invalid_model(shown + " is a folder, not a file");
}

/// One system call on Linux 5.6 and newer; empty when it cannot decide (an old kernel, a sandbox, or a link
/// that leaves `folder`, which a hub cache may have).
Result<std::optional<UniqueFd>> open_in_one_call(int folder, const std::string& location,
                                                 const std::string& shown) {
  open_how how{};
  how.flags = kReadFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, folder, location.c_str(), &how, sizeof(how));
  if (fd >= 0) return std::optional<UniqueFd>(UniqueFd(static_cast<int>(fd)));
  if (errno == ENOENT || errno == EACCES || errno == EMFILE || errno == ENFILE) return os_error(errno, shown);
  return std::optional<UniqueFd>();
}

Result<std::vector<std::string>> real_components(const std::string& folder) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(folder.c_str(), nullptr), &std::free);
  if (!real) return os_error(errno, folder);
  return split(real.get());
}

}  // namespace

MappedFile::MappedFile(std::string path, const std::byte* data, size_t size)
    : path_(std::move(path)), data_(data), size_(size) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::map_descriptor(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return os_error(errno, path);
  if (!S_ISREG(info.st_mode))
    return invalid_argument(path + " is " + kind_of_file(info.st_mode) + ", not a file");
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > static_cast<uint64_t>(std::numeric_limits<ptrdiff_t>::max())) {
    return resource_error(path + " is larger than the address space");
  }
  void* data = nullptr;
  if (size > 0) {
    data = ::mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) return os_error(errno, path);
  }
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, static_cast<const std::byte*>(data), static_cast<size_t>(size)));
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  if (path.empty()) return invalid_argument("an empty file name");
  if (path.find('\0') != std::string::npos) return invalid_argument("a file name with a NUL byte");
  const UniqueFd fd(::open(path.c_str(), kReadFlags));
  if (!fd) return os_error(errno, path);
  return map_descriptor(fd.get(), path);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open_beneath(const std::string& folder,
                                                                   const std::string& location,
                                                                   const OpenOptions& options) {
  DECANT_RETURN_IF_ERROR(check_location(location));
  const std::string base = folder.empty() ? "." : folder;
  const std::string shown = (folder.empty() || folder.ends_with('/') ? folder : folder + "/") + location;
  const UniqueFd folder_fd(::open(base.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder_fd) return os_error(errno, base);
  DECANT_ASSIGN(std::optional<UniqueFd> fd, open_in_one_call(folder_fd.get(), location, shown));
  if (!fd) {
    DECANT_ASSIGN(const std::vector<std::string> real, real_components(base));
    DECANT_ASSIGN(fd, walk(find_root(real), split(location), shown));
  }
  struct stat info {};
  if (::fstat(fd->get(), &info) != 0) return os_error(errno, shown);
  if (!S_ISREG(info.st_mode))
    return invalid_model(shown + " is " + kind_of_file(info.st_mode) + ", not a file");
  if (info.st_nlink > 1 && !options.allow_hard_links) {
    return invalid_model(shown + " has " + std::to_string(info.st_nlink) +
                         " hard links and may be a file from elsewhere; copy it, or allow hard links");
  }
  return map_descriptor(fd->get(), shown);
}

void MappedFile::release(std::span<const std::byte> range) const {
  if (data_ == nullptr || range.data() < data_ || range.data() > data_ + size_) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto base = reinterpret_cast<uintptr_t>(data_);
  const auto begin = reinterpret_cast<uintptr_t>(range.data());
  const uintptr_t end = begin + std::min<size_t>(range.size(), base + size_ - begin);
  const uintptr_t first = (begin + page - 1) / page * page;
  // The rest of the last page holds nothing else when the range ends where the file does.
  const uintptr_t last = end == base + size_ ? (end + page - 1) / page * page : end / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace decant
