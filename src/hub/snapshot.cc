#include "hub/snapshot.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <nlohmann/json.hpp>

#include "hub/digest.h"

namespace decant::hub {
namespace fs = std::filesystem;
namespace {

struct RemoteFile {
  std::string path;
  std::string etag;  ///< sha256 of large files, git blob id of others: the blob's name in the cache
  int64_t size = 0;
};

struct Listing {
  std::string commit;
  std::map<std::string, RemoteFile> files;
  std::vector<std::string> paths() const {
    std::vector<std::string> out;
    for (const auto& [path, file] : files) out.push_back(path);
    return out;
  }
};

Result<Listing> parse_listing(const std::string& url, const std::string& body) {
  using nlohmann::json;
  const json root = json::parse(body, nullptr, /*allow_exceptions=*/false);
  const auto broken = [&](const std::string& what) {
    return invalid_model(url + ": the hub's answer " + what);
  };
  if (!root.is_object() || !root.contains("sha") || !root["sha"].is_string()) return broken("has no commit");
  Listing out;
  out.commit = root["sha"].get<std::string>();
  if (!is_hex(out.commit, 40)) return broken("has a commit that is not 40 hex digits");
  if (!root.contains("siblings") || !root["siblings"].is_array()) return broken("lists no files");
  for (const json& entry : root["siblings"]) {
    if (!entry.is_object() || !entry.contains("rfilename") || !entry["rfilename"].is_string())
      return broken("lists a file without a name");
    RemoteFile file{entry["rfilename"].get<std::string>(), "", 0};
    if (!is_safe_path(file.path)) return broken("lists the unsafe path '" + file.path + "'");
    const json lfs = entry.value("lfs", json());
    const json& sized = lfs.is_object() && lfs.contains("size") ? lfs : entry;
    if (lfs.is_object() && lfs.contains("sha256") && lfs["sha256"].is_string()) {
      file.etag = lfs["sha256"].get<std::string>();
    } else if (entry.contains("blobId") && entry["blobId"].is_string()) {
      file.etag = entry["blobId"].get<std::string>();
    }
    if (!is_hex(file.etag, 64) && !is_hex(file.etag, 40)) return broken("gives '" + file.path + "' no hash");
    if (!sized.contains("size") || !sized["size"].is_number_integer() || sized["size"].get<int64_t>() < 0)
      return broken("gives '" + file.path + "' no size");
    file.size = sized["size"].get<int64_t>();
    out.files.emplace(file.path, file);
  }
  return out;
}

/// The chosen files, those they name, and whatever those name, in that order.
Result<std::vector<std::string>> with_followed(std::vector<std::string> wanted, const fs::path& folder,
                                               const Follow& follow) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    DECANT_ASSIGN(const std::vector<std::string> more, follow(wanted[i], (folder / wanted[i]).string()));
    for (const std::string& file : more) {
      if (std::ranges::find(wanted, file) == wanted.end()) wanted.push_back(file);
    }
  }
  return wanted;
}

/// Whether the cache alone can serve: its folder, or the reason why not.
Result<std::string> from_cache(const Reference& reference, const Choose& choose, const Follow& follow,
                               const Cache& cache) {
  const std::optional<std::string> commit = cache.commit(reference);
  if (!commit)
    return not_found("hf://" + reference.repository + ": revision '" + reference.revision +
                     "' is not cached");
  const std::vector<std::string> files = cache.files(reference, *commit);
  const fs::path folder = cache.snapshot(reference, *commit);
  DECANT_ASSIGN(std::vector<std::string> wanted, choose(files));
  DECANT_ASSIGN(wanted, with_followed(std::move(wanted), folder, follow));
  for (const std::string& file : wanted) {
    if (!std::ranges::binary_search(files, file))
      return not_found(folder.string() + ": '" + file + "' is not in the cache");
  }
  return folder.string();
}

class Download {
 public:
  Download(const Reference& reference, const Listing& listing, const SnapshotOptions& options)
      : reference_(reference), listing_(listing), options_(options) {}

  /// Fetches the blobs of these files, then links them in order.
  Status fetch(const std::vector<std::string>& paths) {
    std::vector<const RemoteFile*> files;
    for (const std::string& path : paths) {
      const auto it = listing_.files.find(path);
      if (it == listing_.files.end())
        return not_found("hf://" + reference_.repository + ": no file '" + path + "' at revision " +
                         reference_.revision);
      if (done_.insert(path).second) files.push_back(&it->second);
    }
    for (const RemoteFile* file : files) total_ += file->size;
    std::atomic<size_t> next = 0;
    std::mutex mutex;
    Status first;
    const auto work = [&] {
      for (size_t i = next++; i < files.size(); i = next++) {
        Status status = fetch_blob(*files[i]);
        if (status.ok()) continue;
        const std::lock_guard lock(mutex);
        if (first.ok()) first = std::move(status);
        next = files.size();
      }
    };
    std::vector<std::thread> threads;
    const size_t count =
        std::min<size_t>(files.size(), static_cast<size_t>(std::max(options_.connections, 1)));
    for (size_t i = 1; i < count; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    DECANT_RETURN_IF_ERROR(std::move(first));
    for (const RemoteFile* file : files)
      DECANT_RETURN_IF_ERROR(options_.cache.link(reference_, listing_.commit, file->path, file->etag));
    return ok_status();
  }

 private:
  void report(int64_t bytes) {
    if (!options_.on_progress) return;
    const std::lock_guard lock(progress_mutex_);
    arrived_ += bytes;
    options_.on_progress(arrived_, total_);
  }

  Status fetch_blob(const RemoteFile& file) {
    const fs::path blob = options_.cache.blob(reference_, file.etag);
    std::error_code error;
    fs::create_directories(blob.parent_path(), error);
    if (error)
      return resource_error(blob.parent_path().string() + ": cannot make the folder: " + error.message());
    if (fs::exists(blob, error)) {
      report(file.size);
      return ok_status();
    }
    DECANT_ASSIGN(const FileLock lock, FileLock::acquire(options_.cache, reference_, file.etag));
    if (fs::exists(blob, error)) {  // another process was faster
      report(file.size);
      return ok_status();
    }
    const std::string partial = blob.string() + ".incomplete";
    const std::string url = options_.endpoint.url + "/" + reference_.repository + "/resolve/" +
                            listing_.commit + "/" + escape_path(file.path);
    int64_t arrived = 0;
    const auto progress = [&](int64_t bytes) {
      arrived += bytes;
      report(bytes);
    };
    // What an older try left may be of another content: start over once.
    for (const bool last : {false, true}) {
      DECANT_RETURN_IF_ERROR(download(options_.endpoint, url, partial, file.size, progress));
      DECANT_ASSIGN(const std::string found,
                    digest_of_file(partial, file.etag.size() == 64 ? Digest::kSha256 : Digest::kGitBlob));
      if (found == file.etag) break;
      fs::remove(partial, error);
      report(-arrived);
      arrived = 0;
      if (last) {
        return invalid_model(url + ": the downloaded bytes have the hash " + found + ", not the announced " +
                             file.etag + "; nothing was kept");
      }
    }
    fs::rename(partial, blob, error);
    if (error) return resource_error(blob.string() + ": cannot take its name: " + error.message());
    return ok_status();
  }

  const Reference& reference_;
  const Listing& listing_;
  const SnapshotOptions& options_;
  std::set<std::string> done_;
  std::mutex progress_mutex_;
  int64_t arrived_ = 0, total_ = 0;
};

}  // namespace

Result<std::string> snapshot(const Reference& reference, const Choose& choose, const Follow& follow,
                             const SnapshotOptions& options) {
  Result<std::string> cached = from_cache(reference, choose, follow, options.cache);
  if (cached.ok()) return cached;
  if (options.endpoint.offline) {
    return not_found(cached.status().message() + "; HF_HUB_OFFLINE forbids to download it into " +
                     options.cache.root().string());
  }
  const std::string url = options.endpoint.url + "/api/models/" + reference.repository + "/revision/" +
                          escape_path(reference.revision) + "?blobs=true";
  Response answer = get(options.endpoint, url);
  DECANT_RETURN_IF_ERROR(std::move(answer.status));
  DECANT_ASSIGN(const Listing listing, parse_listing(url, answer.body));

  Download download(reference, listing, options);
  const fs::path folder = options.cache.snapshot(reference, listing.commit);
  DECANT_ASSIGN(std::vector<std::string> wanted, choose(listing.paths()));
  for (size_t known = 0; known < wanted.size();) {
    DECANT_RETURN_IF_ERROR(
        download.fetch({wanted.begin() + static_cast<std::ptrdiff_t>(known), wanted.end()}));
    known = wanted.size();
    DECANT_ASSIGN(wanted, with_followed(std::move(wanted), folder, follow));
  }
  DECANT_RETURN_IF_ERROR(options.cache.set_commit(reference, listing.commit));
  return folder.string();
}

}  // namespace decant::hub
