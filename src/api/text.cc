#include "decant/text.h"

#include "api/load.h"
#include "app/conversation.h"
#include "app/text_model.h"
#include "base/status.h"
#include "ir/tensor.h"

namespace decant {
namespace {

app::GenerateOptions options_of(const GenerateOptions& o) {
  app::GenerateOptions options;
  options.max_new_tokens = o.max_new_tokens;
  options.ignore_eos = o.ignore_stop_tokens;
  options.stop_strings = o.stop_strings;
  options.sampling.temperature = o.sampling.temperature;
  options.sampling.top_k = o.sampling.top_k;
  options.sampling.top_p = o.sampling.top_p;
  options.sampling.min_p = o.sampling.min_p;
  options.sampling.repetition_penalty = o.sampling.repetition_penalty;
  options.sampling.seed = o.sampling.seed;
  options.limits = o.limits;
  return options;
}

FinishReason public_form(app::Finish finish) {
  switch (finish) {
    case app::Finish::kStop:
      return FinishReason::kStop;
    case app::Finish::kStopString:
      return FinishReason::kStopString;
    case app::Finish::kInterrupted:
      return FinishReason::kInterrupted;
    case app::Finish::kLength:
      break;
  }
  return FinishReason::kLength;
}

Generation public_form(app::Generation g) {
  Generation out;
  out.ids = std::move(g.ids);
  out.text = std::move(g.text);
  out.finish = public_form(g.finish);
  out.stop_id = g.stop_id;
  out.prompt_tokens = g.prompt_tokens;
  out.prefill_seconds = g.prefill_seconds;
  out.decode_seconds = g.decode_seconds;
  return out;
}

}  // namespace

struct TextModel::Impl {
  std::unique_ptr<app::TextModel> model;
  uint64_t uses = 0;  ///< of the sequence: a stream that was started before the last one is over

  runtime::Session& use() {
    ++uses;
    return model->session();
  }
};

struct TokenStream::Impl {
  TextModel::Impl* owner;
  uint64_t use;
  app::TokenSteps steps;
};

TokenStream::TokenStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TokenStream::TokenStream(TokenStream&&) noexcept = default;
TokenStream& TokenStream::operator=(TokenStream&&) noexcept = default;
TokenStream::~TokenStream() = default;

Result<std::optional<TokenStep>> TokenStream::next() {
  if (impl_->use != impl_->owner->uses)
    return invalid_argument("the model's sequence was used for something else since this generation began");
  DECANT_ASSIGN(std::optional<app::TokenSteps::Step> step, impl_->steps.next());
  if (!step) return std::optional<TokenStep>();
  return std::optional<TokenStep>(TokenStep{step->id, std::move(step->text)});
}

Generation TokenStream::generation() const { return public_form(impl_->steps.generation()); }

TextModel::TextModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TextModel::TextModel(TextModel&&) noexcept = default;
TextModel& TextModel::operator=(TextModel&&) noexcept = default;
TextModel::~TextModel() = default;

Result<TextModel> TextModel::load(const std::string& path, const LoadOptions& options) {
  if (!options.custom_ops.empty()) return unsupported(path + ": text models with custom operators");
  DECANT_ASSIGN(const std::string local, api::local_path(path, options));
  app::LoadOptions o;
  o.threads = options.threads;
  o.isa = options.isa;
  o.max_cache_len = options.max_cache_len;
  o.dtype = options.dtype;
  auto impl = std::make_unique<Impl>();
  DECANT_ASSIGN(impl->model, app::TextModel::load(local, o));
  return TextModel(std::move(impl));
}

Result<TextModel> TextModel::load(const HubModel& model, const LoadOptions& options) {
  return load(api::path_of(model), options);
}

Result<std::vector<int32_t>> TextModel::encode(std::string_view text, bool add_special) const {
  DECANT_ASSIGN(const text::Tokenizer* tokenizer, impl_->model->files().tokenizer());
  return tokenizer->encode(text, add_special);
}

Result<std::string> TextModel::decode(std::span<const int32_t> ids) const {
  DECANT_ASSIGN(const text::Tokenizer* tokenizer, impl_->model->files().tokenizer());
  return tokenizer->decode(ids, true);
}

Result<std::string> TextModel::render_chat(std::string_view json) const {
  DECANT_ASSIGN(const text::Rendered rendered, impl_->model->files().render_conversation(json));
  return rendered.text;
}

Result<Generation> TextModel::generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                       const TextCallback& on_text) {
  ++impl_->uses;
  DECANT_ASSIGN(app::Generation g, impl_->model->generate(prompt, options_of(options), on_text));
  return public_form(std::move(g));
}

Result<Generation> TextModel::generate(std::string_view prompt, const GenerateOptions& options,
                                       const TextCallback& on_text) {
  DECANT_ASSIGN(const std::vector<int32_t> ids, encode(prompt));
  return generate(ids, options, on_text);
}

Result<TokenStream> TextModel::start(std::span<const int32_t> prompt, const GenerateOptions& options) {
  ++impl_->uses;
  DECANT_ASSIGN(app::TokenSteps steps, impl_->model->start(prompt, options_of(options)));
  return TokenStream(
      std::unique_ptr<TokenStream::Impl>(new TokenStream::Impl{impl_.get(), impl_->uses, std::move(steps)}));
}

Result<TokenStream> TextModel::start(const NamedTensors& inputs, std::span<const int32_t> decoder_prompt,
                                     const GenerateOptions& options) {
  ++impl_->uses;
  app::NamedTensors tensors;
  for (const auto& [name, tensor] : inputs) {
    const auto handle = std::make_shared<Tensor>(tensor);
    tensors.emplace_back(name, ir::Tensor::view(tensor.dtype(), {tensor.dims().begin(), tensor.dims().end()},
                                                tensor.data(), handle));
  }
  DECANT_ASSIGN(app::TokenSteps steps, impl_->model->start(tensors, decoder_prompt, options_of(options)));
  return TokenStream(
      std::unique_ptr<TokenStream::Impl>(new TokenStream::Impl{impl_.get(), impl_->uses, std::move(steps)}));
}

Status TextModel::append(std::span<const int32_t> ids) {
  return impl_->use().append(std::vector<int64_t>(ids.begin(), ids.end()));
}
Status TextModel::rewind(int64_t length) { return impl_->use().rewind(length); }
Result<int64_t> TextModel::keep_prefix(std::span<const int32_t> ids) {
  return impl_->use().keep_prefix(std::vector<int64_t>(ids.begin(), ids.end()));
}
int64_t TextModel::length() const { return impl_->model->session().length(); }
int64_t TextModel::capacity() const { return impl_->model->session().capacity(); }
std::span<const float> TextModel::logits() const { return impl_->model->session().logits(); }

struct Chat::Impl {
  TextModel::Impl* owner;
  app::Conversation conversation;
};

Chat::Chat(TextModel& model, std::string system)
    : impl_(new Impl{model.impl_.get(), app::Conversation(*model.impl_->model)}) {
  if (!system.empty()) impl_->conversation.add("system", system);
}
Chat::~Chat() = default;
Chat::Chat(Chat&&) noexcept = default;

Result<Generation> Chat::send(std::string_view message, const GenerateOptions& options,
                              const TextCallback& on_text) {
  ++impl_->owner->uses;
  DECANT_ASSIGN(app::Generation g, impl_->conversation.send(message, options_of(options), on_text));
  return public_form(std::move(g));
}

}  // namespace decant
