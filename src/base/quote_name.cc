#include "base/quote_name.h"

namespace decant {

std::string quote_name(std::string_view name) {
  constexpr size_t kShown = 100;
  std::string text = "'";
  for (const char c : name.substr(0, kShown))
    text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  text += name.size() > kShown ? "...'" : "'";
  return text;
}

}  // namespace decant
