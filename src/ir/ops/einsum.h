#pragma once

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace decant::ir {

/// Labels of one term: letters as themselves, dims of the ellipsis as -1 for its last dim, -2 for the one
/// before it, and so on.
using EinsumTerm = std::vector<int>;

struct EinsumEquation {
  std::vector<EinsumTerm> inputs;
  EinsumTerm output;  ///< each label once, each in some input
};

/// The equation of an Einsum for inputs of these ranks; an error when it is malformed or does not fit.
Result<EinsumEquation> parse_einsum(const Node& node, const std::vector<size_t>& ranks);

}  // namespace decant::ir
