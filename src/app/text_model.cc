#include "app/text_model.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "app/layout.h"
#include "app/load_graph.h"
#include "passes/passes.h"
#include "text/streaming/text_stream.h"

namespace decant::app {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Ids to settled text: whole characters, and nothing of a stop string.
class Output {
 public:
  static Result<Output> create(const TextFiles& files, const GenerateOptions& options,
                               const std::function<void(std::string_view)>& on_text) {
    DECANT_ASSIGN(text::TextStream stream, text::TextStream::create(options.stop_strings));
    Output out(std::move(stream), on_text);
    if (auto tokenizer = files.tokenizer(); tokenizer.ok()) {
      out.decoder_.emplace(**tokenizer, true);
    } else if (!options.stop_strings.empty()) {
      return std::move(tokenizer).status();
    }
    return out;
  }

  void push(int32_t id) {
    if (decoder_) show(stream_.push(decoder_->push(id)));
  }
  void finish() {
    if (decoder_) show(stream_.push(decoder_->flush()));
    show(stream_.finish());
  }
  bool stopped() const { return stream_.stopped(); }
  std::string take() { return std::move(text_); }

 private:
  Output(text::TextStream stream, const std::function<void(std::string_view)>& on_text)
      : stream_(std::move(stream)), on_text_(on_text) {}
  void show(const std::string& piece) {
    if (piece.empty()) return;
    text_ += piece;
    if (on_text_) on_text_(piece);
  }

  text::TextStream stream_;
  const std::function<void(std::string_view)>& on_text_;
  std::optional<text::DecodeStream> decoder_;
  std::string text_;
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
  }
  return "";
}

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

Result<std::unique_ptr<TextModel>> TextModel::load(const std::string& path, const LoadOptions& options) {
  const auto begin = Clock::now();
  DECANT_ASSIGN(const Layout layout, find_layout(path));
  const Component* decoder = layout.decoder();
  if (!decoder)
    return unsupported(path + ": none of its components is a decoder (looked for 'decode' and 'model')");
  auto model = std::make_unique<TextModel>();
  if (options.with_text) {
    DECANT_ASSIGN(model->files_, TextFiles::load(layout));
  } else {
    model->files_.emplace();
  }
  DECANT_ASSIGN(auto graph, load_graph(layout, *decoder));
  DECANT_RETURN_IF_ERROR(passes::optimize_for_generation(*graph).with_context(decoder->path));
  if (options.compute_type == DType::kFloat16 || options.compute_type == DType::kBFloat16)
    DECANT_RETURN_IF_ERROR(passes::hold_weights(*graph, options.compute_type).status());
  DECANT_ASSIGN(auto engine, runtime::Engine::create(options.threads, options.isa));
  DECANT_ASSIGN(auto plan, runtime::Plan::compile(std::move(graph), engine));
  const int64_t own_limit =
      std::min(kDefaultCacheLen, model->files_->max_positions().value_or(kDefaultCacheLen));
  DECANT_ASSIGN(model->session_, runtime::Session::create(std::move(plan), options.max_cache_len, own_limit));
  model->load_seconds_ = seconds_since(begin);
  return model;
}

Result<Generation> TextModel::generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                       const std::function<void(std::string_view)>& on_text) {
  Generation g;
  g.prompt_tokens = static_cast<int64_t>(prompt.size());
  const std::vector<int64_t> ids(prompt.begin(), prompt.end());
  auto begin = Clock::now();
  DECANT_RETURN_IF_ERROR(session_->append(ids));
  g.prefill_seconds = seconds_since(begin);
  DECANT_ASSIGN(text::Sampler sampler, text::Sampler::create(options.sampling, session_->logits().size()));
  DECANT_RETURN_IF_ERROR(sampler.see_prompt(prompt));
  DECANT_ASSIGN(Output output, Output::create(*files_, options, on_text));

  begin = Clock::now();
  while (static_cast<int64_t>(g.ids.size()) < options.max_new_tokens) {
    DECANT_ASSIGN(const int32_t id, sampler.next(session_->logits()));
    if (!options.ignore_eos && files_->stop_tokens().contains(id)) {
      g.finish = Finish::kStop;
      break;
    }
    g.ids.push_back(id);
    output.push(id);
    if (output.stopped()) {
      g.finish = Finish::kStopString;
      break;
    }
    const bool last = static_cast<int64_t>(g.ids.size()) == options.max_new_tokens;
    if (last || session_->length() >= session_->capacity()) break;
    const int64_t next = id;
    DECANT_RETURN_IF_ERROR(session_->append({&next, 1}));
    ++g.decode_steps;
  }
  output.finish();
  g.decode_seconds = seconds_since(begin);
  g.text = output.take();
  return g;
}

}  // namespace decant::app
