#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace decant::app {

/// One graph of a model folder.
struct Component {
  std::string name;  ///< "model", "decode", ...
  std::string path;
};

/// What MODEL on the command line turned out to be.
struct Layout {
  enum class Kind {
    kOnnx,        ///< one or more ONNX graphs
    kGguf,        ///< a GGUF file
    kCheckpoint,  ///< config.json with safetensors
  };
  Kind kind = Kind::kOnnx;
  std::string description;  ///< for people: "onnx export (export.json)", "single onnx file", ...
  std::string
      folder;  ///< where config, tokenizer and generation config lie; empty for a bare file without them
  std::vector<Component> components;

  /// The graph that generates text, or the only one; null when the choice is ambiguous.
  const Component* decoder() const;
  const Component* find(const std::string& name) const;
};

/// Looks at a folder, a .onnx file or a .gguf file. Errors say what was looked for and what is missing.
Result<Layout> find_layout(const std::string& path);

}  // namespace decant::app
