#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace decant::text {

/// Passes generated text on as it comes, up to the first stop string. Held back is exactly what could still
/// become one: the longest end of the text so far that begins some stop string. Among stop strings in the
/// text the one that begins first counts, and of those that begin together the longest that ends with the
/// same piece.
///
/// Given pieces that are valid UTF-8, every piece that comes out is too, and their sum is the whole text
/// before the stop string. Not for several threads.
///
///   TextStream stream = *TextStream::create({"\nUser:"});
///   while (!stream.stopped()) print(stream.push(decoder.next()));
///   print(stream.finish());
class TextStream {
 public:
  /// InvalidArgument for an empty stop string.
  static Result<TextStream> create(std::vector<std::string> stop_strings);

  /// Takes the next piece and gives what may be shown now. After a stop string nothing comes out any more.
  std::string push(std::string_view piece);

  /// Gives what is held back: the end of the text, when no stop string came.
  std::string finish();

  bool stopped() const { return matched_.has_value(); }
  /// Index of the stop string that ended the text, in the list given at first.
  std::optional<size_t> matched() const { return matched_; }
  const std::string& stop_string(size_t i) const { return stops_[i]; }
  size_t held_bytes() const { return held_.size(); }

 private:
  explicit TextStream(std::vector<std::string> stop_strings) : stops_(std::move(stop_strings)) {}

  size_t open_end() const;

  std::vector<std::string> stops_;
  std::string held_;
  std::optional<size_t> matched_;
};

}  // namespace decant::text
