#include "text/streaming/text_stream.h"

#include <algorithm>
#include <utility>

namespace decant::text {

Result<TextStream> TextStream::create(std::vector<std::string> stop_strings) {
  for (const std::string& stop : stop_strings) {
    if (stop.empty()) return invalid_argument("a stop string is empty: it would end every text at once");
  }
  return TextStream(std::move(stop_strings));
}

// Length of the longest end of held_ that begins a stop string without being all of it.
size_t TextStream::open_end() const {
  size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(held_.size(), stop.size() - 1); n > longest; --n) {
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, n))) longest = n;
    }
  }
  return longest;
}

std::string TextStream::push(std::string_view piece) {
  if (stopped()) return {};
  held_ += piece;
  size_t first = std::string::npos;
  for (size_t i = 0; i < stops_.size(); ++i) {
    const size_t at = held_.find(stops_[i]);
    if (at == std::string::npos || at > first) continue;
    if (at == first && matched_ && stops_[i].size() <= stops_[*matched_].size()) continue;
    first = at;
    matched_ = i;
  }
  const size_t shown = stopped() ? first : held_.size() - open_end();
  std::string out = held_.substr(0, shown);
  if (stopped()) {
    held_.clear();
  } else {
    held_.erase(0, shown);
  }
  return out;
}

std::string TextStream::finish() { return std::exchange(held_, {}); }

}  // namespace decant::text
