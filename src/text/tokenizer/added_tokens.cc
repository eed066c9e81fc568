#include "text/tokenizer/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "text/tokenizer/char_class.h"
#include "text/tokenizer/utf8.h"

namespace decant::text::bpe {
namespace {

/// A search walks at most this far at each position of the text.
constexpr size_t kMaxContent = 4096;
constexpr size_t kMaxTrieNodes = size_t{1} << 24;

bool has_class(std::string_view text, size_t at, uint8_t wanted) {
  size_t n = 0;
  return (char_class(decode_valid(text.data() + at, n)) & wanted) != 0;
}

}  // namespace

void AddedTokenMatcher::add(std::string_view content, const AddedToken& token) {
  if (content.empty() || content.size() > 2 * kMaxContent ||
      node_token_.size() + content.size() > kMaxTrieNodes)
    return;
  uint32_t node = 0;
  for (const char c : content) {
    const auto next = static_cast<uint32_t>(node_token_.size());
    node = edges_.insert(node, static_cast<uint8_t>(c), next);
    if (node == next) node_token_.push_back(kNone);
  }
  if (node_token_[node] != kNone) return;
  node_token_[node] = static_cast<uint32_t>(tokens_.size());
  tokens_.push_back(token);
  first_[static_cast<uint8_t>(content[0])] = true;
}

AddedTokenMatcher::Match AddedTokenMatcher::longest_at(std::string_view text, size_t i) const {
  Match best;
  uint32_t node = 0;
  for (size_t k = i; k < text.size(); ++k) {
    node = edges_.find(node, static_cast<uint8_t>(text[k]));
    if (node == PairMap::kMissing) break;
    if (node_token_[node] != kNone) best = {k + 1 - i, node_token_[node]};
  }
  return best;
}

void AddedTokenMatcher::split(std::string_view text, bool special_as_text, std::vector<Found>& out) const {
  size_t done = 0;
  for (size_t i = 0; i < text.size();) {
    Match match;
    if (first_[static_cast<uint8_t>(text[i])]) match = longest_at(text, i);
    if (match.length == 0) {
      ++i;
      continue;
    }
    size_t begin = i;
    size_t end = i + match.length;
    i = end;
    const AddedToken& token = tokens_[match.token];
    if (special_as_text && token.special) continue;
    if (token.single_word) {
      const bool word_before = begin > 0 && has_class(text, previous_start(text, begin), kWord);
      const bool word_after = end < text.size() && has_class(text, end, kWord);
      if (word_before || word_after) continue;
    }
    if (token.lstrip) {
      while (begin > done && has_class(text, previous_start(text, begin), kSpace))
        begin = previous_start(text, begin);
    }
    if (token.rstrip) {
      while (end < text.size() && has_class(text, end, kSpace)) end += utf8_length(text[end]);
    }
    begin = std::max(begin, done);
    if (end <= begin) continue;
    if (done < begin) out.push_back({{done, begin}, kNoToken});
    out.push_back({{begin, end}, token.id});
    done = end;
  }
  if (done < text.size()) out.push_back({{done, text.size()}, kNoToken});
}

Result<AddedTokens> AddedTokens::create(std::vector<AddedToken> tokens, const Vocabulary& vocabulary,
                                        const Normalizer& normalizer) {
  AddedTokens added;
  std::unordered_set<std::string> seen;
  auto next_id = static_cast<int64_t>(vocabulary.size());
  for (AddedToken& token : tokens) {
    if (token.content.empty() || !seen.insert(token.content).second) continue;
    if (token.content.size() > kMaxContent) {
      return unsupported(fmt::format("added token of {} bytes (at most {} are accepted)",
                                     token.content.size(), kMaxContent));
    }
    const int32_t known = vocabulary.find(token.content);
    token.id = known != kNoToken ? known : static_cast<int32_t>(next_id++);
    added.tokens_.push_back(std::move(token));
  }
  // Matchers are filled in the file's order, which decides ties between equal normalized forms.
  std::vector<std::pair<AddedToken, std::string>> decoded;
  for (const AddedToken& token : added.tokens_) {
    AlignedText content{.text = token.content, .spans = {}};
    if (token.normalized) DECANT_RETURN_IF_ERROR(normalizer.run(content));
    (token.normalized ? added.normalized_ : added.raw_).add(content.text, token);
    decoded.emplace_back(token, std::move(content.text));
  }
  std::stable_sort(decoded.begin(), decoded.end(),
                   [](const auto& a, const auto& b) { return a.first.id < b.first.id; });
  added.tokens_.clear();
  for (auto& [token, text] : decoded) {
    added.tokens_.push_back(std::move(token));
    added.decoded_.push_back(std::move(text));
  }
  for (uint32_t i = 0; i < added.tokens_.size(); ++i) added.by_content_.push_back(i);
  std::sort(added.by_content_.begin(), added.by_content_.end(),
            [&](uint32_t a, uint32_t b) { return added.tokens_[a].content < added.tokens_[b].content; });
  return added;
}

const AddedToken* AddedTokens::find_id(int32_t id) const {
  const auto it = std::lower_bound(tokens_.begin(), tokens_.end(), id,
                                   [](const AddedToken& t, int32_t wanted) { return t.id < wanted; });
  return it != tokens_.end() && it->id == id ? &*it : nullptr;
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto it =
      std::lower_bound(by_content_.begin(), by_content_.end(), content,
                       [&](uint32_t i, std::string_view wanted) { return tokens_[i].content < wanted; });
  return it != by_content_.end() && tokens_[*it].content == content ? &tokens_[*it] : nullptr;
}

}  // namespace decant::text::bpe
