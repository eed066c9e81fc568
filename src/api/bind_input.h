#pragma once

#include "decant/tensor.h"
#include "ir/graph.h"

namespace decant::api {

/// The graph's input becomes a constant with the tensor's elements, which the graph keeps alive.
Status bind_input(ir::Graph& graph, const std::string& name, const Tensor& value);

}  // namespace decant::api
