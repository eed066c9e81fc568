#pragma once

#include <cstdint>

namespace decant::app::testing {

/// Calls of operator new in this test program so far. Defined in a file of its own, so that the compiler does
/// not inline one half of a pair.
int64_t allocation_count();

}  // namespace decant::app::testing
