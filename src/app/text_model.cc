#include "app/text_model.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "app/generation_rules.h"
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
  DECANT_ASSIGN(const Layout layout, find_layout(path, options.dtype));
  if (!layout.missing.empty()) return not_found(path + ": text generation needs " + layout.missing);
  const Component* decoder = layout.decoder();
  if (!decoder)
    return unsupported(path + ": none of its components is a decoder (looked for 'decode' and 'model')");
  auto model = std::make_unique<TextModel>();
  if (options.with_text) {
    DECANT_ASSIGN(model->files_, TextFiles::load(layout));
  } else {
    model->files_.emplace();
  }
  DECANT_ASSIGN(auto engine, runtime::Engine::create(options.threads, options.isa));
  const Component* encoder = layout.find(Component::Role::kEncoder);
  if (encoder) {
    DECANT_ASSIGN(model->encoder_, Encoder::load(layout, *encoder, engine, options.precision));
  }
  bool branches = false;
  const auto compile = [&](const Component& c, bool with_past) -> Result<std::unique_ptr<runtime::Plan>> {
    DECANT_ASSIGN(auto graph, load_for_generation(layout, c, with_past, &branches));
    DECANT_RETURN_IF_ERROR(passes::optimize_for_generation(*graph).with_context(c.path));
    if (options.compute_type == DType::kFloat16 || options.compute_type == DType::kBFloat16)
      DECANT_RETURN_IF_ERROR(passes::hold_weights(*graph, options.compute_type).status());
    runtime::PlanOptions plan_options;
    plan_options.precision = options.precision;
    auto plan = runtime::Plan::compile(std::move(graph), engine, plan_options);
    if (!plan.ok()) return std::move(plan).status().with_context(c.path);
    return plan;
  };
  DECANT_ASSIGN(auto plan, compile(*decoder, true));
  std::unique_ptr<runtime::Plan> first;
  if (decoder->steps_only) {
    const Component* c = layout.find(Component::Role::kFirstStep);
    if (!c && branches) c = decoder;
    if (c) {
      DECANT_ASSIGN(first, compile(*c, false));
    }
  }
  const int64_t own_limit =
      std::min(kDefaultCacheLen, model->files_->max_positions().value_or(kDefaultCacheLen));
  DECANT_ASSIGN(model->session_, runtime::Session::create(std::move(plan), options.max_cache_len, own_limit,
                                                          std::move(first), decoder->steps_only));
  model->crossed_ = !model->session_->unbound().empty();
  model->load_seconds_ = seconds_since(begin);
  return model;
}

Result<Generation> TextModel::generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                       const std::function<void(std::string_view)>& on_text) {
  if (!is_encoder_decoder()) return decode(prompt, options, on_text);
  if (prompt.empty()) return invalid_argument("no token ids were given");
  DECANT_ASSIGN(ir::Tensor ids, ids_tensor(prompt));
  DECANT_ASSIGN(Generation g, generate({{"input_ids", std::move(ids)}}, {}, options, on_text));
  g.prompt_tokens = static_cast<int64_t>(prompt.size());
  return g;
}

Result<Generation> TextModel::generate(const NamedTensors& inputs, std::span<const int32_t> decoder_prompt,
                                       const GenerateOptions& options,
                                       const std::function<void(std::string_view)>& on_text) {
  std::string unknown;
  for (const auto& [name, tensor] : inputs) {
    const bool known = session_->has_constant(name) || (encoder_ && encoder_->takes(name));
    if (!known) unknown += (unknown.empty() ? "'" : ", '") + name + "'";
  }
  if (!unknown.empty()) return invalid_argument("neither encoder nor decoder has inputs " + unknown);
  if (encoder_) {
    DECANT_RETURN_IF_ERROR(encoder_->run({}, inputs, *session_));
  } else {
    for (const auto& [name, tensor] : inputs) DECANT_RETURN_IF_ERROR(session_->bind(name, tensor));
    // A graph with its encoder inside: every id counts.
    if (session_->has_constant("input_ids") && session_->has_constant("attention_mask")) {
      const auto ids =
          std::find_if(inputs.begin(), inputs.end(), [](const auto& i) { return i.first == "input_ids"; });
      const bool masked = std::any_of(inputs.begin(), inputs.end(),
                                      [](const auto& i) { return i.first == "attention_mask"; });
      if (ids != inputs.end() && !masked && ids->second.rank() == 2) {
        DECANT_ASSIGN(const ir::Tensor mask, mask_tensor(ids->second.dims()[1]));
        DECANT_RETURN_IF_ERROR(session_->bind("attention_mask", mask));
      }
    }
  }
  std::vector<int32_t> start(decoder_prompt.begin(), decoder_prompt.end());
  if (start.empty()) {
    DECANT_ASSIGN(start, GenerationRules(files_->generation()).decoder_start());
  }
  return decode(start, options, on_text);
}

Result<Generation> TextModel::decode(std::span<const int32_t> prompt, const GenerateOptions& options,
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
  const GenerationRules rules(files_->generation());
  std::vector<float> ruled;
  const auto next = [&]() -> Result<int32_t> {
    if (rules.empty()) return sampler.next(session_->logits());
    ruled.assign(session_->logits().begin(), session_->logits().end());
    rules.apply(session_->length(), g.ids.empty(), ruled);
    return sampler.next(ruled);
  };

  begin = Clock::now();
  while (static_cast<int64_t>(g.ids.size()) < options.max_new_tokens) {
    DECANT_ASSIGN(const int32_t id, next());
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
    const int64_t appended = id;
    DECANT_RETURN_IF_ERROR(session_->append({&appended, 1}));
    ++g.decode_steps;
  }
  output.finish();
  g.decode_seconds = seconds_since(begin);
  g.text = output.take();
  return g;
}

}  // namespace decant::app
