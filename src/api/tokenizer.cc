#include "decant/tokenizer.h"

#include "app/hub_model.h"
#include "app/text_files.h"
#include "base/status.h"
#include "text/tokenizer/tokenizer.h"

namespace decant {

struct Tokenizer::Impl {
  text::Tokenizer tokenizer;
};

Tokenizer::Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Result<Tokenizer> Tokenizer::load(const std::string& path) {
  DECANT_ASSIGN(const std::string local, app::local_model(path));
  DECANT_ASSIGN(text::Tokenizer tokenizer, app::open_tokenizer(local));
  return Tokenizer(std::shared_ptr<const Impl>(new Impl{std::move(tokenizer)}));
}

Result<Tokenizer> Tokenizer::from_json(std::string_view json) {
  DECANT_ASSIGN(text::Tokenizer tokenizer, text::Tokenizer::from_json(json, "tokenizer.json"));
  return Tokenizer(std::shared_ptr<const Impl>(new Impl{std::move(tokenizer)}));
}

Result<Encoding> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  text::EncodeOptions o;
  o.add_special = options.add_special;
  o.offsets = options.offsets;
  o.special_as_text = options.special_as_text;
  DECANT_ASSIGN(text::Encoding encoding, impl_->tokenizer.encode(text, o));
  return Encoding{std::move(encoding.ids), std::move(encoding.offsets)};
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  return impl_->tokenizer.decode(ids, skip_special);
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  return impl_->tokenizer.token_to_id(token);
}
std::optional<std::string> Tokenizer::id_to_token(int32_t id) const {
  return impl_->tokenizer.id_to_token(id);
}
bool Tokenizer::is_special(int32_t id) const { return impl_->tokenizer.is_special(id); }
int64_t Tokenizer::vocab_size() const { return static_cast<int64_t>(impl_->tokenizer.vocab_size()); }

struct TokenDecoder::Impl {
  text::DecodeStream stream;
};

TokenDecoder::TokenDecoder(const Tokenizer& tokenizer, bool skip_special)
    : impl_(new Impl{text::DecodeStream(tokenizer.impl_->tokenizer, skip_special)}) {}
TokenDecoder::TokenDecoder(TokenDecoder&&) noexcept = default;
TokenDecoder& TokenDecoder::operator=(TokenDecoder&&) noexcept = default;
TokenDecoder::~TokenDecoder() = default;

std::string TokenDecoder::push(int32_t id) { return impl_->stream.push(id); }
std::string TokenDecoder::flush() { return impl_->stream.flush(); }

}  // namespace decant
