#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace decant::text {

/// The token ids that end a generation: the union of what every source names, because each of them is wrong
/// alone in some model. Sources, all optional: eos_token_id of generation_config.json (an integer or a list),
/// eos_token_id of config.json, the tokenizer's eos_token, a GGUF file's tokenizer.ggml.eos_token_id and
/// .eot_token_id. A caller's own list (`replace`) takes the place of them all. Negative ids stand for "none"
/// and are left out.
class StopTokens {
 public:
  struct Entry {
    int32_t id;
    std::string sources;  ///< where it came from, "generation_config, tokenizer"
  };

  void add(int32_t id, std::string_view source);
  void add(std::span<const int32_t> ids, std::string_view source);
  void replace(std::span<const int32_t> ids);

  bool contains(int32_t id) const;
  bool empty() const { return entries_.empty(); }
  /// In rising order of ids.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace decant::text
