#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "formats/huggingface/rope_parameters.h"

namespace decant::huggingface {

/// A parsed config.json. Values are read by key; a dot descends into an object ("text_config.hidden_size"). A
/// null value counts as absent everywhere. Errors name the file and the key. Copying is cheap; immutable,
/// thread-safe.
class ModelConfig {
 public:
  /// `source` names the text in messages (a file name). Refused: anything but an object, nesting above 128
  /// levels, numbers outside double, invalid UTF-8. When a key is repeated the last one wins.
  static Result<ModelConfig> parse(std::string json, std::string source);
  /// Reads `folder`/config.json.
  static Result<ModelConfig> load(const std::string& folder);

  /// The text it was parsed from, unchanged: what an export writes.
  const std::string& json() const;
  const std::string& source() const;

  bool has(std::string_view key) const;
  /// Keys of the top level, or of the object at `key`; empty when that is no object.
  std::vector<std::string> keys(std::string_view key = {}) const;

  /// Typed reads: kNotFound when absent (unless a fallback is given), kInvalidModel when of another type.
  /// Integers may be written as 8192.0; get_double takes integers; booleans are never numbers.
  Result<int64_t> get_int(std::string_view key) const;
  Result<int64_t> get_int(std::string_view key, int64_t fallback) const;
  Result<double> get_double(std::string_view key) const;
  Result<double> get_double(std::string_view key, double fallback) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<bool> get_bool(std::string_view key, bool fallback) const;
  Result<std::string> get_string(std::string_view key) const;
  Result<std::string> get_string(std::string_view key, std::string fallback) const;
  Result<std::vector<int64_t>> get_ints(std::string_view key) const;
  Result<std::vector<double>> get_doubles(std::string_view key) const;
  Result<std::vector<std::string>> get_strings(std::string_view key) const;

  /// "llama", "mistral", ...; kNotFound when the file has none.
  Result<std::string> model_type() const { return get_string("model_type"); }
  /// Empty when absent.
  std::vector<std::string> architectures() const;
  /// `dtype`, or the older `torch_dtype`; a leading "torch." is dropped. nullopt when absent or "auto".
  Result<std::optional<DType>> dtype() const;

  /// Rotary settings from either spelling (see RopeParameters). `layer_type` ("full_attention",
  /// "sliding_attention") picks an entry where rope_parameters has one per layer type. kUnsupported for an
  /// unknown type, with the list of known ones; kInvalidModel for a missing or impossible value.
  Result<RopeParameters> rope(std::string_view layer_type = {}) const;

 private:
  struct Impl;
  explicit ModelConfig(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace decant::huggingface
