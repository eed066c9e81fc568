#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace decant::models {

/// Rotary embedding settings, as Transformers' `rope_parameters` has them.
struct RopeParameters {
  std::string type = "default";  ///< default, linear, dynamic, llama3 or yarn; others are refused at capture
  double theta = 10000.0;
  double factor = 1.0;
  double partial_rotary_factor = 1.0;
  std::optional<int64_t> original_max_position_embeddings = {};  ///< absent: max_position_embeddings
  double low_freq_factor = 1.0, high_freq_factor = 4.0;          ///< llama3
  double beta_fast = 32.0, beta_slow = 1.0;                      ///< yarn
  bool truncate = true;                                          ///< yarn
  std::optional<double> mscale = {}, mscale_all_dim = {};        ///< yarn
  std::optional<double> attention_factor = {};                   ///< yarn
};

/// What an architecture may read of a model's configuration; the file format stays on the other side. Keys
/// are those of config.json. Without a fallback an absent key is an error that names it; null counts as
/// absent.
class ConfigView {
 public:
  virtual ~ConfigView() = default;
  virtual bool has(std::string_view key) const = 0;
  virtual Result<int64_t> get_int(std::string_view key) const = 0;
  virtual Result<double> get_double(std::string_view key) const = 0;
  virtual Result<bool> get_bool(std::string_view key) const = 0;
  virtual Result<std::string> get_string(std::string_view key) const = 0;
  virtual Result<RopeParameters> rope() const = 0;

  Result<int64_t> get_int(std::string_view key, int64_t fallback) const {
    return has(key) ? get_int(key) : Result<int64_t>(fallback);
  }
  Result<double> get_double(std::string_view key, double fallback) const {
    return has(key) ? get_double(key) : Result<double>(fallback);
  }
  Result<bool> get_bool(std::string_view key, bool fallback) const {
    return has(key) ? get_bool(key) : Result<bool>(fallback);
  }
  Result<std::string> get_string(std::string_view key, std::string fallback) const {
    return has(key) ? get_string(key) : Result<std::string>(std::move(fallback));
  }
};

}  // namespace decant::models
