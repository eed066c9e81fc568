#include "text/tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <bit>
#include <chrono>

#include "text/tokenizer/hash.h"

namespace decant::text::bpe {

uint64_t hash_seed() {
  static const uint64_t seed = [] {
    static const char anchor = 0;
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return mix(static_cast<uint64_t>(now) ^ reinterpret_cast<uintptr_t>(&anchor), 0xa0761d6478bd642fu);
  }();
  return seed;
}

void Vocabulary::reserve(size_t tokens, size_t bytes) {
  announced_ = tokens;
  text_.reserve(bytes);
  spans_.reserve(tokens);
  grow(std::bit_ceil(tokens * 2 + 16));
}

void Vocabulary::grow(size_t slots) {
  slots_.assign(slots, kNoToken);
  for (size_t id = 0; id < spans_.size(); ++id) {
    if (spans_[id].length != kAbsent)
      slots_[slot_of(token(static_cast<int32_t>(id)))] = static_cast<int32_t>(id);
  }
}

size_t Vocabulary::slot_of(std::string_view token_text) const {
  const size_t mask = slots_.size() - 1;
  size_t i = hash_bytes(token_text, hash_seed()) & mask;
  while (slots_[i] != kNoToken && token(slots_[i]) != token_text) i = (i + 1) & mask;
  return i;
}

Status Vocabulary::add(std::string_view token_text, int64_t id) {
  const auto limit = static_cast<int64_t>(4 * (announced_ + count_) + 65536);
  if (id < 0 || id > limit) {
    return invalid_model(fmt::format("token '{}' has id {}, outside 0 to {} for {} tokens", token_text, id,
                                     limit, announced_ + count_));
  }
  if (text_.size() + token_text.size() >= kAbsent) return invalid_model("the vocabulary's text passes 4 GB");
  if ((count_ + 1) * 2 > slots_.size()) grow(std::bit_ceil(count_ * 4 + 16));
  const size_t slot = slot_of(token_text);
  const int32_t known = slots_[slot];
  if (known == id) return ok_status();
  const auto index = static_cast<size_t>(id);
  if (index >= spans_.size()) spans_.resize(index + 1);
  if (spans_[index].length != kAbsent) {
    return invalid_model(
        fmt::format("tokens '{}' and '{}' share id {}", token(static_cast<int32_t>(id)), token_text, id));
  }
  if (known != kNoToken) {
    spans_[index] = spans_[static_cast<size_t>(known)];
    spans_[static_cast<size_t>(known)] = Span{};
  } else {
    spans_[index] = {static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(token_text.size())};
    text_.append(token_text);
    ++count_;
  }
  slots_[slot] = static_cast<int32_t>(id);
  return ok_status();
}

int32_t Vocabulary::find(std::string_view token_text) const {
  return slots_.empty() ? kNoToken : slots_[slot_of(token_text)];
}

std::string_view Vocabulary::token(int32_t id) const {
  if (!contains(id)) return {};
  const Span& s = spans_[static_cast<size_t>(id)];
  return std::string_view(text_).substr(s.offset, s.length);
}

bool Vocabulary::contains(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < spans_.size() &&
         spans_[static_cast<size_t>(id)].length != kAbsent;
}

}  // namespace decant::text::bpe
