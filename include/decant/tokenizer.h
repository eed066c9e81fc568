#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decant/export.h"
#include "decant/status.h"

namespace decant {

struct EncodeOptions {
  bool add_special = true;       ///< what the tokenizer puts around a text (BOS, EOS)
  bool special_as_text = false;  ///< special tokens in the text are ordinary text (untrusted input)
  bool offsets = false;          ///< fill Encoding::offsets
};

struct Encoding {
  std::vector<int32_t> ids;
  /// For each id the code points [begin, end) of the text that it stands for; (0, 0) for ids put around it.
  std::vector<std::pair<uint32_t, uint32_t>> offsets;
};

/// Text to token ids and back, with the results of Hugging Face `tokenizers`. Immutable, cheap to copy,
/// thread-safe.
class DECANT_EXPORT Tokenizer {
 public:
  /// `path`: a tokenizer.json, a folder with one, a .gguf file, or "hf://owner/name[@revision]".
  /// kUnsupported, naming it, for a component of a kind that has no implementation.
  static Result<Tokenizer> load(const std::string& path);
  /// Reads the text of a tokenizer.json.
  static Result<Tokenizer> from_json(std::string_view json);

  Result<Encoding> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// Valid UTF-8. Ids without a token are passed over.
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;

  std::optional<int32_t> token_to_id(std::string_view token) const;
  /// The token as the vocabulary spells it.
  std::optional<std::string> id_to_token(int32_t id) const;
  bool is_special(int32_t id) const;
  /// Number of tokens, added ones included.
  int64_t vocab_size() const;

 private:
  friend class TokenDecoder;
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

/// Ids to text as they come: every piece is valid UTF-8, an unfinished character is held until it is whole.
/// Not thread-safe.
class DECANT_EXPORT TokenDecoder {
 public:
  explicit TokenDecoder(const Tokenizer& tokenizer, bool skip_special = true);
  TokenDecoder(TokenDecoder&&) noexcept;
  TokenDecoder& operator=(TokenDecoder&&) noexcept;
  ~TokenDecoder();

  /// Text that `id` completes; often empty.
  std::string push(int32_t id);
  /// What was held back; the decoder starts anew afterwards.
  std::string flush();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace decant
