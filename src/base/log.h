#pragma once

#include <functional>
#include <string_view>

namespace decant {

/// The library never prints: warnings go to this hook, which does nothing until the application sets it.
/// Set it before other threads use the library.
enum class LogLevel { kDebug, kInfo, kWarning };
using LogHook = std::function<void(LogLevel, std::string_view message)>;
void set_log_hook(LogHook hook);
void log(LogLevel level, std::string_view message);

}  // namespace decant
