#pragma once

#include <string>

#include "base/status.h"
#include "cli/command.h"

namespace decant::cli {

/// A MODEL or SOURCE argument as a local path: downloads what `hf://` names, with a progress line on a
/// terminal for whatever takes over a second. `dtype`: which ONNX variant of a repository; empty: the
/// default.
Result<std::string> resolve_model(const std::string& model, const Common& common,
                                  const std::string& dtype = "");

}  // namespace decant::cli
