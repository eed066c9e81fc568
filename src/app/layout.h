#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace decant::app {

/// One graph of a model folder.
struct Component {
  /// What it does when text is generated.
  enum class Role {
    kPart,       ///< nothing: it runs when it is named
    kModel,      ///< the whole model in one graph
    kEncoder,    ///< runs once, on the prompt or on features
    kFirstStep,  ///< a decoder without a past: the first step, where `kDecoder` needs one
    kDecoder,    ///< a decoder that takes the past
  };
  std::string name;  ///< "model", "decode", "decoder_with_past_model", ...
  std::string path;
  Role role = Role::kPart;
  /// The graph's names of inputs and outputs that a layout spells in its own way, and the usual ones
  /// (input_ids, past_key_values.0.key, present.0.key, logits, ...).
  std::map<std::string, std::string> usual_names = {};
  /// Of a decoder that was exported for single steps after a prompt: several ids at once may see each other's
  /// future.
  bool steps_only = false;
  int64_t head_size = 0;  ///< last dim of the key-value caches, where the layout tells it; 0: the graph does
};
const char* to_string(Component::Role role);

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
  std::string dtype;  ///< of the files chosen, as --dtype names it; empty where files do not say
  std::vector<std::string> dtypes;  ///< all there are
  std::string missing;              ///< what text generation lacks, for an error message; empty when nothing
  std::string chosen;               ///< the component that a file path names; empty when a folder was given

  /// The graph that a forward run takes when none is named: the chosen one, the only one, the whole model or
  /// the decoder; null when the choice is ambiguous.
  const Component* main() const;
  /// The graph that generates text, or null.
  const Component* decoder() const;
  const Component* find(const std::string& name) const;
  const Component* find(Component::Role role) const;
};

/// Looks at a folder, a .onnx file or a .gguf file. `dtype` picks among a repository's files ("fp32", "fp16",
/// "q8", "q4", ... as transformers.js names them, or what stands behind the file's name); empty takes fp32,
/// or else the most exact there is. Errors say what was looked for, what there is, and what is missing.
Result<Layout> find_layout(const std::string& path, const std::string& dtype = "");

}  // namespace decant::app
