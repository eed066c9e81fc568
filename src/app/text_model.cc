#include "app/text_model.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "app/generation_rules.h"
#include "app/layout.h"
#include "app/load_graph.h"
#include "passes/passes.h"

namespace decant::app {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Runs a generation to its end.
Result<Generation> run_all(Result<TokenSteps> steps, const std::function<void(std::string_view)>& on_text) {
  if (!steps.ok()) return std::move(steps).status();
  for (;;) {
    DECANT_ASSIGN(const std::optional<TokenSteps::Step> step, steps->next());
    if (!step) return steps->take();
    if (on_text && !step->text.empty()) on_text(step->text);
  }
}

}  // namespace

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
  DECANT_ASSIGN(Generation g, run_all(start(prompt, options), on_text));
  g.prompt_tokens = static_cast<int64_t>(prompt.size());
  return g;
}

Result<Generation> TextModel::generate(const NamedTensors& inputs, std::span<const int32_t> decoder_prompt,
                                       const GenerateOptions& options,
                                       const std::function<void(std::string_view)>& on_text) {
  return run_all(start(inputs, decoder_prompt, options), on_text);
}

Result<TokenSteps> TextModel::start(std::span<const int32_t> prompt, const GenerateOptions& options) {
  if (!is_encoder_decoder()) return TokenSteps::create(*session_, *files_, prompt, options);
  if (prompt.empty()) return invalid_argument("no token ids were given");
  DECANT_ASSIGN(ir::Tensor ids, ids_tensor(prompt));
  return start({{"input_ids", std::move(ids)}}, {}, options);
}

Result<TokenSteps> TextModel::start(const NamedTensors& inputs, std::span<const int32_t> decoder_prompt,
                                    const GenerateOptions& options) {
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
      const auto given =
          std::find_if(inputs.begin(), inputs.end(), [](const auto& i) { return i.first == "input_ids"; });
      const bool masked = std::any_of(inputs.begin(), inputs.end(),
                                      [](const auto& i) { return i.first == "attention_mask"; });
      if (given != inputs.end() && !masked && given->second.rank() == 2) {
        DECANT_ASSIGN(const ir::Tensor mask, mask_tensor(given->second.dims()[1]));
        DECANT_RETURN_IF_ERROR(session_->bind("attention_mask", mask));
      }
    }
  }
  std::vector<int32_t> ids(decoder_prompt.begin(), decoder_prompt.end());
  if (ids.empty()) {
    DECANT_ASSIGN(ids, GenerationRules(files_->generation()).decoder_start());
  }
  return TokenSteps::create(*session_, *files_, ids, options);
}

}  // namespace decant::app
