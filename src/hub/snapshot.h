#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hub/cache.h"
#include "hub/http.h"
#include "hub/reference.h"

namespace decant::hub {

/// Picks the files an operation needs from a repository's (or a cached snapshot's) paths. An error means that
/// the wanted ones are not there.
using Choose = std::function<Result<std::vector<std::string>>(const std::vector<std::string>& files)>;

/// Paths of further files that a file which is there names (an ONNX graph's external data), relative to the
/// repository. `local` is its path on disk.
using Follow =
    std::function<Result<std::vector<std::string>>(const std::string& file, const std::string& local)>;

/// Called while downloading, from any thread but one at a time.
using OnProgress = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

struct SnapshotOptions {
  Endpoint endpoint = Endpoint::from_environment();
  Cache cache = Cache::from_environment();
  int connections = 4;
  OnProgress on_progress;
};

/// The folder in which a repository's chosen files lie: the cached snapshot when it holds all of them, else
/// what is missing is downloaded into the cache, several files at a time, each checked against its size and
/// hash before it gets its name. Safe when several processes do the same; what a cut left is continued. The
/// revision is recorded last, so an unfinished download never passes for a snapshot.
Result<std::string> snapshot(const Reference& reference, const Choose& choose, const Follow& follow,
                             const SnapshotOptions& options);

}  // namespace decant::hub
