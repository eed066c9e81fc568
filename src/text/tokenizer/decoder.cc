#include "text/tokenizer/decoder.h"

#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/utf8.h"

namespace decant::text::bpe {
namespace {

constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// The byte that a token like <0x0A> stands for, or -1.
int fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const int high = hex_digit(token[3]);
  const int low = hex_digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string out;
  size_t copied = 0;
  for (size_t at = pattern.empty() ? std::string_view::npos : text.find(pattern);
       at != std::string_view::npos; at = text.find(pattern, copied)) {
    out.append(text.substr(copied, at - copied)).append(content);
    copied = at + pattern.size();
  }
  return out.append(text.substr(copied));
}

/// A regular expression that gives up leaves the text as it is.
std::string replace_regex(const Regex& regex, std::string_view text, std::string_view content) {
  std::vector<Match> matches;
  if (!regex.find_all(text, 0, matches).ok()) return std::string(text);
  std::string out;
  for (const Match& m : matches)
    out.append(m.is_match ? content : text.substr(m.range.begin, m.range.size()));
  return out;
}

std::string_view strip(const DecoderStep& step, std::string_view token) {
  for (size_t i = 0; i < step.start && token.starts_with(step.pattern); ++i)
    token.remove_prefix(step.pattern.size());
  for (size_t i = 0; i < step.stop && token.ends_with(step.pattern); ++i)
    token.remove_suffix(step.pattern.size());
  return token;
}

std::string clean_up(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) text = replace_all(text, from, to);
  return text;
}

}  // namespace

Decoder::Decoder(std::vector<DecoderStep> steps) : steps_(std::move(steps)) {
  bool joined = false;
  for (const DecoderStep& s : steps_) {
    joined_.push_back(joined);
    joined = joined || s.kind == DecoderStep::kFuse || s.kind == DecoderStep::kByteLevel;
  }
}

void Decoder::push(std::string_view token, bool eager, State& state, std::string& out) const {
  if (state.steps.size() != steps_.size()) state.steps.resize(steps_.size());
  if (steps_.empty() && !state.first) out.push_back(' ');
  state.first = false;
  feed(0, token, eager, state, out);
}

void Decoder::finish(State& state, std::string& out) const {
  if (state.steps.size() != steps_.size()) state.steps.resize(steps_.size());
  for (size_t i = 0; i < steps_.size(); ++i) finish_step(i, state, out);
  state = State{};
}

/// Steps behind a joining one that cannot work on parts of the joined token.
bool Decoder::holds_all(size_t step) const {
  if (!joined_[step]) return false;
  const DecoderStep& s = steps_[step];
  switch (s.kind) {
    case DecoderStep::kFuse:
    case DecoderStep::kStrip:
    case DecoderStep::kMetaspace:
      return false;
    case DecoderStep::kReplace:
      return s.regex || s.pattern.empty() || s.pattern.size() != utf8_length(s.pattern[0]);
    default:
      return true;
  }
}

void Decoder::feed(size_t step, std::string_view chunk, bool eager, State& state, std::string& out) const {
  if (step == steps_.size()) {
    out.append(chunk);
    return;
  }
  StepState& own = state.steps[step];
  if (holds_all(step)) {
    own.held.append(chunk);
    return;
  }
  switch (steps_[step].kind) {
    case DecoderStep::kByteLevel: {
      append_token_bytes(chunk, own.held);
      std::string text;
      const size_t rest = append_lossy(own.held, text);
      own.held.erase(0, own.held.size() - rest);
      if (!text.empty()) feed(step + 1, text, eager, state, out);
      return;
    }
    case DecoderStep::kByteFallback:
      return feed_byte_fallback(step, chunk, eager, state, out);
    case DecoderStep::kFuse:
      return feed(step + 1, chunk, eager, state, out);
    case DecoderStep::kStrip:
      if (joined_[step]) return feed_joined_strip(step, chunk, state, out);
      return feed(step + 1, strip(steps_[step], chunk), eager, state, out);
    default:
      return feed(step + 1, apply(step, chunk, own), eager, state, out);
  }
}

/// The steps that map one whole token to one token.
std::string Decoder::apply(size_t step, std::string_view token, StepState& state) const {
  const DecoderStep& s = steps_[step];
  const bool first = !state.started;
  state.started = true;
  switch (s.kind) {
    case DecoderStep::kReplace:
      return s.regex ? replace_regex(*s.regex, token, s.content) : replace_all(token, s.pattern, s.content);
    case DecoderStep::kMetaspace:
      // A joined token is the first one from end to end.
      return replace_all(token, s.pattern,
                         (first || joined_[step]) && s.prepend != PrependScheme::kNever ? "" : " ");
    case DecoderStep::kWordPiece: {
      std::string text(token);
      if (!first && !s.pattern.empty() && token.starts_with(s.pattern)) {
        text.erase(0, s.pattern.size());
      } else if (!first && !s.pattern.empty()) {
        text.insert(0, " ");
      }
      return s.cleanup ? clean_up(std::move(text)) : text;
    }
    case DecoderStep::kStrip:
      return std::string(strip(s, token));
    default:
      return std::string(token);
  }
}

void Decoder::feed_byte_fallback(size_t step, std::string_view token, bool eager, State& state,
                                 std::string& out) const {
  StepState& own = state.steps[step];
  if (const int byte = fallback_byte(token); byte >= 0) {
    own.held.push_back(static_cast<char>(byte));
    if (eager && is_valid_utf8(own.held)) release_bytes(step, state, out);
    return;
  }
  release_bytes(step, state, out);
  feed(step + 1, token, eager, state, out);
}

/// A run of byte tokens is text when all of it is valid; otherwise each byte becomes U+FFFD.
void Decoder::release_bytes(size_t step, State& state, std::string& out) const {
  const std::string run = std::move(state.steps[step].held);
  state.steps[step].held.clear();
  if (run.empty()) return;
  if (is_valid_utf8(run)) return feed(step + 1, run, true, state, out);
  for (size_t i = 0; i < run.size(); ++i) feed(step + 1, kReplacementCharacter, true, state, out);
}

/// count: characters stripped at the start; held: characters that the end of the text may still strip.
void Decoder::feed_joined_strip(size_t step, std::string_view chunk, State& state, std::string& out) const {
  const DecoderStep& s = steps_[step];
  StepState& own = state.steps[step];
  while (!own.started && own.count < s.start && chunk.starts_with(s.pattern) && !s.pattern.empty()) {
    chunk.remove_prefix(s.pattern.size());
    ++own.count;
  }
  if (chunk.empty()) return;
  own.started = true;
  own.held.append(chunk);
  size_t keep = 0;
  const std::string_view held = own.held;
  for (size_t i = 0;
       i < s.stop && held.substr(0, held.size() - keep).ends_with(s.pattern) && !s.pattern.empty(); ++i) {
    keep += s.pattern.size();
  }
  const std::string ready(held.substr(0, held.size() - keep));
  own.held.erase(0, ready.size());
  if (!ready.empty()) feed(step + 1, ready, true, state, out);
}

void Decoder::finish_step(size_t step, State& state, std::string& out) const {
  StepState& own = state.steps[step];
  const DecoderStep& s = steps_[step];
  if (s.kind == DecoderStep::kStrip && joined_[step]) return;  // what is held is what is stripped
  if (s.kind == DecoderStep::kByteFallback && !joined_[step]) return release_bytes(step, state, out);
  if (own.held.empty()) return;
  const std::string held = std::move(own.held);
  own.held.clear();
  if (s.kind != DecoderStep::kByteLevel) return feed(step + 1, apply(step, held, own), true, state, out);
  if (!joined_[step]) return feed(step + 1, kReplacementCharacter, true, state, out);
  std::string bytes;
  append_token_bytes(held, bytes);
  feed(step + 1, replace_invalid_utf8(bytes), true, state, out);
}

}  // namespace decant::text::bpe
