#pragma once

#include <functional>
#include <iostream>
#include <string>

#include "base/status.h"

namespace decant::cli {

/// Calls `handle` for each non-empty line of standard input.
inline Status for_each_line(const std::function<Status(const std::string& line)>& handle) {
  std::ios::sync_with_stdio(false);
  std::string line;
  int64_t number = 0;
  while (std::getline(std::cin, line)) {
    ++number;
    if (line.empty()) continue;
    if (Status s = handle(line); !s.ok())
      return std::move(s).with_context("standard input, line " + std::to_string(number));
  }
  return ok_status();
}

}  // namespace decant::cli
