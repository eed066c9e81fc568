#include "app/load_graph.h"

#include "app/source.h"
#include "formats/onnx/reader.h"
#include "models/architecture.h"

namespace decant::app {

Result<std::unique_ptr<ir::Graph>> load_graph(const Layout& layout, const Component& component) {
  if (layout.kind == Layout::Kind::kOnnx) return onnx::read_model(component.path);
  DECANT_ASSIGN(const Source source, open_source(component.path));
  models::CaptureOptions options;
  options.cache = models::CacheForm::kStatic;
  DECANT_ASSIGN(const auto dtype, source.config.dtype());
  if (dtype && (*dtype == DType::kFloat16 || *dtype == DType::kBFloat16)) options.dtype = *dtype;
  return models::capture(*config_view(source.config), *source.weights, options);
}

}  // namespace decant::app
