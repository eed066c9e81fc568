#include "text/streaming/stop_tokens.h"

#include <algorithm>

namespace decant::text {
namespace {

bool before(const StopTokens::Entry& entry, int32_t id) { return entry.id < id; }

}  // namespace

void StopTokens::add(int32_t id, std::string_view source) {
  if (id < 0) return;
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), id, before);
  if (it == entries_.end() || it->id != id) {
    entries_.insert(it, {id, std::string(source)});
  } else if (it->sources.find(source) == std::string::npos) {
    it->sources.append(", ").append(source);
  }
}

void StopTokens::add(std::span<const int32_t> ids, std::string_view source) {
  for (int32_t id : ids) add(id, source);
}

void StopTokens::replace(std::span<const int32_t> ids) {
  entries_.clear();
  add(ids, "caller");
}

bool StopTokens::contains(int32_t id) const {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), id, before);
  return it != entries_.end() && it->id == id;
}

}  // namespace decant::text
