#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "ir/op.h"
#include "ir/ops/elements.h"
#include "ir/ops/index.h"
#include "ir/tensor.h"

namespace decant::ir {

using EvalInputs = std::span<const Tensor* const>;
using EvalResult = Result<std::vector<Tensor>>;

/// Symbolic elements are followed up to this many.
inline constexpr size_t kMaxFollowedElements = 256;

/// invalid_model with the node in front, for kernels and shared helpers.
Status node_error(const Node& node, std::string_view what);

/// Input i, or null when left out.
inline const Tensor* optional_input(EvalInputs inputs, size_t i) {
  return i < inputs.size() ? inputs[i] : nullptr;
}

/// The result of an op with one output.
EvalResult single(Result<Tensor> tensor);

/// A negative axis counts from the end. Fails outside [-rank, rank).
Result<size_t> resolve_axis(const Node& node, int64_t axis, size_t rank);
/// The same for a list; fails on duplicates. The order is kept.
Result<std::vector<size_t>> resolve_axes(const Node& node, std::span<const int64_t> axes, size_t rank);

/// Bounds of an expression under the graph's symbol ranges (symbols are never negative); nothing when
/// unbounded.
std::optional<int64_t> lower_bound(const Graph& graph, const Dim& dim);
std::optional<int64_t> upper_bound(const Graph& graph, const Dim& dim);
/// True only when provable.
inline bool at_least(const Graph& graph, const Dim& a, const Dim& b) {
  const auto bound = lower_bound(graph, a - b);
  return bound && *bound >= 0;
}
/// max(a, 0) and min(a, b), simplified where provable.
Dim clamp_to_zero(const Graph& graph, const Dim& a);
Dim smaller(const Graph& graph, const Dim& a, const Dim& b);

/// Broadcasts two dims: equal ones stay, 1 gives way, a dim known to be over 1 wins over one that is not
/// known; otherwise a fresh symbol. Fails when they cannot fit.
Result<Dim> broadcast_dim(InferContext& context, const Dim& a, const Dim& b);
/// Broadcast shape of the inputs [first, last) that are present; nothing when a rank is unknown.
Result<std::optional<Shape>> broadcast_inputs(InferContext& context, size_t first, size_t last);
Result<Shape> broadcast_shapes(InferContext& context, const Shape& a, const Shape& b);
/// The one dim of two that must be equal: the more certain one. Fails when both are constant and differ.
Result<Dim> merge_dims(InferContext& context, const Dim& a, const Dim& b);

/// Fails unless the predicate holds for the dtype of input i; `what` names the allowed types.
Status require_dtype(InferContext& context, size_t i, bool (*allowed)(DType), std::string_view what);
inline bool is_number(DType t) { return is_float(t) || is_integer(t); }
/// Types whose elements may be followed as dims.
inline bool is_countable(DType t) { return is_integer(t) || t == DType::kBool; }
inline bool is_bool(DType t) { return t == DType::kBool; }
inline bool is_index(DType t) { return t == DType::kInt32 || t == DType::kInt64; }
/// Fails unless present inputs [first, last) have one dtype.
Status require_same_dtype(InferContext& context, size_t first, size_t last);
Status require_rank(InferContext& context, size_t i, size_t rank);

/// Output 0 gets dtype and shape of input 0.
Status infer_same(InferContext& context);
/// The same; input 0 must be a float tensor.
Status infer_same_float(InferContext& context);

/// Number of elements of a rank-1 (or rank-0: 1) input when its shape tells.
std::optional<int64_t> constant_length(InferContext& context, size_t i);
/// Sets elements of output 0 when there are few enough and its rank is 0 or 1.
void follow_elements(InferContext& context, std::vector<Dim> elements);

/// Axes of ops that have them as an optional input; an absent or empty one gives an empty list.
std::vector<int64_t> axes_of(EvalInputs inputs, size_t i);
/// A shape or axes tensor read by a kernel: rank 0 or 1, integers, at most 1024 elements.
Result<std::vector<int64_t>> read_int_list(const Node& node, const Tensor& tensor, std::string_view what);

}  // namespace decant::ir
