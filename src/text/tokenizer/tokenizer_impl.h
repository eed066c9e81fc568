#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/bpe_model.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/post_processor.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/tokenizer.h"

namespace decant::text {

/// The parts of a tokenizer. Immutable but for the pool of scratch memory, which is guarded.
struct Tokenizer::Impl {
  Impl(bpe::BpeModel m, bpe::AddedTokens a) : model(std::move(m)), added(std::move(a)) {}

  bpe::BpeModel model;
  bpe::AddedTokens added;
  bpe::Normalizer normalizer;
  bpe::PreTokenizer pre_tokenizer;
  bpe::PostProcessor post_processor;
  bpe::Decoder decoder;
  /// The component sections as they were read, for to_json().
  struct Sections {
    std::string normalizer = "null", pre_tokenizer = "null", post_processor = "null", decoder = "null";
  } sections;
  SpecialTokenIds special_ids;  ///< those that the file names

  /// The token's text as decoders see it, or null when `id` has none or is left out.
  bool decoded_token(int32_t id, bool skip_special, std::string_view& token) const;

  std::unique_ptr<bpe::BpeScratch> take_scratch() const;
  void give_scratch(std::unique_ptr<bpe::BpeScratch> scratch) const;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<bpe::BpeScratch>> pool_;
};

}  // namespace decant::text
