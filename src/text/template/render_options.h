#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace decant::text {

/// A date and time without a zone, as strftime_now sees it.
struct CivilTime {
  int year = 1970, month = 1, day = 1;  ///< month and day from 1
  int hour = 0, minute = 0, second = 0;
};

/// What one render may use up; passing one is an error of kind LimitError (OverflowError for range).
struct RenderLimits {
  uint64_t steps = 1'000'000;         ///< statements and expressions evaluated
  uint32_t depth = 64;                ///< macros, callers and recursive loops inside one another
  size_t output_bytes = 16u << 20;    ///< of any single text, the result included
  size_t allocated_bytes = 1u << 30;  ///< of all texts and lists made on the way
  int64_t range_items = 100'000;
};

struct RenderOptions {
  RenderLimits limits;
  std::optional<CivilTime> now;  ///< fixes the clock; the machine's local time when unset
};

}  // namespace decant::text
