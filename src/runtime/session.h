#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/plan.h"

namespace decant::runtime {

/// One sequence run through a decoder plan (batch 1). Owns the states: fixed caches of a capacity, in place;
/// growing ones; counters; or, for a graph without states, the ids themselves. Not thread-safe.
class Session {
 public:
  /// `capacity`: positions of the cache, 0 for `default_capacity`. Fails when the graph has inputs a decoder
  /// loop cannot feed, naming them, and when it fixes another capacity.
  static Result<std::unique_ptr<Session>> create(std::unique_ptr<Plan> plan, int64_t capacity,
                                                 int64_t default_capacity);

  /// Runs ids at the end of the sequence; logits() then belong to the last of them. Fails without a change
  /// when the capacity is passed, saying how to raise it.
  Status append(std::span<const int64_t> ids);

  /// Logits of the last position, [vocabulary], valid until the next call.
  std::span<const float> logits() const { return logits_; }

  int64_t length() const { return length_; }
  /// INT64_MAX where states grow.
  int64_t capacity() const { return capacity_; }
  /// Forgets positions from `length` on. Fixed caches and graphs without states only.
  Status rewind(int64_t length);

  /// Bytes of state memory in all, and for one position.
  int64_t state_bytes() const;
  int64_t state_bytes_per_position() const;
  bool in_place() const;
  Plan& plan() { return *plan_; }

 private:
  enum class Role { kIds, kMask, kBoolMask, kAddedMask, kPositions, kLength, kPositionList, kState };
  struct Buffer {
    std::byte* data = nullptr;
    size_t bytes = 0;
    Buffer() = default;
    Buffer(Buffer&& o) noexcept : data(std::exchange(o.data, nullptr)), bytes(std::exchange(o.bytes, 0)) {}
    Buffer& operator=(Buffer&&) = delete;
    ~Buffer();
    Status reserve(size_t size);  ///< keeps nothing when it grows; zero-filled
  };
  /// What a mask of one query holds, so that the next step writes only what changed: of `width` positions at
  /// `data` the first `visible` may be attended.
  struct MaskRow {
    const void* data = nullptr;
    int64_t width = 0, visible = 0;
  };
  struct Input {
    Role role = Role::kIds;
    size_t state = 0;   ///< index into graph().states for kState
    size_t output = 0;  ///< of a state: its output's position
    std::vector<int64_t> dims;
    Buffer buffer;
    MaskRow mask;
  };

  Status classify(int64_t capacity, int64_t default_capacity);
  Status allocate_states();
  Status run(std::span<const int64_t> ids);
  Status fill(Input& input, const ir::Value& value, std::span<const int64_t> ids);
  template <typename T>
  static void fill_mask(Input& input, int64_t queries, int64_t width, int64_t visible, T attend, T hide);
  Status collect_states();
  Status take_logits();
  int64_t mask_length(const ir::Dim& dim, int64_t total) const;

  std::unique_ptr<Plan> plan_;
  std::vector<Input> inputs_;
  std::vector<Arg> args_;
  std::vector<int64_t> history_;  ///< all ids, for graphs without states
  size_t logits_output_ = 0;
  bool has_states_ = false, fixed_ = true;
  int64_t length_ = 0;
  int64_t capacity_ = INT64_MAX;
  ir::Dim capacity_dim_;
  std::span<const float> logits_;
  std::vector<float> converted_;
};

}  // namespace decant::runtime
