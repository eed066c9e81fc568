#pragma once

#include <filesystem>

#include "base/status.h"

namespace decant::app {

/// The manifest of an export folder: it is written last, so that a folder without it is an unfinished export.
inline constexpr const char* kManifestFile = "export.json";

/// Creates the folder of an export, or takes the manifest out of the one that is there.
Status prepare_output(const std::filesystem::path& folder);

}  // namespace decant::app
