#pragma once

#include "ir/graph.h"

namespace decant::runtime {

/// Whether the node's kernel decodes rows of its packed table itself, so that the plan need not hold the
/// table.
bool gathers_packed_rows(const ir::Node& node);

}  // namespace decant::runtime
