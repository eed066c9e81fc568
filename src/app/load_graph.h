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

}  // namespace decant::app
