#pragma once

#include <memory>

#include "base/status.h"
#include "models/weights.h"

namespace decant::gguf {
class GgufFile;
}
namespace decant::safetensors {
class SafetensorsFile;
}

namespace decant::app {

/// The tensors of a checkpoint, as they are named there.
std::unique_ptr<models::WeightSource> safetensors_weights(
    std::shared_ptr<const safetensors::SafetensorsFile> file);

/// The tensors of a GGUF file under checkpoint names (gguf_names.h); those without one keep their own. Block
/// encodings are decoded row by row when read. Rows of query and key projections, which llama-like files
/// store with interleaved rotary pairs, come out in the checkpoint's order. Fails when the file does not say
/// how many heads it has.
Result<std::unique_ptr<models::WeightSource>> gguf_weights(std::shared_ptr<const gguf::GgufFile> file);

}  // namespace decant::app
