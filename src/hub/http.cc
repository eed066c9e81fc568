#include "hub/http.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "base/file_writer.h"

namespace decant::hub {
namespace {

constexpr int kTries = 5;
constexpr size_t kLargestDocument = size_t{64} << 20;
constexpr int64_t kLongestWait = 60;  // seconds; a Retry-After above this fails at once

struct CurlDelete {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Curl = std::unique_ptr<CURL, CurlDelete>;
using Headers = std::unique_ptr<curl_slist, CurlDelete>;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

/// What one try writes to: a document in memory or an open file.
struct Sink {
  CURL* curl = nullptr;
  std::string* body = nullptr;
  int fd = -1;
  int64_t position = 0, size = 0;
  const Progress* progress = nullptr;
  bool checked = false;  ///< the status code was looked at
  std::string error;

  /// False ends the transfer.
  bool take(const char* data, size_t n) {
    if (body) {
      if (body->size() + n > kLargestDocument) return refuse("the answer is larger than 64 MiB");
      body->append(data, n);
      return true;
    }
    if (!checked && !start()) return false;
    if (position + static_cast<int64_t>(n) > size)
      return refuse("the server sends more than the " + std::to_string(size) + " bytes it announced");
    while (n > 0) {
      const ssize_t written = ::write(fd, data, n);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return refuse(std::string("cannot write: ") + std::strerror(errno));
      data += written;
      n -= static_cast<size_t>(written);
      position += written;
      if (*progress) (*progress)(written);
    }
    return true;
  }

  bool refuse(std::string why) {
    error = std::move(why);
    return false;
  }

  /// A server that ignores the range sends the file from its start.
  bool start() {
    checked = true;
    long code = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    if (code != 206 && position > 0) {
      if (::ftruncate(fd, 0) != 0 || ::lseek(fd, 0, SEEK_SET) != 0)
        return refuse(std::string("cannot start over: ") + std::strerror(errno));
      if (*progress) (*progress)(-position);
      position = 0;
    }
    return true;
  }
};

size_t on_data(char* data, size_t size, size_t count, void* user) {
  return static_cast<Sink*>(user)->take(data, size * count) ? size * count : 0;
}

struct Try {
  CURLcode code = CURLE_OK;
  long http = 0;
  int64_t retry_after = 0;
  std::string detail;
};

Try perform(const Endpoint& endpoint, const std::string& url, Sink& sink) {
  static std::once_flag initialized;
  std::call_once(initialized, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  Try result;
  const Curl curl(curl_easy_init());
  if (!curl) return {CURLE_OUT_OF_MEMORY, 0, 0, "libcurl cannot start"};
  sink.curl = curl.get();
  char detail[CURL_ERROR_SIZE] = "";
  Headers headers;
  if (!endpoint.token.empty())
    headers.reset(curl_slist_append(nullptr, ("Authorization: Bearer " + endpoint.token).c_str()));
  const char* protocols = endpoint.url.starts_with("http://") ? "http,https" : "https";
  CURL* c = curl.get();
  curl_easy_setopt(c, CURLOPT_URL, url.c_str());
  curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(c, CURLOPT_USERAGENT, "decant");
  curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(c, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, protocols);
  curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
  curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 10L);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);  // a stall of 30 seconds counts as a cut
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, 30L);
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, &on_data);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &sink);
  // Not CURLOPT_RESUME_FROM, with which a server that ignores ranges is an error.
  const std::string range = std::to_string(sink.position) + "-";
  if (!sink.body && sink.position > 0) curl_easy_setopt(c, CURLOPT_RANGE, range.c_str());
  result.code = curl_easy_perform(c);
  curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &result.http);
  curl_off_t wait = 0;
  curl_easy_getinfo(c, CURLINFO_RETRY_AFTER, &wait);
  result.retry_after = wait;
  result.detail = !sink.error.empty() ? sink.error : *detail ? detail : curl_easy_strerror(result.code);
  return result;
}

bool worth_retrying(const Try& t) {
  if (t.http == 429 || t.http >= 500) return true;
  switch (t.code) {
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_COULDNT_CONNECT:
      return true;
    default:
      return false;
  }
}

/// Between tries: as the server asks, else 0.5, 1, 2, 4 seconds.
bool wait_before(int next_try, const Try& t) {
  if (t.retry_after > kLongestWait) return false;
  const auto pause = t.retry_after > 0 ? std::chrono::milliseconds(1000 * t.retry_after)
                                       : std::chrono::milliseconds(500 << (next_try - 1));
  std::this_thread::sleep_for(pause);
  return true;
}

Failure failure_of(const Try& t) {
  if (t.http == 401 || t.http == 403) return Failure::kDenied;
  if (t.http == 404) return Failure::kMissing;
  if (t.code == CURLE_COULDNT_CONNECT || t.code == CURLE_COULDNT_RESOLVE_HOST ||
      t.code == CURLE_COULDNT_RESOLVE_PROXY || (t.code == CURLE_OPERATION_TIMEDOUT && t.http == 0))
    return Failure::kUnreachable;
  return Failure::kOther;
}

Status status_of(const Endpoint& endpoint, const std::string& url, const Try& t) {
  switch (failure_of(t)) {
    case Failure::kDenied:
      return not_found(
          url + ": access denied (HTTP " + std::to_string(t.http) + "); " +
          (endpoint.token.empty()
               ? "a private or gated model, or none of this name: set HF_TOKEN"
               : "the token in use may not read it: accept the model's terms, or use another HF_TOKEN"));
    case Failure::kMissing:
      return not_found(url + ": not found (HTTP 404); check the owner, the name, the revision and the file");
    case Failure::kUnreachable:
      return resource_error(url + ": cannot be reached: " + t.detail +
                            "; set HF_HUB_OFFLINE=1 to use the cache only");
    default:
      break;
  }
  if (t.http == 429) {
    return resource_error(
        url + ": too many requests (HTTP 429)" +
        (t.retry_after > 0 ? "; the server asks to wait " + std::to_string(t.retry_after) + " s" : ""));
  }
  return resource_error(url + ": " + (t.http >= 400 ? "HTTP " + std::to_string(t.http) + ": " : "") +
                        t.detail);
}

}  // namespace

Endpoint Endpoint::from_environment() {
  Endpoint out;
  if (std::string url = environment("HF_ENDPOINT"); !url.empty()) out.url = url;
  while (out.url.ends_with('/')) out.url.pop_back();
  out.token = trimmed(environment("HF_TOKEN"));
  if (out.token.empty()) {
    std::string home = environment("HF_HOME");
    if (home.empty()) home = environment("HOME") + "/.cache/huggingface";
    if (Result<std::string> token = read_file(home + "/token", 4096); token.ok()) out.token = trimmed(*token);
  }
  // A line break would add headers to the request.
  if (out.token.find_first_of("\r\n") != std::string::npos) out.token.clear();
  std::string offline = environment("HF_HUB_OFFLINE");
  std::ranges::transform(offline, offline.begin(), [](unsigned char c) { return std::toupper(c); });
  out.offline = offline == "1" || offline == "TRUE" || offline == "YES" || offline == "ON";
  return out;
}

std::string escape_path(std::string_view path) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const unsigned char c : path) {
    if (std::isalnum(c) || c == '/' || c == '-' || c == '_' || c == '.' || c == '~') {
      out += static_cast<char>(c);
    } else {
      out += {'%', kDigits[c >> 4], kDigits[c & 15]};
    }
  }
  return out;
}

Response get(const Endpoint& endpoint, const std::string& url) {
  Response out;
  for (int tries = 1;; ++tries) {
    out.body.clear();
    Sink sink;
    sink.body = &out.body;
    const Try t = perform(endpoint, url, sink);
    if (t.code == CURLE_OK) return out;
    const bool again = tries < kTries && worth_retrying(t) && t.code != CURLE_COULDNT_CONNECT;
    if (again && wait_before(tries, t)) continue;
    return {status_of(endpoint, url, t), failure_of(t), ""};
  }
}

Status download(const Endpoint& endpoint, const std::string& url, const std::string& path, int64_t size,
                const Progress& progress) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return resource_error(path + ": cannot be written: " + std::strerror(errno));
  const auto close_at_end =
      std::unique_ptr<const int, void (*)(const int*)>(&fd, [](const int* f) { ::close(*f); });

  Sink sink;
  sink.fd = fd;
  sink.size = size;
  sink.progress = &progress;
  sink.position = ::lseek(fd, 0, SEEK_END);
  if (sink.position > size) {
    if (::ftruncate(fd, 0) != 0) return resource_error(path + ": cannot start over: " + std::strerror(errno));
    sink.position = ::lseek(fd, 0, SEEK_SET);
  }
  if (progress && sink.position > 0) progress(sink.position);
  for (int tries = 1; sink.position < size;) {
    const int64_t before = sink.position;
    sink.checked = false;
    const Try t = perform(endpoint, url, sink);
    if (!sink.error.empty()) return resource_error(path + ": " + url + ": " + sink.error);
    if (t.code == CURLE_OK && sink.position == size) break;
    if (t.code == CURLE_OK) {
      return resource_error(url + ": " + std::to_string(sink.position) + " bytes came instead of the " +
                            std::to_string(size) + " announced");
    }
    if (sink.position > before) tries = 0;  // a cut after some progress
    if (++tries > kTries || !worth_retrying(t) || !wait_before(std::max(tries - 1, 1), t))
      return status_of(endpoint, url, t);
  }
  if (::fsync(fd) != 0) return resource_error(path + ": cannot be written: " + std::strerror(errno));
  return ok_status();
}

}  // namespace decant::hub
