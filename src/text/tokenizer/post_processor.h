#pragma once

#include <cstdint>
#include <vector>

namespace decant::text::bpe {

/// What is done to the ids of one text at the end. Sequences are flattened by the reader.
struct PostProcessor {
  std::vector<int32_t> prefix;  ///< special tokens in front
  std::vector<int32_t> suffix;  ///< special tokens behind
  /// Offsets that leave out the white space of a token; with `add_prefix_space`, a single blank at the start
  /// of the text was inserted and covers nothing.
  struct Trim {
    bool add_prefix_space = false;
  };
  std::vector<Trim> trims;
};

}  // namespace decant::text::bpe
