#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "models/builder.h"

namespace decant::models {

/// Where keys and values of earlier positions live.
enum class CacheForm {
  kNone,     ///< nowhere: every run sees the whole text
  kDynamic,  ///< inputs that grow by the new positions
  kStatic,   ///< buffers of a fixed length, written in place at `cache_length`
};

/// The inputs and outputs of a text decoder, the same for every architecture:
///
///   input_ids        i64 [batch_size, sequence_length]
///   attention_mask   i64 [batch_size, total], 1 where a position holds text
///   position_ids     i64 [batch_size, sequence_length]
///   cache_length     i64 [], static only: positions already in the buffers, the same for all rows
///   past_key_values.N.key, .value  [batch_size, kv_heads, past, head_dim]   not without a cache
///   -> logits [batch_size, sequence_length, vocabulary]
///   -> present.N.key, .value       [batch_size, kv_heads, total, head_dim]
///
/// total is sequence_length (no cache), past_sequence_length + sequence_length (dynamic; past is
/// past_sequence_length), or max_cache_len (static, for past and total). Caches and logits have the model's
/// dtype. Query row i stands at buffer position past + i and attends positions up to its own where
/// attention_mask is 1; with a window w, the last w of them only.
class Decoder {
 public:
  struct Shape {
    int64_t layers = 0;
    int64_t kv_heads = 0;
    int64_t head_dim = 0;
    std::optional<int64_t> window;  ///< positions that a query sees, its own included
  };

  /// Adds the inputs. `max_cache_len` makes the static buffers' length a constant.
  Decoder(Builder& b, const Shape& shape, CacheForm form, std::optional<int64_t> max_cache_len);

  ir::Value* input_ids() const { return input_ids_; }
  ir::Value* position_ids() const { return position_ids_; }
  /// bool [batch_size, 1, sequence_length, total]: true where a query may attend.
  ir::Value* mask() const { return mask_; }

  /// Appends the new keys and values [batch, kv_heads, sequence, head_dim] of a layer to its cache; returns
  /// all of them.
  std::pair<ir::Value*, ir::Value*> cache(int64_t layer, ir::Value* key, ir::Value* value);

  /// Adds the outputs, and states for the caches. Call last, once.
  void finish(ir::Value* logits);

 private:
  void make_inputs(std::optional<int64_t> max_cache_len);
  void make_mask();
  ir::Value* extend(ir::Value* past, ir::Value* update);

  Builder& b_;
  Shape shape_;
  CacheForm form_;
  ir::Value *input_ids_ = nullptr, *attention_mask_ = nullptr, *position_ids_ = nullptr,
            *cache_length_ = nullptr;
  ir::Value *mask_ = nullptr, *write_positions_ = nullptr;
  std::vector<ir::Value*> past_, present_;  ///< key, value of each layer in turn
};

}  // namespace decant::models
