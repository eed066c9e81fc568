#include "text/tokenizer/gguf_vocabulary.h"

namespace decant::text {
Result<std::string> gguf_to_tokenizer_json(const GgufVocabulary&, std::string_view) { return unsupported("gguf"); }
}  // namespace decant::text
