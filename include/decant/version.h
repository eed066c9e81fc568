#pragma once

#include <string_view>

#include "decant/export.h"

namespace decant {

/// Version of the library, as "0.1.0".
DECANT_EXPORT std::string_view version();

}  // namespace decant
