#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace decant::hub {

/// Where and as whom requests are made.
struct Endpoint {
  std::string url = "https://huggingface.co";
  std::string token;  ///< empty: anonymous
  bool offline = false;
  /// HF_ENDPOINT, HF_TOKEN (else the token file of HF_HOME), HF_HUB_OFFLINE.
  static Endpoint from_environment();
};

/// Percent-encodes everything but unreserved characters and '/'.
std::string escape_path(std::string_view path);

/// Why a request failed, beyond its message.
enum class Failure { kNone, kUnreachable, kDenied, kMissing, kOther };

struct Response {
  Status status;
  Failure failure = Failure::kNone;
  std::string body;
};

/// GET of a small document (at most 64 MiB), with retries. Thread-safe.
Response get(const Endpoint& endpoint, const std::string& url);

/// Called from the downloading thread with the bytes that arrived (negative when a partial file was dropped).
using Progress = std::function<void(int64_t bytes)>;

/// GET into a file: continues one that an earlier try left, retries after cuts, 429 (as Retry-After says) and
/// 5xx, follows redirects without handing the token to other hosts, and never writes above `size` bytes. On
/// success the file has exactly `size` bytes; on failure it keeps what arrived. Thread-safe for different
/// files.
Status download(const Endpoint& endpoint, const std::string& url, const std::string& path, int64_t size,
                const Progress& progress);

}  // namespace decant::hub
