#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/post_processor.h"
#include "text/tokenizer/pre_tokenizer.h"

namespace simdjson::dom {
class element;
}

namespace decant::text::bpe {

/// Readers of the four component sections of a tokenizer.json, each flattening Sequences into a list of
/// steps. A null section is an empty list. A component type without an implementation is kUnsupported, with
/// its name.

Result<std::vector<NormalizerStep>> read_normalizer(const simdjson::dom::element& section);
Result<std::vector<PreTokenizerStep>> read_pre_tokenizer(const simdjson::dom::element& section);
Result<PostProcessor> read_post_processor(const simdjson::dom::element& section);
Result<std::vector<DecoderStep>> read_decoder(const simdjson::dom::element& section);

/// Appends `text` as a JSON string, quotes included. Precondition: valid UTF-8.
void append_json_string(std::string_view text, std::string& out);

}  // namespace decant::text::bpe
