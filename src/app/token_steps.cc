#include "app/token_steps.h"

#include <chrono>

namespace decant::app {
namespace {

/// Adds the time until it goes out of scope.
class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total) {}
  ~Stopwatch() { total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

const char* to_string(Finish finish) {
  switch (finish) {
    case Finish::kStop:
      return "stop";
    case Finish::kLength:
      return "length";
    case Finish::kStopString:
      return "stop_string";
    case Finish::kInterrupted:
      return "interrupted";
  }
  return "";
}

Result<TokenSteps> TokenSteps::create(runtime::Session& session, const TextFiles& files,
                                      std::span<const int32_t> prompt, const GenerateOptions& options) {
  if (prompt.empty()) return invalid_argument("no token ids were given");
  DECANT_ASSIGN(text::TextStream stream, text::TextStream::create(options.stop_strings));
  TokenSteps steps(session, files, prompt, options, std::move(stream));
  if (auto tokenizer = files.tokenizer(); tokenizer.ok()) {
    steps.decoder_.emplace(**tokenizer, true);
  } else if (!options.stop_strings.empty()) {
    return std::move(tokenizer).status();
  }
  return steps;
}

TokenSteps::TokenSteps(runtime::Session& session, const TextFiles& files, std::span<const int32_t> prompt,
                       const GenerateOptions& options, text::TextStream stream)
    : session_(&session),
      files_(&files),
      options_(options),
      rules_(files.generation()),
      stream_(std::move(stream)),
      pending_(prompt.begin(), prompt.end()) {
  generation_.prompt_tokens = static_cast<int64_t>(prompt.size());
}

Result<bool> TokenSteps::run_pending() {
  if (started_ && session_->length() >= session_->capacity()) return false;
  if (!options_.limits.check().ok()) {
    generation_.finish = Finish::kInterrupted;
    return false;
  }
  const Status s = session_->append(pending_, options_.limits);
  if (s.code() == StatusCode::kDeadline) {
    generation_.finish = Finish::kInterrupted;
    return false;
  }
  if (!s.ok()) return s;
  if (started_) {
    ++generation_.decode_steps;
    return true;
  }
  started_ = true;
  DECANT_ASSIGN(sampler_, text::Sampler::create(options_.sampling, session_->logits().size()));
  DECANT_RETURN_IF_ERROR(sampler_->see_prompt(std::vector<int32_t>(pending_.begin(), pending_.end())));
  return true;
}

Result<int32_t> TokenSteps::choose() {
  if (rules_.empty()) return sampler_->next(session_->logits());
  ruled_.assign(session_->logits().begin(), session_->logits().end());
  rules_.apply(session_->length(), generation_.ids.empty(), ruled_);
  return sampler_->next(ruled_);
}

TokenSteps::Step TokenSteps::finish(Finish how) {
  finished_ = true;
  generation_.finish = how;
  Step step;
  if (decoder_) step.text = stream_.push(decoder_->flush());
  step.text += stream_.finish();
  return step;
}

Result<std::optional<TokenSteps::Step>> TokenSteps::next() {
  if (finished_) return std::optional<Step>();
  std::optional<Step> step;
  finished_ = true;  // unless nothing fails
  if (static_cast<int64_t>(generation_.ids.size()) >= options_.max_new_tokens && started_) {
    step = finish(Finish::kLength);
  } else {
    const Stopwatch time(started_ ? generation_.decode_seconds : generation_.prefill_seconds);
    DECANT_ASSIGN(const bool more, run_pending());
    if (!more || options_.max_new_tokens <= 0) step = finish(generation_.finish);
  }
  if (!step) {
    const Stopwatch time(generation_.decode_seconds);
    DECANT_ASSIGN(const int32_t id, choose());
    if (!options_.ignore_eos && files_->stop_tokens().contains(id)) {
      step = finish(Finish::kStop);
      generation_.stop_id = id;
    } else {
      generation_.ids.push_back(id);
      pending_.assign(1, id);
      step.emplace();
      step->id = id;
      if (decoder_) step->text = stream_.push(decoder_->push(id));
      finished_ = false;
      if (stream_.stopped()) {
        finished_ = true;
        generation_.finish = Finish::kStopString;
      }
    }
  }
  generation_.text += step->text;
  if (!step->id && step->text.empty()) step.reset();
  return step;
}

}  // namespace decant::app
