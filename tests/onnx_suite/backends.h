#pragma once

#include <string>

#include "suite_case.h"

namespace decant::suite {

struct Outcome {
  enum class Result { kPassed, kFailed, kUnsupported };
  Result result = Result::kFailed;
  std::string detail;
};

/// "cpu": the optimized graph, compiled to a plan. "reference": the graph as read, on the reference kernels.
/// Unsupported only when reading, typing or compiling says so with StatusCode::kUnsupported; every other
/// error, and every error of a run, is a failure.
Outcome run_case(const std::string& folder, const std::string& backend);

}  // namespace decant::suite
