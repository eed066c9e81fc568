#pragma once

#include <string>
#include <string_view>

namespace decant {

/// `name` in single quotes for a message: names come from files, so it is cut to 100 bytes and its control
/// characters become '?'.
std::string quote_name(std::string_view name);

}  // namespace decant
