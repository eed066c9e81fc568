#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

#include "decant/export.h"
#include "decant/status.h"

namespace decant {

/// What the caller allows one run to take. A run that passes a limit ends with StatusCode::kDeadline at the
/// next step or trip of a loop (a single kernel is not interrupted). Caches that it was updating in place are
/// undefined then; everything else stays usable.
struct RunOptions {
  std::optional<std::chrono::steady_clock::time_point> deadline{};
  std::stop_token stop{};  ///< ends the run when a stop is requested, from any thread

  static RunOptions within(std::chrono::steady_clock::duration time) {
    return {std::chrono::steady_clock::now() + time, {}};
  }

  /// Whether check() can ever fail.
  bool limited() const { return deadline.has_value() || stop.stop_possible(); }
  Status check() const {
    if (stop.stop_requested()) return deadline_error("the run was stopped");
    if (!deadline || std::chrono::steady_clock::now() < *deadline) return Status();
    return deadline_error("the run passed its deadline");
  }
};

}  // namespace decant
