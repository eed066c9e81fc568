#pragma once

#include <string>

#include "base/status.h"

namespace decant::app {

/// Lower-case hexadecimal SHA-256 of a file's contents (of nothing, for a folder).
Result<std::string> sha256_of_file(const std::string& path);

}  // namespace decant::app
