#pragma once

#include <string>

#include "base/status.h"

namespace decant::text {
class Tokenizer;
}

namespace decant::app {

/// The tokenizer of a model: a tokenizer.json, a GGUF file's vocabulary, or the tokenizer.json of a folder (for a file
/// of another kind, of the folder it lies in). The ids of BOS, EOS, PAD and UNK come from tokenizer_config.json where
/// there is one. kNotFound when there is no tokenizer.
Result<text::Tokenizer> load_tokenizer(const std::string& model);

}  // namespace decant::app
