#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace decant::text {

struct GgufVocabulary;

/// A token that is looked for in the text before anything else happens to it.
struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool single_word = false;  ///< only where no word character touches it
  bool lstrip = false;       ///< takes the white space in front of it along
  bool rstrip = false;       ///< takes the white space behind it along
  bool normalized = false;   ///< looked for after normalization
  bool special = false;      ///< left out of decoded text on request
};

/// Ids of the tokens with a role, where the file they came from names them.
struct SpecialTokenIds {
  std::optional<int32_t> bos, eos, unk, pad, eot;
};

struct EncodeOptions {
  bool add_special = true;       ///< what the post-processor puts around the text (BOS, EOS)
  bool offsets = false;          ///< fill Encoding::offsets; about half as fast
  bool special_as_text = false;  ///< special tokens in the text are ordinary text (untrusted input)
};

struct Encoding {
  std::vector<int32_t> ids;
  /// For each id the code points [begin, end) of the text it stands for; (0, 0) for ids that were put around
  /// it.
  std::vector<std::pair<uint32_t, uint32_t>> offsets;
};

/// Text to token ids and back, with the results of Hugging Face `tokenizers`. Truncation and padding sections
/// of a tokenizer.json are not applied: callers decide what to cut. Immutable and cheap to copy; thread-safe.
class Tokenizer {
 public:
  /// Reads a tokenizer.json with a BPE model. `origin` names the file in messages. A component of a type that
  /// has no implementation is an error that names it (kUnsupported).
  static Result<Tokenizer> from_json(std::string_view json, std::string_view origin);

  /// Builds the tokenizer that the metadata of a GGUF file describes.
  static Result<Tokenizer> from_gguf(const GgufVocabulary& vocabulary,
                                     std::string_view origin = "GGUF vocabulary");

  /// A tokenizer.json that `tokenizers` loads and that encodes the same way.
  std::string to_json() const;

  /// Ill-formed UTF-8 in `text` counts as U+FFFD for each maximal ill-formed part. Fails for texts of 2 GB
  /// and more, and when a regular expression of the file gives up.
  Result<Encoding> encode(std::string_view text, const EncodeOptions& options = {}) const;
  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special) const;

  /// Ids without a token are passed over. The result is valid UTF-8.
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  std::optional<int32_t> token_to_id(std::string_view token) const;
  /// The token as the vocabulary spells it (a blank may be U+0120 or U+2581).
  std::optional<std::string> id_to_token(int32_t id) const;
  bool is_special(int32_t id) const;

  /// Number of tokens, added ones included.
  size_t vocab_size() const;
  /// One past the largest id.
  int32_t id_limit() const;
  const std::vector<AddedToken>& added_tokens() const;

  /// From a tokenizer.json: unk and pad where it names them. set_special_ids() adds what other files know.
  const SpecialTokenIds& special_ids() const;
  void set_special_ids(const SpecialTokenIds& ids);

  struct Impl;

 private:
  friend class DecodeStream;
  explicit Tokenizer(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
  SpecialTokenIds special_ids_;
};

/// Decodes ids one at a time. Every piece is valid UTF-8: bytes of an unfinished character are held until it
/// is whole or cannot become so. All pieces together, flush() included, equal Tokenizer::decode() of all ids,
/// except that ByteFallback tokens that have formed whole characters stay so when ill-formed bytes follow
/// them. Holds the tokenizer's data; not thread-safe.
class DecodeStream {
 public:
  explicit DecodeStream(const Tokenizer& tokenizer, bool skip_special = true);
  ~DecodeStream();
  DecodeStream(DecodeStream&&) noexcept;
  DecodeStream& operator=(DecodeStream&&) noexcept;

  /// Text that `id` completes; often empty.
  std::string push(int32_t id);
  /// What was held back, an unfinished character as U+FFFD. The stream starts anew afterwards.
  std::string flush();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace decant::text
