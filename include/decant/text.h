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
};

enum class FinishReason {
  kStop,        ///< a stop token of the model
  kLength,      ///< max_new_tokens, or the cache is full
  kStopString,  ///< one of stop_strings
};

struct Generation {
  std::vector<int32_t> ids;  ///< new ids, without the stop token
  std::string text;          ///< of the new ids, without special tokens
  FinishReason finish = FinishReason::kLength;
  int64_t prompt_tokens = 0;
  double prefill_seconds = 0, decode_seconds = 0;
};

/// Receives text as it is settled: valid UTF-8, nothing of a stop string.
using TextCallback = std::function<void(std::string_view piece)>;

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
  /// off is not yet part of the sequence.
  Result<Generation> generate(std::span<const int32_t> prompt, const GenerateOptions& options = {},
                              const TextCallback& on_text = nullptr);
  Result<Generation> generate(std::string_view prompt, const GenerateOptions& options = {},
                              const TextCallback& on_text = nullptr);

  /// The sequence: runs ids at its end, and forgets its tokens from `length` on. kOutOfRange, without a
  /// change, beyond the capacity; kUnsupported for rewinding a cache that cannot be.
  Status append(std::span<const int32_t> ids);
  Status rewind(int64_t length);
  int64_t length() const;
  int64_t capacity() const;
  /// Logits after the last appended id, [vocabulary]; valid until the next call.
  std::span<const float> logits() const;

 private:
  friend class Chat;
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
