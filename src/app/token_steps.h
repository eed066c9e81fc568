#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/generation_rules.h"
#include "app/text_files.h"
#include "base/run_options.h"
#include "base/status.h"
#include "runtime/session.h"
#include "text/sampling/sampler.h"
#include "text/streaming/text_stream.h"
#include "text/tokenizer/tokenizer.h"

namespace decant::app {

struct GenerateOptions {
  int64_t max_new_tokens = 256;
  bool ignore_eos = false;
  std::vector<std::string> stop_strings;
  text::SamplingOptions sampling;
  RunOptions limits;  ///< end the generation with Finish::kInterrupted
};

enum class Finish { kStop, kLength, kStopString, kInterrupted };
const char* to_string(Finish finish);

struct Generation {
  std::vector<int32_t> ids;  ///< new ids; a stop token that ended the text is not among them
  std::string text;
  Finish finish = Finish::kLength;
  std::optional<int32_t> stop_id{};  ///< the stop token that ended it
  int64_t prompt_tokens = 0;
  double prefill_seconds = 0, decode_seconds = 0;
  int64_t decode_steps = 0;  ///< forward runs after the prompt's
};

/// A generation that is asked for its tokens one at a time, and rests in between. Session and files must
/// outlive it, and nothing else may use the session's sequence meanwhile. Movable. Not thread-safe.
class TokenSteps {
 public:
  /// Continues the session's sequence with `prompt`. Nothing runs before the first next().
  static Result<TokenSteps> create(runtime::Session& session, const TextFiles& files,
                                   std::span<const int32_t> prompt, const GenerateOptions& options);

  struct Step {
    std::optional<int32_t> id;  ///< none in a last step that only settles text
    std::string text;           ///< valid UTF-8, nothing of a stop string; often empty
  };
  /// The next token with the text that it settled; nothing at the end. The first call runs the prompt too.
  /// After an error the generation is over. Where a limit ends the run of the prompt or of a token, the
  /// sequence is empty afterwards.
  Result<std::optional<Step>> next();

  /// What came so far; `finish` counts once next() has given nothing.
  const Generation& generation() const { return generation_; }
  Generation take() { return std::move(generation_); }

 private:
  TokenSteps(runtime::Session& session, const TextFiles& files, std::span<const int32_t> prompt,
             const GenerateOptions& options, text::TextStream stream);

  /// Brings the sequence up to date: the prompt at first, then the token chosen last. False: it is over.
  Result<bool> run_pending();
  Result<int32_t> choose();
  Step finish(Finish how);

  runtime::Session* session_;
  const TextFiles* files_;
  GenerateOptions options_;
  GenerationRules rules_;
  text::TextStream stream_;
  std::optional<text::DecodeStream> decoder_;
  std::optional<text::Sampler> sampler_;
  std::vector<int64_t> pending_;  ///< ids that the sequence lacks
  std::vector<float> ruled_;
  Generation generation_;
  bool started_ = false, finished_ = false;
};

}  // namespace decant::app
