#pragma once

#include <string>

#include "base/status.h"

namespace decant::gguf {
class GgufFile;
}

namespace decant::app {

/// The config.json that a checkpoint of this GGUF model would have, from its metadata: sizes, rotary
/// settings, norm epsilon, token ids, tied embeddings (no output.weight). Values equal those of Transformers'
/// `gguf_file=` loading where that reads them. kUnsupported for an architecture without a mapping, with the
/// list of known ones; kInvalidModel when metadata is missing, of another type, or disagrees with the
/// tensors.
///
/// llama3 rotary scaling is stored in GGUF as a tensor of divisors, `rope_freqs.weight`; its factors are
/// recovered from that tensor.
Result<std::string> hf_config_from_gguf(const gguf::GgufFile& file);

/// generation_config.json from tokenizer.ggml.{bos,eos,eot,eom,padding}_token_id.
Result<std::string> hf_generation_config_from_gguf(const gguf::GgufFile& file);

}  // namespace decant::app
