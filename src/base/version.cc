#include "decant/version.h"

namespace decant {

std::string_view version() { return DECANT_VERSION; }

}  // namespace decant
