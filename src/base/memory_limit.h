#pragma once

#include <cstdint>

namespace decant {

/// Bytes that this process can ever hold in memory: the machine's, or what the control group (v1 or v2)
/// allows when that is less. Read once; thread-safe. Larger requests are refused before they are made,
/// because the system would grant them and end the process when it touches them.
uint64_t memory_limit();

}  // namespace decant
