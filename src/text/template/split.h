#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace decant::text {

/// Python's str.split and rsplit: at runs of white space when `separator` is empty; at most `limit` cuts, all
/// when < 0.
std::vector<std::string_view> split_text(std::string_view text, std::string_view separator, int64_t limit);
std::vector<std::string_view> split_text_from_right(std::string_view text, std::string_view separator,
                                                    int64_t limit);
/// Python's str.splitlines.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

}  // namespace decant::text
