#include "cli/resolve_model.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "app/hub_model.h"

namespace decant::cli {

Result<std::string> resolve_model(const std::string& model, const Common& common, const std::string& dtype) {
  using Clock = std::chrono::steady_clock;
  app::HubOptions options;
  options.dtype = dtype;
  const Clock::time_point start = Clock::now();
  Clock::time_point last = start;
  bool shown = false;
  if (!common.quiet && ::isatty(STDERR_FILENO)) {
    options.on_progress = [&](int64_t done, int64_t total) {
      const Clock::time_point now = Clock::now();
      if (now - start < std::chrono::seconds(1) || now - last < std::chrono::milliseconds(100)) return;
      last = now;
      shown = true;
      std::fprintf(stderr, "\r%s: %.1f of %.1f MB", model.c_str(), static_cast<double>(done) / 1e6,
                   static_cast<double>(total) / 1e6);
    };
  }
  Result<std::string> path = app::local_model(model, options);
  if (shown) std::fprintf(stderr, "\n");
  return path;
}

}  // namespace decant::cli
