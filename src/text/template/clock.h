#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/template/render_options.h"

namespace decant::text {

/// The machine's local time.
CivilTime local_now();

/// "2026-01-05T09:03:07" or "2026-01-05".
Result<CivilTime> parse_civil_time(std::string_view text);

/// strftime in the C locale, with glibc's flags - _ 0 ^ (as in %-d) and Python's %f; codes it does not know
/// stay as they are. Years beyond 9999 or below 1 never occur in a CivilTime that parse_civil_time made.
std::string format_time(const CivilTime& t, std::string_view format);

}  // namespace decant::text
