#include "text/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/tokenizer/char_class.h"
#include "text/tokenizer/tokenizer_impl.h"
#include "text/tokenizer/utf8.h"

namespace decant::text {
namespace {

using bpe::AddedTokenMatcher;
using bpe::AlignedText;
using bpe::Range;

constexpr size_t kMaxText = size_t{1} << 31;
constexpr size_t kPooledScratch = 4;

/// White space at both ends of a token, in characters, as offset trimming counts it: U+0120 stands for a
/// blank.
struct Blanks {
  uint32_t leading = 0;
  uint32_t trailing = 0;
};

Blanks count_blanks(std::string_view token) {
  const auto is_blank = [&](size_t at, size_t& n) {
    const char32_t c = bpe::decode_valid(token.data() + at, n);
    return c == 0x120 || (bpe::char_class(c) & bpe::kSpace) != 0;
  };
  Blanks b;
  size_t n = 0;
  for (size_t i = 0; i < token.size() && is_blank(i, n); i += n) ++b.leading;
  for (size_t end = token.size(); end > 0 && is_blank(bpe::previous_start(token, end), n); end -= n)
    ++b.trailing;
  return b;
}

/// One encoding call: walks a text through the parts and gathers ids, offsets and blanks.
class Encoder {
 public:
  Encoder(const Tokenizer::Impl& impl, const EncodeOptions& options, bpe::BpeScratch& scratch)
      : impl_(impl),
        options_(options),
        scratch_(scratch),
        aligned_(options.offsets || impl.pre_tokenizer.needs_spans()) {}

  Status run(std::string_view text) {
    std::vector<AddedTokenMatcher::Found> parts;
    split(impl_.added.raw(), text, parts);
    uint32_t position = 0;  // code points before `part`
    for (const auto& part : parts) {
      const std::string_view view = text.substr(part.range.begin, part.range.size());
      AlignedText segment;
      if (part.id == bpe::kNoToken || aligned_) position = load(view, position, segment);
      if (part.id != bpe::kNoToken) {
        add_token(part.id, segment, {0, segment.text.size()}, view);
        continue;
      }
      DECANT_RETURN_IF_ERROR(impl_.normalizer.run(segment));
      DECANT_RETURN_IF_ERROR(encode_segment(std::move(segment)));
    }
    return ok_status();
  }

  Encoding finish() && {
    if (options_.offsets) {
      for (const auto& trim : impl_.post_processor.trims) trim_offsets(trim.add_prefix_space);
    }
    if (options_.add_special) {
      const auto& post = impl_.post_processor;
      out_.ids.insert(out_.ids.begin(), post.prefix.begin(), post.prefix.end());
      out_.ids.insert(out_.ids.end(), post.suffix.begin(), post.suffix.end());
      if (options_.offsets) {
        out_.offsets.insert(out_.offsets.begin(), post.prefix.size(), {0, 0});
        out_.offsets.insert(out_.offsets.end(), post.suffix.size(), {0, 0});
      }
    }
    return std::move(out_);
  }

 private:
  void split(const AddedTokenMatcher& matcher, std::string_view text,
             std::vector<AddedTokenMatcher::Found>& parts) {
    if (!matcher.empty()) {
      matcher.split(text, options_.special_as_text, parts);
    } else if (!text.empty()) {
      parts.push_back({{0, text.size()}, bpe::kNoToken});
    }
  }

  /// Copies a part of the input; returns the position behind it.
  uint32_t load(std::string_view view, uint32_t position, AlignedText& segment) const {
    segment.text = view;
    segment.aligned = aligned_;
    if (!aligned_) return position;
    segment.spans.reserve(view.size());
    for (size_t i = 0; i < view.size(); ++position) {
      const size_t n = bpe::utf8_length(view[i]);
      segment.spans.insert(segment.spans.end(), n, {position, position + 1});
      i += n;
    }
    return position;
  }

  Status encode_segment(AlignedText segment) {
    const AddedTokenMatcher& matcher = impl_.added.normalized();
    if (matcher.empty()) return encode_text(segment);
    std::vector<AddedTokenMatcher::Found> parts;
    split(matcher, segment.text, parts);
    for (const auto& part : parts) {
      if (part.id != bpe::kNoToken) {
        add_token(part.id, segment, part.range, segment.view(part.range));
        continue;
      }
      AlignedText piece;
      piece.aligned = segment.aligned;
      piece.append(segment, part.range);
      DECANT_RETURN_IF_ERROR(encode_text(piece));
    }
    return ok_status();
  }

  Status encode_text(AlignedText& text) {
    DECANT_RETURN_IF_ERROR(impl_.pre_tokenizer.run(text, pieces_));
    out_.ids.reserve(out_.ids.size() + text.text.size() / 3);
    for (const Range piece : pieces_) {
      words_.clear();
      impl_.model.cut_words(text.text, piece, words_);
      for (const Range word : words_) encode_word(text, word);
    }
    return ok_status();
  }

  void encode_word(const AlignedText& text, Range word) {
    if (!options_.offsets) {
      impl_.model.encode(text.view(word), scratch_, out_.ids, nullptr);
      return;
    }
    const size_t first = out_.ids.size();
    lengths_.clear();
    impl_.model.encode(text.view(word), scratch_, out_.ids, &lengths_);
    size_t at = word.begin;
    for (size_t i = 0; i < lengths_.size(); ++i) {
      const size_t end = at + lengths_[i];
      out_.offsets.emplace_back(text.span_at(at).begin, text.span_at(end - 1).end);
      if (!impl_.post_processor.trims.empty()) {
        blanks_.push_back(count_blanks(impl_.model.vocabulary().token(out_.ids[first + i])));
      }
      at = end;
    }
  }

  void add_token(int32_t id, const AlignedText& text, Range range, std::string_view matched) {
    out_.ids.push_back(id);
    if (!options_.offsets) return;
    out_.offsets.emplace_back(text.span_at(range.begin).begin, text.span_at(range.end - 1).end);
    if (!impl_.post_processor.trims.empty()) blanks_.push_back(count_blanks(matched));
  }

  void trim_offsets(bool add_prefix_space) {
    for (size_t i = 0; i < out_.offsets.size(); ++i) {
      auto& [begin, end] = out_.offsets[i];
      uint32_t leading = blanks_[i].leading;
      if (leading > 0) {
        if ((i == 0 || begin == 0) && add_prefix_space && leading == 1) leading = 0;
        begin = std::min(begin + leading, end);
      }
      const uint32_t trailing = blanks_[i].trailing;
      if (trailing > 0 && end >= trailing) end = std::max(end - trailing, begin);
    }
  }

  const Tokenizer::Impl& impl_;
  const EncodeOptions& options_;
  bpe::BpeScratch& scratch_;
  const bool aligned_;
  Encoding out_;
  std::vector<Blanks> blanks_;
  std::vector<Range> pieces_;
  std::vector<Range> words_;
  std::vector<uint32_t> lengths_;
};

}  // namespace

bool Tokenizer::Impl::decoded_token(int32_t id, bool skip_special, std::string_view& token) const {
  const AddedToken* added_token = added.find_id(id);
  if (added_token != nullptr) {
    token = added.decoded(*added_token);
  } else if (model.vocabulary().contains(id)) {
    token = model.vocabulary().token(id);
  } else {
    return false;
  }
  return !(skip_special && added_token != nullptr && added_token->special);
}

std::unique_ptr<bpe::BpeScratch> Tokenizer::Impl::take_scratch() const {
  {
    const std::lock_guard lock(mutex_);
    if (!pool_.empty()) {
      auto scratch = std::move(pool_.back());
      pool_.pop_back();
      return scratch;
    }
  }
  return std::make_unique<bpe::BpeScratch>();
}

void Tokenizer::Impl::give_scratch(std::unique_ptr<bpe::BpeScratch> scratch) const {
  scratch->release_large();
  const std::lock_guard lock(mutex_);
  if (pool_.size() < kPooledScratch) pool_.push_back(std::move(scratch));
}

Tokenizer::Tokenizer(std::shared_ptr<const Impl> impl)
    : impl_(std::move(impl)), special_ids_(impl_->special_ids) {}

Result<Encoding> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (text.size() >= kMaxText / 4) {
    return out_of_range(fmt::format("text of {} bytes (at most 512 MB are encoded at once)", text.size()));
  }
  std::string repaired;
  if (!bpe::is_valid_utf8(text)) {
    repaired = bpe::replace_invalid_utf8(text);
    text = repaired;
  }
  auto scratch = impl_->take_scratch();
  Encoder encoder(*impl_, options, *scratch);
  Status status = encoder.run(text);
  impl_->give_scratch(std::move(scratch));
  if (!status.ok()) return status;
  return std::move(encoder).finish();
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, bool add_special) const {
  DECANT_ASSIGN(Encoding encoding, encode(text, EncodeOptions{.add_special = add_special}));
  return std::move(encoding.ids);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string out;
  bpe::Decoder::State state;
  std::string_view token;
  for (const int32_t id : ids) {
    if (impl_->decoded_token(id, skip_special, token)) impl_->decoder.push(token, false, state, out);
  }
  impl_->decoder.finish(state, out);
  return out;
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  if (const AddedToken* added = impl_->added.find(token)) return added->id;
  const int32_t id = impl_->model.vocabulary().find(token);
  return id == bpe::kNoToken ? std::nullopt : std::optional(id);
}

std::optional<std::string> Tokenizer::id_to_token(int32_t id) const {
  if (const AddedToken* added = impl_->added.find_id(id)) return added->content;
  if (!impl_->model.vocabulary().contains(id)) return std::nullopt;
  return std::string(impl_->model.vocabulary().token(id));
}

bool Tokenizer::is_special(int32_t id) const {
  const AddedToken* added = impl_->added.find_id(id);
  return added != nullptr && added->special;
}

size_t Tokenizer::vocab_size() const {
  const auto& tokens = impl_->added.all();
  const auto extra = std::count_if(tokens.begin(), tokens.end(), [&](const AddedToken& t) {
    return impl_->model.vocabulary().find(t.content) == bpe::kNoToken;
  });
  return impl_->model.vocabulary().size() + static_cast<size_t>(extra);
}

int32_t Tokenizer::id_limit() const {
  auto limit = static_cast<int32_t>(impl_->model.vocabulary().id_limit());
  if (!impl_->added.all().empty()) limit = std::max(limit, impl_->added.all().back().id + 1);
  return limit;
}

const std::vector<AddedToken>& Tokenizer::added_tokens() const { return impl_->added.all(); }
const SpecialTokenIds& Tokenizer::special_ids() const { return special_ids_; }
void Tokenizer::set_special_ids(const SpecialTokenIds& ids) { special_ids_ = ids; }

struct DecodeStream::State {
  std::shared_ptr<const Tokenizer::Impl> impl;
  bool skip_special;
  bpe::Decoder::State decoder;
};

DecodeStream::DecodeStream(const Tokenizer& tokenizer, bool skip_special)
    : state_(std::make_unique<State>(State{tokenizer.impl_, skip_special, {}})) {}
DecodeStream::~DecodeStream() = default;
DecodeStream::DecodeStream(DecodeStream&&) noexcept = default;
DecodeStream& DecodeStream::operator=(DecodeStream&&) noexcept = default;

std::string DecodeStream::push(int32_t id) {
  std::string out;
  std::string_view token;
  if (state_->impl->decoded_token(id, state_->skip_special, token)) {
    state_->impl->decoder.push(token, true, state_->decoder, out);
  }
  return out;
}

std::string DecodeStream::flush() {
  std::string out;
  state_->impl->decoder.finish(state_->decoder, out);
  return out;
}

}  // namespace decant::text
