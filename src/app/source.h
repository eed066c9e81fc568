#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "formats/huggingface/config.h"
#include "models/config.h"
#include "models/weights.h"

namespace decant::app {

/// A model as its author published it, whichever way it is stored: a GGUF file, or a folder with config.json
/// and safetensors. Texts are empty where the source has nothing of the kind. Weights stay mapped.
struct Source {
  std::string path;
  huggingface::ModelConfig config;
  std::unique_ptr<models::WeightSource> weights;
  std::string generation_config_json = {};
  std::string tokenizer_json = {};         ///< of a GGUF file: rebuilt from its vocabulary
  std::string tokenizer_config_json = {};  ///< with chat_template and the special tokens
};

/// Errors name the file. A tokenizer that cannot be rebuilt is an error; a folder without tokenizer.json is
/// not.
Result<Source> open_source(const std::string& path);

/// The configuration as architectures read it; `config` is copied (cheap).
std::unique_ptr<models::ConfigView> config_view(const huggingface::ModelConfig& config);

}  // namespace decant::app
