#include "text/tokenizer/normalizer.h"

#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/char_class.h"
#include "text/tokenizer/utf8.h"

namespace decant::text::bpe {
namespace {

constexpr size_t kMaxText = size_t{1} << 31;

Status replace_regex(const NormalizerStep& step, AlignedText& text) {
  std::vector<Match> matches;
  DECANT_RETURN_IF_ERROR(step.regex->find_all(text.text, 0, matches));
  AlignedText out;
  out.aligned = text.aligned;
  for (const Match& m : matches) {
    if (m.is_match) {
      const Span span = m.range.end > 0 ? text.span_at(m.range.end - 1) : Span{};
      out.append(step.content, span);
    } else {
      out.append(text, m.range);
    }
    if (out.text.size() > kMaxText) return out_of_range("normalized text passes 2 GB");
  }
  text = std::move(out);
  return ok_status();
}

void strip(const NormalizerStep& step, AlignedText& text) {
  Range keep{0, text.text.size()};
  size_t n = 0;
  while (step.left && keep.begin < keep.end &&
         (char_class(decode_valid(text.text.data() + keep.begin, n)) & kSpace)) {
    keep.begin += n;
  }
  while (step.right && keep.begin < keep.end) {
    const size_t last = previous_start(text.text, keep.end);
    if ((char_class(decode_valid(text.text.data() + last, n)) & kSpace) == 0) break;
    keep.end = last;
  }
  AlignedText out;
  out.aligned = text.aligned;
  out.append(text, keep);
  text = std::move(out);
}

void to_byte_alphabet(AlignedText& text) {
  AlignedText out;
  out.aligned = text.aligned;
  for (size_t i = 0; i < text.text.size(); ++i) {
    std::string bytes;
    append_byte_alphabet(std::string_view(text.text).substr(i, 1), bytes);
    out.append(bytes, text.span_at(i));
  }
  text = std::move(out);
}

}  // namespace

void prepend(std::string_view prefix, AlignedText& text) {
  if (text.text.empty() || prefix.empty()) return;
  AlignedText out;
  out.aligned = text.aligned;
  out.text.reserve(prefix.size() + text.text.size());
  out.append(prefix, text.span_at(0));
  out.append(text, {0, text.text.size()});
  text = std::move(out);
}

void replace_literal(std::string_view pattern, std::string_view content, AlignedText& text) {
  size_t found = pattern.empty() ? std::string::npos : text.text.find(pattern);
  if (found == std::string::npos) return;
  AlignedText out;
  out.aligned = text.aligned;
  out.text.reserve(text.text.size() + text.text.size() / 4);
  size_t copied = 0;
  for (; found != std::string::npos; found = text.text.find(pattern, copied)) {
    out.append(text, {copied, found});
    copied = found + pattern.size();
    out.append(content, text.span_at(copied - 1));
  }
  out.append(text, {copied, text.text.size()});
  text = std::move(out);
}

Status Normalizer::run(AlignedText& text) const {
  for (const NormalizerStep& step : steps_) {
    switch (step.kind) {
      case NormalizerStep::kUnicode:
        normalize_unicode(step.form, text);
        break;
      case NormalizerStep::kReplace:
        if (step.regex) {
          DECANT_RETURN_IF_ERROR(replace_regex(step, text));
        } else {
          const size_t grown =
              text.text.size() * (step.content.size() / std::max<size_t>(1, step.pattern.size()) + 1);
          if (grown > 8 * kMaxText) return out_of_range("normalized text passes 2 GB");
          replace_literal(step.pattern, step.content, text);
        }
        break;
      case NormalizerStep::kPrepend:
        prepend(step.content, text);
        break;
      case NormalizerStep::kLowercase:
        lowercase(text);
        break;
      case NormalizerStep::kStrip:
        strip(step, text);
        break;
      case NormalizerStep::kStripAccents:
        strip_accents(text);
        break;
      case NormalizerStep::kByteLevel:
        to_byte_alphabet(text);
        break;
    }
    if (text.text.size() > kMaxText) return out_of_range("normalized text passes 2 GB");
  }
  return ok_status();
}

}  // namespace decant::text::bpe
