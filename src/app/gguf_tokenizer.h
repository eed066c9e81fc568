#pragma once

#include <string>

#include "base/status.h"

namespace decant::gguf {
class GgufFile;
}
namespace decant::text {
struct GgufVocabulary;
}

namespace decant::app {

/// The tokenizer.ggml.* metadata of the file. kNotFound when it has no vocabulary; kInvalidModel for values
/// of another type, ids outside the vocabulary, or text that is not UTF-8 where JSON needs it.
Result<text::GgufVocabulary> gguf_vocabulary(const gguf::GgufFile& file);

/// tokenizer_config.json as Transformers reads it: class, special tokens, add_bos_token / add_eos_token where
/// the file has them, and the chat template.
Result<std::string> tokenizer_config_from_gguf(const gguf::GgufFile& file,
                                               const text::GgufVocabulary& vocabulary);

}  // namespace decant::app
