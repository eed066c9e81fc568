#include "text/tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/char_class.h"
#include "text/tokenizer/utf8.h"

namespace decant::text::bpe {
namespace {

/// Every character with a class in `wanted` is a match of its own; the gaps are joined.
void match_class(const AlignedText& text, Range piece, uint8_t wanted, std::vector<Match>& out) {
  const uint8_t* table = char_class_table();
  size_t gap = piece.begin;
  for (size_t i = piece.begin, n = 0; i < piece.end; i += n) {
    if ((char_class(table, decode_valid(text.text.data() + i, n)) & wanted) == 0) continue;
    if (gap < i) out.push_back({{gap, i}, false});
    out.push_back({{i, i + n}, true});
    gap = i + n;
  }
  if (gap < piece.end) out.push_back({{gap, piece.end}, false});
}

void match_literal(const AlignedText& text, Range piece, std::string_view literal, std::vector<Match>& out) {
  const std::string_view view = text.view(piece);
  size_t gap = 0;
  for (size_t at = literal.empty() ? std::string_view::npos : view.find(literal);
       at != std::string_view::npos; at = view.find(literal, gap)) {
    if (gap < at) out.push_back({{piece.begin + gap, piece.begin + at}, false});
    gap = at + literal.size();
    out.push_back({{piece.begin + at, piece.begin + gap}, true});
  }
  if (gap < view.size()) out.push_back({{piece.begin + gap, piece.end}, false});
}

/// Rebuilds the text from its pieces, with `rewrite(piece, out)` appending what a piece becomes.
template <typename Rewrite>
void rewrite_pieces(AlignedText& text, std::vector<Range>& pieces, Rewrite rewrite) {
  AlignedText out;
  out.aligned = text.aligned;
  out.text.reserve(text.text.size() + text.text.size() / 2);
  for (Range& piece : pieces) {
    const size_t begin = out.text.size();
    rewrite(piece, out);
    piece = {begin, out.text.size()};
  }
  text = std::move(out);
}

Status split(const PreTokenizerStep& step, const AlignedText& text, Range piece, std::vector<Range>& out) {
  const bool keeps_all = step.behavior == SplitBehavior::kIsolated && !step.invert;
  const bool keeps_matches = step.behavior == SplitBehavior::kRemoved && step.invert;
  if (step.known && (keeps_all || keeps_matches)) {
    split_known(*step.known, text.view(piece), piece.begin, out);
    return ok_status();
  }
  std::vector<Match> matches;
  if (step.known) {
    std::vector<Range> ranges;
    split_known(*step.known, text.view(piece), piece.begin, ranges);
    for (const Range r : ranges) matches.push_back({r, true});
  } else if (step.regex) {
    DECANT_RETURN_IF_ERROR(step.regex->find_all(text.view(piece), piece.begin, matches));
  } else {
    match_literal(text, piece, step.literal, matches);
  }
  if (step.invert) {
    for (Match& m : matches) m.is_match = !m.is_match;
  }
  apply_behavior(step.behavior, matches, out);
  return ok_status();
}

void metaspace(const PreTokenizerStep& step, AlignedText& text, std::vector<Range>& pieces) {
  rewrite_pieces(text, pieces, [&](Range piece, AlignedText& out) {
    const std::string_view view = text.view(piece);
    const bool starts = view.starts_with(' ') || view.starts_with(step.replacement);
    const Span first = text.span_at(piece.begin);
    const bool wanted =
        step.prepend == PrependScheme::kAlways || (step.prepend == PrependScheme::kFirst && first.begin == 0);
    if (wanted && !starts) out.append(step.replacement, first);
    size_t copied = piece.begin;
    for (size_t i = piece.begin; i < piece.end; ++i) {
      if (text.text[i] != ' ') continue;
      out.append(text, {copied, i});
      out.append(step.replacement, text.span_at(i));
      copied = i + 1;
    }
    out.append(text, {copied, piece.end});
  });
  if (!step.split) return;
  std::vector<Range> cut;
  std::vector<Match> matches;
  for (const Range piece : pieces) {
    matches.clear();
    match_literal(text, piece, step.replacement, matches);
    apply_behavior(SplitBehavior::kMergedWithNext, matches, cut);
  }
  pieces = std::move(cut);
}

void byte_level(const PreTokenizerStep& step, bool defer_bytes, AlignedText& text,
                std::vector<Range>& pieces) {
  if (step.add_prefix_space) {
    const auto lacks_space = [&](Range p) { return text.text[p.begin] != ' '; };
    if (std::any_of(pieces.begin(), pieces.end(), lacks_space)) {
      rewrite_pieces(text, pieces, [&](Range piece, AlignedText& out) {
        if (lacks_space(piece)) out.append(" ", text.span_at(piece.begin));
        out.append(text, piece);
      });
    }
  }
  if (step.use_regex) {
    std::vector<Range> cut;
    cut.reserve(pieces.size() + text.text.size() / 4);
    for (const Range piece : pieces) split_known(KnownPattern::kGpt2, text.view(piece), piece.begin, cut);
    pieces = std::move(cut);
  }
  if (defer_bytes) return;
  rewrite_pieces(text, pieces, [&](Range piece, AlignedText& out) {
    std::string bytes;
    for (size_t i = piece.begin; i < piece.end; ++i) {
      bytes.clear();
      append_byte_alphabet(text.view({i, i + 1}), bytes);
      out.append(bytes, text.span_at(i));
    }
  });
}

}  // namespace

void apply_behavior(SplitBehavior behavior, const std::vector<Match>& matches, std::vector<Range>& out) {
  const auto first = static_cast<ptrdiff_t>(out.size());
  switch (behavior) {
    case SplitBehavior::kIsolated:
      for (const Match& m : matches) out.push_back(m.range);
      break;
    case SplitBehavior::kRemoved:
      for (const Match& m : matches) {
        if (!m.is_match) out.push_back(m.range);
      }
      break;
    case SplitBehavior::kContiguous:
      for (size_t i = 0; i < matches.size(); ++i) {
        if (i > 0 && matches[i].is_match == matches[i - 1].is_match) {
          out.back().end = matches[i].range.end;
        } else {
          out.push_back(matches[i].range);
        }
      }
      break;
    case SplitBehavior::kMergedWithPrevious: {
      bool previous = false;
      for (const Match& m : matches) {
        if (m.is_match && !previous && static_cast<ptrdiff_t>(out.size()) > first) {
          out.back().end = m.range.end;
        } else {
          out.push_back(m.range);
        }
        previous = m.is_match;
      }
      break;
    }
    case SplitBehavior::kMergedWithNext: {
      bool previous = false;
      for (auto m = matches.rbegin(); m != matches.rend(); ++m) {
        if (m->is_match && !previous && static_cast<ptrdiff_t>(out.size()) > first) {
          out.back().begin = m->range.begin;
        } else {
          out.push_back(m->range);
        }
        previous = m->is_match;
      }
      std::reverse(out.begin() + first, out.end());
      break;
    }
  }
  out.erase(std::remove_if(out.begin() + first, out.end(), [](Range r) { return r.size() == 0; }), out.end());
}

bool PreTokenizer::needs_spans() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const PreTokenizerStep& s) {
    return s.kind == PreTokenizerStep::kMetaspace && s.prepend == PrependScheme::kFirst;
  });
}

Status PreTokenizer::run(AlignedText& text, std::vector<Range>& pieces) const {
  pieces.clear();
  if (text.text.empty()) return ok_status();
  pieces.push_back({0, text.text.size()});
  std::vector<Range> cut;
  std::vector<Match> matches;
  for (size_t s = 0; s < steps_.size() && !pieces.empty(); ++s) {
    const PreTokenizerStep& step = steps_[s];
    if (step.kind == PreTokenizerStep::kByteLevel) {
      byte_level(step, defer_bytes_ && s + 1 == steps_.size(), text, pieces);
      continue;
    }
    if (step.kind == PreTokenizerStep::kMetaspace) {
      metaspace(step, text, pieces);
      continue;
    }
    cut.clear();
    cut.reserve(text.text.size() / 4 + pieces.size());
    for (const Range piece : pieces) {
      if (step.kind == PreTokenizerStep::kSplit) {
        DECANT_RETURN_IF_ERROR(split(step, text, piece, cut));
        continue;
      }
      matches.clear();
      const uint8_t wanted = step.kind == PreTokenizerStep::kDigits        ? kNumber
                             : step.kind == PreTokenizerStep::kPunctuation ? kPunctuation
                                                                           : kSpace;
      match_class(text, piece, wanted, matches);
      apply_behavior(step.behavior, matches, cut);
    }
    std::swap(pieces, cut);
  }
  return ok_status();
}

}  // namespace decant::text::bpe
