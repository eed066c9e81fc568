#pragma once

#include <chrono>
#include <optional>

#include "base/status.h"

namespace decant {

/// What the caller allows one run to take.
struct RunOptions {
  /// Checked before each step and each iteration of a loop: the run ends with StatusCode::kDeadline soon
  /// after. A single kernel is not interrupted.
  std::optional<std::chrono::steady_clock::time_point> deadline;

  static RunOptions within(std::chrono::steady_clock::duration time) {
    return {std::chrono::steady_clock::now() + time};
  }
  Status check() const {
    if (!deadline || std::chrono::steady_clock::now() < *deadline) return ok_status();
    return deadline_error("the run passed its deadline");
  }
};

}  // namespace decant
