#include "text/tokenizer/bpe_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/utf8.h"

namespace decant::text::bpe {
namespace {

constexpr std::string_view kBoundary = "\xe2\x96\x81";  // U+2581

}  // namespace

BpeScratch::BpeScratch() : cache_(kSlots) {}

void BpeScratch::release_large() {
  constexpr size_t kKept = 1 << 14;
  if (symbols_.capacity() > kKept) symbols_ = {};
  if (queue_.capacity() > kKept) queue_ = {};
  if (spelled_.capacity() > kKept) spelled_ = {};
}

Result<BpeModel> BpeModel::create(Vocabulary vocabulary, const std::vector<MergeText>& merges,
                                  Options options) {
  BpeModel m;
  m.vocabulary_ = std::move(vocabulary);
  m.options_ = std::move(options);
  const Vocabulary& v = m.vocabulary_;
  if (merges.size() >= PairMap::kMissing / 2) return invalid_model("too many merges");
  m.ranks_.reserve(merges.size());
  m.merges_.reserve(merges.size());
  const std::string_view prefix = m.options_.continuing_subword_prefix;
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto [left, right] = merges[rank];
    const int32_t a = v.find(left);
    const int32_t b = v.find(right);
    if (right.size() < prefix.size()) {
      return invalid_model(
          fmt::format("merge {} ('{}' '{}') lacks the continuing prefix '{}'", rank, left, right, prefix));
    }
    joined.assign(left).append(right.substr(prefix.size()));
    const int32_t merged = v.find(joined);
    if (a == kNoToken || b == kNoToken || merged == kNoToken) {
      const std::string_view missing = a == kNoToken   ? left
                                       : b == kNoToken ? right
                                                       : std::string_view(joined);
      return invalid_model(fmt::format("merge {} ('{}' '{}') needs token '{}', which the vocabulary lacks",
                                       rank, left, right, missing));
    }
    m.ranks_.insert(static_cast<uint32_t>(a), static_cast<uint32_t>(b), 0) = static_cast<uint32_t>(rank);
    m.merges_.push_back({a, b, merged});
  }
  if (!m.options_.unk_token.empty()) {
    m.unk_id_ = v.find(m.options_.unk_token);
    if (m.unk_id_ == kNoToken) {
      return invalid_model(fmt::format("unk_token '{}' is not in the vocabulary", m.options_.unk_token));
    }
  }
  m.has_byte_tokens_ = true;
  for (size_t b = 0; b < 256; ++b) {
    std::string spelled;
    append_utf8(spelled, byte_to_char(static_cast<uint8_t>(b)));
    m.byte_ids_[b] = v.find(spelled);
    m.fallback_ids_[b] = m.options_.byte_fallback ? v.find(fmt::format("<0x{:02X}>", b)) : kNoToken;
    if (m.fallback_ids_[b] == kNoToken) m.has_byte_tokens_ = false;
  }
  m.find_boundaries();
  return m;
}

void BpeModel::set_on_bytes(bool on_bytes) {
  on_bytes_ = on_bytes;
  if (on_bytes) cuts_words_ = false;
}

bool BpeModel::can_work_on_bytes() const {
  return !options_.byte_fallback && options_.continuing_subword_prefix.empty() &&
         options_.end_of_word_suffix.empty();
}

void BpeModel::find_boundaries() {
  cuts_words_ = !options_.ignore_merges && options_.continuing_subword_prefix.empty() &&
                options_.end_of_word_suffix.empty() && vocabulary_.find(kBoundary) != kNoToken;
  if (!cuts_words_) return;
  for (const Merge& m : merges_) {
    const std::string_view token = vocabulary_.token(m.merged);
    for (size_t at = token.find(kBoundary, 1); at != std::string_view::npos;
         at = token.find(kBoundary, at + 1)) {
      const size_t before = previous_start(token, at);
      size_t n = 0;
      const char32_t c = decode_valid(token.data() + before, n);
      if (c != 0x2581) joins_boundary_.push_back(c);
    }
  }
  std::sort(joins_boundary_.begin(), joins_boundary_.end());
  joins_boundary_.erase(std::unique(joins_boundary_.begin(), joins_boundary_.end()), joins_boundary_.end());
}

void BpeModel::cut_words(std::string_view text, Range piece, std::vector<Range>& out) const {
  size_t begin = piece.begin;
  if (cuts_words_) {
    const std::string_view view = text.substr(0, piece.end);
    for (size_t at = view.find(kBoundary, begin + 1); at != std::string_view::npos;
         at = view.find(kBoundary, at + kBoundary.size())) {
      size_t n = 0;
      const char32_t c = decode_valid(view.data() + previous_start(view, at), n);
      if (c == 0x2581 || std::binary_search(joins_boundary_.begin(), joins_boundary_.end(), c)) continue;
      out.push_back({begin, at});
      begin = at;
    }
  }
  out.push_back({begin, piece.end});
}

void BpeModel::symbols_of_bytes(std::string_view word, BpeScratch& scratch) const {
  auto& symbols = scratch.symbols_;
  for (const char c : word) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(c)];
    if (id != kNoToken) {
      symbols.push_back({id, 1, 0, 0});
    } else if (unk_id_ != kNoToken) {
      if (options_.fuse_unk && !symbols.empty() && symbols.back().id == unk_id_) {
        ++symbols.back().length;
      } else {
        symbols.push_back({unk_id_, 1, 0, 0});
      }
    }
  }
}

void BpeModel::symbols_of_text(std::string_view word, BpeScratch& scratch) const {
  auto& symbols = scratch.symbols_;
  uint32_t pending_unk = 0;  // bytes of unknown characters not yet turned into a symbol
  const auto flush_unk = [&] {
    if (pending_unk > 0) symbols.push_back({unk_id_, pending_unk, 0, 0});
    pending_unk = 0;
  };
  const std::string& prefix = options_.continuing_subword_prefix;
  const std::string& suffix = options_.end_of_word_suffix;
  for (size_t i = 0, n = 0; i < word.size(); i += n) {
    n = utf8_length(word[i]);
    std::string_view symbol = word.substr(i, n);
    const bool prefixed = i > 0 && !prefix.empty();
    const bool suffixed = i + n >= word.size() && !suffix.empty();
    if (prefixed || suffixed) {
      scratch.spelled_.assign(prefixed ? prefix : std::string())
          .append(symbol)
          .append(suffixed ? suffix : std::string());
      symbol = scratch.spelled_;
    }
    const auto length = static_cast<uint32_t>(n);
    if (const int32_t id = vocabulary_.find(symbol); id != kNoToken) {
      flush_unk();
      symbols.push_back({id, length, 0, 0});
      continue;
    }
    if (options_.byte_fallback) {
      const auto has_token = [&](char b) { return fallback_ids_[static_cast<uint8_t>(b)] != kNoToken; };
      if (has_byte_tokens_ || std::all_of(symbol.begin(), symbol.end(), has_token)) {
        for (const char b : symbol) symbols.push_back({fallback_ids_[static_cast<uint8_t>(b)], 1, 0, 0});
        continue;
      }
    }
    if (unk_id_ == kNoToken) continue;
    if (!options_.fuse_unk) flush_unk();
    pending_unk += length;
  }
  flush_unk();
}

/// The queue holds (rank, position) pairs; an entry is stale when the pair at its position no longer merges
/// to the same token. That test, and not an equal rank, is what `tokenizers` applies, and ids must agree with
/// it.
void BpeModel::merge(BpeScratch& scratch) const {
  auto& symbols = scratch.symbols_;
  auto& queue = scratch.queue_;
  const auto count = static_cast<int32_t>(symbols.size());
  queue.clear();
  const auto at = [&](int32_t i) -> BpeScratch::Symbol& { return symbols[static_cast<size_t>(i)]; };
  const auto rank_at = [&](int32_t i) {
    return ranks_.find(static_cast<uint32_t>(at(i).id), static_cast<uint32_t>(at(at(i).next).id));
  };
  for (int32_t i = 0; i < count; ++i) {
    at(i).previous = i - 1;
    at(i).next = i + 1 < count ? i + 1 : -1;
  }
  for (int32_t i = 0; i + 1 < count; ++i) {
    if (const uint32_t rank = rank_at(i); rank != PairMap::kMissing) {
      queue.push_back(uint64_t{rank} << 32 | static_cast<uint32_t>(i));
    }
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  const auto push = [&](int32_t i) {
    if (const uint32_t rank = rank_at(i); rank != PairMap::kMissing) {
      queue.push_back(uint64_t{rank} << 32 | static_cast<uint32_t>(i));
      std::push_heap(queue.begin(), queue.end(), std::greater<>());
    }
  };
  while (!queue.empty()) {
    const uint64_t top = queue.front();
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    queue.pop_back();
    const auto i = static_cast<int32_t>(top & 0xffffffffu);
    if (at(i).length == 0 || at(i).next < 0) continue;
    const uint32_t rank = rank_at(i);
    const int32_t merged = merges_[top >> 32].merged;
    if (rank == PairMap::kMissing || merges_[rank].merged != merged) continue;
    const int32_t right = at(i).next;
    at(i).id = merged;
    at(i).length += at(right).length;
    at(right).length = 0;
    at(i).next = at(right).next;
    if (at(i).next >= 0) at(at(i).next).previous = i;
    if (at(i).previous >= 0) push(at(i).previous);
    if (at(i).next >= 0) push(i);
  }
}

void BpeModel::encode(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& ids,
                      std::vector<uint32_t>* lengths) const {
  if (word.empty()) return;
  BpeScratch::Slot* slot = nullptr;
  if (lengths == nullptr && word.size() <= scratch.cache_[0].key.size()) {
    slot = &scratch.cache_[hash_bytes(word, 0) >> 17 & (BpeScratch::kSlots - 1)];
    if (slot->length == word.size() && std::memcmp(slot->key.data(), word.data(), word.size()) == 0) {
      ids.insert(ids.end(), slot->ids.begin(), slot->ids.begin() + slot->count);
      return;
    }
  }
  const size_t first = ids.size();
  int32_t whole = kNoToken;
  if (options_.ignore_merges) {
    std::string_view spelled = word;
    if (on_bytes_) {
      scratch.spelled_.clear();
      append_byte_alphabet(word, scratch.spelled_);
      spelled = scratch.spelled_;
    }
    whole = vocabulary_.find(spelled);
  }
  if (whole != kNoToken) {
    ids.push_back(whole);
    if (lengths != nullptr) lengths->push_back(static_cast<uint32_t>(word.size()));
  } else {
    scratch.symbols_.clear();
    if (on_bytes_) {
      symbols_of_bytes(word, scratch);
    } else {
      symbols_of_text(word, scratch);
    }
    merge(scratch);
    for (const auto& s : scratch.symbols_) {
      if (s.length == 0) continue;
      ids.push_back(s.id);
      if (lengths != nullptr) lengths->push_back(s.length);
    }
  }
  const size_t count = ids.size() - first;
  if (slot != nullptr && count <= slot->ids.size()) {
    slot->length = static_cast<uint8_t>(word.size());
    slot->count = static_cast<uint8_t>(count);
    std::memcpy(slot->key.data(), word.data(), word.size());
    std::copy(ids.begin() + static_cast<ptrdiff_t>(first), ids.end(), slot->ids.begin());
  }
}

std::vector<std::pair<int32_t, int32_t>> BpeModel::merges() const {
  std::vector<std::pair<int32_t, int32_t>> out;
  out.reserve(merges_.size());
  for (const Merge& m : merges_) out.emplace_back(m.left, m.right);
  return out;
}

}  // namespace decant::text::bpe
