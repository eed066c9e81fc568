#include "hub/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/file_writer.h"

namespace decant::hub {
namespace fs = std::filesystem;
namespace {

fs::path environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? fs::path(value) : fs::path();
}

std::string folder_name(const Reference& reference) {
  std::string out = "models--" + reference.repository;
  out.replace(out.find('/'), 1, "--");
  return out;
}

Status make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return resource_error(path.string() + ": cannot make the folder: " + error.message());
  return ok_status();
}

}  // namespace

Cache Cache::from_environment() {
  if (fs::path cache = environment("HF_HUB_CACHE"); !cache.empty()) return Cache(cache);
  if (fs::path home = environment("HF_HOME"); !home.empty()) return Cache(home / "hub");
  if (fs::path cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return Cache(cache / "huggingface" / "hub");
  return Cache(environment("HOME") / ".cache" / "huggingface" / "hub");
}

fs::path Cache::repository(const Reference& reference) const { return root_ / folder_name(reference); }
fs::path Cache::snapshot(const Reference& reference, std::string_view commit) const {
  return repository(reference) / "snapshots" / commit;
}
fs::path Cache::blob(const Reference& reference, std::string_view etag) const {
  return repository(reference) / "blobs" / etag;
}

std::optional<std::string> Cache::commit(const Reference& reference) const {
  if (is_hex(reference.revision, 40)) return reference.revision;
  Result<std::string> text = read_file((repository(reference) / "refs" / reference.revision).string(), 256);
  if (!text.ok()) return std::nullopt;
  std::string commit = *std::move(text);
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == ' ')) commit.pop_back();
  return is_hex(commit, 40) ? std::optional(commit) : std::nullopt;
}

Status Cache::set_commit(const Reference& reference, std::string_view commit) const {
  if (is_hex(reference.revision, 40)) return ok_status();
  const fs::path path = repository(reference) / "refs" / reference.revision;
  DECANT_RETURN_IF_ERROR(make_folder(path.parent_path()));
  return write_file(path.string(), commit);
}

std::vector<std::string> Cache::files(const Reference& reference, std::string_view commit) const {
  std::vector<std::string> out;
  const fs::path folder = snapshot(reference, commit);
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code broken;
    if (it->is_regular_file(broken) && !broken)
      out.push_back(it->path().lexically_relative(folder).generic_string());
  }
  std::ranges::sort(out);
  return out;
}

Status Cache::link(const Reference& reference, std::string_view commit, std::string_view file,
                   std::string_view etag) const {
  const fs::path path = snapshot(reference, commit) / file;
  DECANT_RETURN_IF_ERROR(make_folder(path.parent_path()));
  const fs::path target = blob(reference, etag).lexically_relative(path.parent_path());
  const fs::path temporary = path.string() + ".link-" + std::to_string(::getpid());
  std::error_code error;
  fs::remove(temporary, error);
  fs::create_symlink(target, temporary, error);
  if (!error) fs::rename(temporary, path, error);
  if (error)
    return resource_error(path.string() + ": cannot link to " + target.string() + ": " + error.message());
  return ok_status();
}

Result<FileLock> FileLock::acquire(const Cache& cache, const Reference& reference, std::string_view etag) {
  const fs::path folder = cache.root() / ".locks" / folder_name(reference);
  DECANT_RETURN_IF_ERROR(make_folder(folder));
  const fs::path path = folder / (std::string(etag) + ".lock");
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return resource_error(path.string() + ": cannot open the lock: " + std::strerror(errno));
  FileLock lock(fd);
  while (::flock(fd, LOCK_EX) != 0) {
    if (errno != EINTR)
      return resource_error(path.string() + ": cannot take the lock: " + std::strerror(errno));
  }
  return lock;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace decant::hub
