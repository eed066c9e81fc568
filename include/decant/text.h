#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decant/export.h"
#include "decant/model.h"
#include "decant/run_options.h"
#include "decant/status.h"

namespace decant {

/// How the next token is chosen. Order and formulas: docs/sampling.md.
struct Sampling {
  std::optional<float> temperature;  ///< none or 0: greedy
  int64_t top_k = 0;                 ///< 0: off
  float top_p = 1.0f;                ///< in [0, 1]; 1: off
  float min_p = 0.0f;                ///< in [0, 1]; 0: off
  float repetition_penalty = 1.0f;   ///< > 0; 1: off
  uint64_t seed = 0;                 ///< same seed and logits, same tokens
};

struct GenerateOptions {
  int64_t max_new_tokens = 256;
  bool ignore_stop_tokens = false;
  std::vector<std::string> stop_strings;  ///< generation ends before the first of them
  Sampling sampling;
  RunOptions limits;  ///< a generation that passes one ends with FinishReason::kInterrupted
};

enum class FinishReason {
  kStop,         ///< a stop token of the model
  kLength,       ///< max_new_tokens, or the cache is full
  kStopString,   ///< one of stop_strings
  kInterrupted,  ///< the deadline passed, or a stop was requested
};

struct Generation {
  std::vector<int32_t> ids;  ///< new ids, without the stop token
  std::string text;          ///< of the new ids, without special tokens
  FinishReason finish = FinishReason::kLength;
  std::optional<int32_t> stop_id{};  ///< the stop token that ended it
  int64_t prompt_tokens = 0;
  double prefill_seconds = 0, decode_seconds = 0;
};

/// Receives text as it is settled: valid UTF-8, nothing of a stop string.
using TextCallback = std::function<void(std::string_view piece)>;

/// One step of a generation under way.
struct TokenStep {
  std::optional<int32_t> id;  ///< none in a last step that only settles text
  std::string text;           ///< what the step settled, as TextCallback gets it; often empty
};

class TextModel;

/// A generation that its caller drives: each call computes one token, and in between it rests as long as the
/// caller likes. Its model must outlive it; any other use of the model's sequence ends it. Movable. Not
/// thread-safe.
class DECANT_EXPORT TokenStream {
 public:
  TokenStream(TokenStream&&) noexcept;
  TokenStream& operator=(TokenStream&&) noexcept;
  ~TokenStream();

  /// The next token; nothing at the end. The first call runs the prompt too. kInvalidArgument when the
  /// model's sequence was used for something else since.
  Result<std::optional<TokenStep>> next();

  /// What came so far; `finish` counts once next() has given nothing.
  Generation generation() const;

 private:
  friend class TextModel;
  struct Impl;
  explicit TokenStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A text generator with its tokenizer, chat template and one sequence of tokens, whose cache it owns.
/// Movable. Not thread-safe.
class DECANT_EXPORT TextModel {
 public:
  /// `path` as Model::load; the tokenizer's files lie beside the model. A missing tokenizer or template is an
  /// error of the first call that needs it.
  static Result<TextModel> load(const std::string& path, const LoadOptions& options = {});
  static Result<TextModel> load(const HubModel& model, const LoadOptions& options = {});
  TextModel(TextModel&&) noexcept;
  TextModel& operator=(TextModel&&) noexcept;
  ~TextModel();

  /// Text to ids; `add_special` adds what the tokenizer puts around a text (BOS, EOS).
  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special = true) const;
  /// Ids to text, without special tokens.
  Result<std::string> decode(std::span<const int32_t> ids) const;
  /// Renders a conversation with the model's chat template. `json`: a list of messages, or an object with
  /// "messages" and further variables of the template.
  Result<std::string> render_chat(std::string_view json) const;

  /// Appends the prompt to the sequence and generates from there. The last id of a generation that was cut
  /// off is not yet part of the sequence. Where a limit interrupts a run, the sequence is empty afterwards.
  Result<Generation> generate(std::span<const int32_t> prompt, const GenerateOptions& options = {},
                              const TextCallback& on_text = nullptr);
  Result<Generation> generate(std::string_view prompt, const GenerateOptions& options = {},
                              const TextCallback& on_text = nullptr);

  /// The same generation, token by token.
  Result<TokenStream> start(std::span<const int32_t> prompt, const GenerateOptions& options = {});
  /// Of an encoder-decoder model: generates from tensors, by the encoder's (or, for what an encoder gave, the
  /// decoder's) input names, such as "input_features". `decoder_prompt`: what the decoder starts with; empty:
  /// as the generation configuration says.
  Result<TokenStream> start(const NamedTensors& inputs, std::span<const int32_t> decoder_prompt,
                            const GenerateOptions& options = {});

  /// The sequence: runs ids at its end, and forgets its tokens from `length` on. kOutOfRange, without a
  /// change, beyond the capacity; kUnsupported for rewinding a cache that cannot be.
  Status append(std::span<const int32_t> ids);
  Status rewind(int64_t length);
  /// Forgets all but the beginning that the sequence shares with `ids`, and gives its length, which is below
  /// ids.size(): what is left of them is the prompt that continues it. 0 where a cache cannot be rewound.
  Result<int64_t> keep_prefix(std::span<const int32_t> ids);
  int64_t length() const;
  int64_t capacity() const;
  /// Logits after the last appended id, [vocabulary]; valid until the next call.
  std::span<const float> logits() const;

 private:
  friend class Chat;
  friend class TokenStream;
  struct Impl;
  explicit TextModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A conversation on a text model, which it takes over from its start. What the cache holds of earlier turns
/// is not run again. The model must outlive it.
class DECANT_EXPORT Chat {
 public:
  explicit Chat(TextModel& model, std::string system = "");
  ~Chat();
  Chat(Chat&&) noexcept;

  /// Sends a user's message and generates the answer, which becomes part of the conversation.
  Result<Generation> send(std::string_view message, const GenerateOptions& options = {},
                          const TextCallback& on_text = nullptr);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace decant
