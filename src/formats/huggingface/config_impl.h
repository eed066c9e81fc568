#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "formats/huggingface/config.h"

namespace decant::huggingface {

struct ModelConfig::Impl {
  std::string text;
  std::string source;
  nlohmann::json root;

  /// Null when absent or JSON null.
  const nlohmann::json* find(std::string_view key) const;
  Status wrong(std::string_view key, const nlohmann::json& value, std::string_view wanted) const;
  Status missing(std::string_view key) const;
};

}  // namespace decant::huggingface
