#pragma once

#include <string>

#include "decant/model.h"

namespace decant::api {

/// "hf://owner/name@revision/file".
std::string path_of(const HubModel& model);

/// The path with hub references resolved, downloading what is missing.
Result<std::string> local_path(const std::string& path, const LoadOptions& options);

}  // namespace decant::api
