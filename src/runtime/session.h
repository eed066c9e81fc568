#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/run_options.h"
#include "base/status.h"
#include "runtime/plan.h"

namespace decant::runtime {

/// One sequence run through a decoder plan (batch 1). Owns the states: fixed caches of a capacity, in place;
/// growing ones; counters; or, for a graph without states, the ids themselves. What is neither a state nor
/// made from the ids is a constant of the sequence (an encoder's output, key-values of its cross-attention,
/// features): the caller binds it once. Not thread-safe.
class Session {
 public:
  /// `capacity`: positions of the cache, 0 for `default_capacity`. `first`, when given, runs the first ids of
  /// a sequence instead of `plan`: a decoder without a past, whose outputs become the states and the
  /// constants of `plan` that are not bound. `single_ids`: `plan` gets its ids one by one, as an export
  /// without a causal mask of its own needs. Fails when a plan has no ids to feed or no logits, and when it
  /// fixes another capacity.
  static Result<std::unique_ptr<Session>> create(std::unique_ptr<Plan> plan, int64_t capacity,
                                                 int64_t default_capacity,
                                                 std::unique_ptr<Plan> first = nullptr,
                                                 bool single_ids = false);

  /// Sets the constant input `name` of the plans that have it and starts a new sequence. The value is copied,
  /// and converted where the graph wants another floating-point or integer dtype. kNotFound when no plan has
  /// it.
  Status bind(std::string_view name, const ir::Tensor& value);
  /// The constants that no plan's output gives and that are not bound yet.
  std::vector<std::string> unbound() const;
  /// Whether `name` is a constant of one of the plans.
  bool has_constant(std::string_view name) const;

  /// Runs ids at the end of the sequence; logits() then belong to the last of them. Fails without a change
  /// when the capacity is passed, saying how to raise it, and when a constant has no value, naming it. After
  /// kDeadline (`options` ended the run) the sequence is empty.
  Status append(std::span<const int64_t> ids, const RunOptions& options = {});

  /// Logits of the last position, [vocabulary], valid until the next call.
  std::span<const float> logits() const { return logits_; }

  int64_t length() const { return length_; }
  /// INT64_MAX where states grow.
  int64_t capacity() const { return capacity_; }
  /// Forgets positions from `length` on; where caches grow, only 0 will do.
  Status rewind(int64_t length);
  /// Forgets all but the beginning that the sequence shares with `ids`, and gives its length, which is below
  /// ids.size(): there is an id left to append. 0 where states cannot be rewound to it.
  Result<int64_t> keep_prefix(std::span<const int64_t> ids);

  /// Bytes of state memory in all, and for one position.
  int64_t state_bytes() const;
  int64_t state_bytes_per_position() const;
  bool in_place() const;
  Plan& plan() { return *step_.plan; }

 private:
  enum class Role {
    kIds,
    kMask,
    kBoolMask,
    kAddedMask,
    kPositions,
    kLength,
    kPositionList,
    kKeptLogits,
    kSegments,
    kState,
    kConstant
  };
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
    size_t state = 0;                      ///< index into graph().states for kState
    size_t output = 0;                     ///< of a state: its output's position
    bool bound = false, captured = false;  ///< of a constant: set by the caller, or by the first plan
    std::vector<int64_t> dims;
    Buffer buffer;
    MaskRow mask;
  };
  /// A plan with its inputs classified and their buffers.
  struct Runner {
    std::unique_ptr<Plan> plan;
    std::vector<Input> inputs;
    std::vector<Arg> args;
    size_t logits_output = 0;
  };

  static Status classify(Runner& runner);
  Status choose_capacity(int64_t capacity, int64_t default_capacity);
  Status allocate(Runner& runner);
  Status run(Runner& runner, std::span<const int64_t> ids, const RunOptions& options);
  Status extend(std::span<const int64_t> ids, const RunOptions& options);
  Status fill(Input& input, const ir::Value& value, std::span<const int64_t> ids);
  Status set_constant(Runner& runner, size_t i, const ir::Tensor& value);
  Status check_bound(const Runner& runner) const;
  template <typename T>
  static void fill_mask(Input& input, int64_t queries, int64_t width, int64_t visible, T attend, T hide);
  Status collect_states();
  Status take_first_outputs();
  Status take_logits(Runner& runner);
  Status forget();
  int64_t mask_length(const ir::Dim& dim, int64_t total) const;

  Runner step_;
  std::unique_ptr<Runner> first_;
  std::vector<int64_t> history_;  ///< the ids of the sequence
  bool has_states_ = false, fixed_ = true;
  size_t piece_ = 0;  ///< most ids a run takes
  int64_t length_ = 0;
  int64_t capacity_ = INT64_MAX;
  ir::Dim capacity_dim_;
  std::span<const float> logits_;
  std::vector<float> converted_;
};

}  // namespace decant::runtime
