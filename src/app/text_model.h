#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/encoder.h"
#include "app/text_files.h"
#include "app/token_steps.h"
#include "base/dtype.h"
#include "base/status.h"
#include "runtime/session.h"

namespace decant::app {

struct LoadOptions {
  int threads = 0;            ///< 0: the machine's physical cores, within the process's limits
  std::string isa;            ///< empty: the best
  int64_t max_cache_len = 0;  ///< positions of the cache; 0: the model's own limit, at most kDefaultCacheLen
  std::string dtype;          ///< which of a repository's files; see find_layout
  DType compute_type = DType::kUndefined;                     ///< as ForwardOptions::compute_type
  kernels::Precision precision = kernels::Precision::kExact;  ///< of products with weights of few bits
  bool with_text = true;  ///< load tokenizer and chat template (false: ids only)
};

/// Long-context models do not allocate their whole context unless asked to.
inline constexpr int64_t kDefaultCacheLen = 4096;

/// A decoder with its tokenizer and one sequence; of an encoder-decoder model, the encoder too. Not
/// thread-safe.
class TextModel {
 public:
  static Result<std::unique_ptr<TextModel>> load(const std::string& path, const LoadOptions& options);

  /// Continues the sequence with `prompt` (ids) and generated tokens. `on_text` gets valid UTF-8 as it is
  /// settled. A generation that fills the cache ends with kLength.
  /// An encoder-decoder model reads the prompt with its encoder and starts a new sequence with what the
  /// generation configuration says.
  Result<Generation> generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                              const std::function<void(std::string_view)>& on_text = nullptr);

  /// The same from tensors, by the graphs' usual names: a speech model's `input_features`, or an encoder's
  /// output. `decoder_prompt`: what the decoder starts with; empty: as the generation configuration says.
  Result<Generation> generate(const NamedTensors& inputs, std::span<const int32_t> decoder_prompt,
                              const GenerateOptions& options,
                              const std::function<void(std::string_view)>& on_text = nullptr);

  /// The same generations, token by token. The model must outlive the steps, and nothing else may use its
  /// sequence until they are done with.
  Result<TokenSteps> start(std::span<const int32_t> prompt, const GenerateOptions& options);
  Result<TokenSteps> start(const NamedTensors& inputs, std::span<const int32_t> decoder_prompt,
                           const GenerateOptions& options);

  /// Whether the decoder reads what an encoder made of the prompt.
  bool is_encoder_decoder() const { return encoder_ || crossed_; }
  runtime::Session& session() { return *session_; }
  const TextFiles& files() const { return *files_; }
  double load_seconds() const { return load_seconds_; }

 private:
  std::unique_ptr<Encoder> encoder_;
  bool crossed_ = false;  ///< the session's graph has the encoder's inputs itself
  std::unique_ptr<runtime::Session> session_;
  std::optional<TextFiles> files_;
  double load_seconds_ = 0;
};

/// Largest resident size of this process so far, in bytes.
int64_t peak_rss_bytes();

}  // namespace decant::app
