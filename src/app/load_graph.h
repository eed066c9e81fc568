#pragma once

#include <memory>
#include <string>

#include "app/layout.h"
#include "base/status.h"
#include "ir/graph.h"

namespace decant::app {

/// The graph of one component: read from ONNX, or captured (with a static cache) from a GGUF file or a
/// checkpoint. States are declared; types are not inferred yet for graphs read from files.
Result<std::unique_ptr<ir::Graph>> load_graph(const Layout& layout, const Component& component);

/// Fixes the flag `use_cache_branch` of a merged decoder, so that the branch taken is all that is left;
/// returns whether the graph has one.
Result<bool> choose_cache_branch(ir::Graph& graph, bool with_past);

/// The graph for text generation: inputs and outputs under their usual names, `use_cache_branch` (where there
/// is one) fixed to `with_past`, inputs that nothing reads left out. `branches` tells whether there was one.
/// Not optimized yet.
Result<std::unique_ptr<ir::Graph>> load_for_generation(const Layout& layout, const Component& component,
                                                       bool with_past, bool* branches = nullptr);

}  // namespace decant::app
