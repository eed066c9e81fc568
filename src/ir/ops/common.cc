#include "ir/ops/common.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace decant::ir {
namespace {

struct Interval {
  std::optional<__int128> low, high;
};

constexpr __int128 kHuge = static_cast<__int128>(1) << 100;

std::optional<__int128> fit(__int128 value) {
  if (value > kHuge || value < -kHuge) return std::nullopt;
  return value;
}

Interval interval_of(const Graph& graph, const Dim& dim);

Interval interval_of(const Graph& graph, const DimAtom& atom) {
  if (atom.kind == DimAtom::Kind::kSymbol) {
    if (atom.key == "<overflow>") return {};
    auto it = graph.symbol_ranges.find(atom.key);
    if (it == graph.symbol_ranges.end()) return {0, std::nullopt};
    const bool open = it->second.max == INT64_MAX;
    return {it->second.min, open ? std::nullopt : std::optional<__int128>(it->second.max)};
  }
  const Interval a = interval_of(graph, atom.a), b = interval_of(graph, atom.b);
  switch (atom.kind) {
    case DimAtom::Kind::kMax: {
      Interval r;
      if (a.low && b.low)
        r.low = std::max(*a.low, *b.low);
      else
        r.low = a.low ? a.low : b.low;
      if (a.high && b.high) r.high = std::max(*a.high, *b.high);
      return r;
    }
    case DimAtom::Kind::kMin: {
      Interval r;
      if (a.low && b.low) r.low = std::min(*a.low, *b.low);
      if (a.high && b.high)
        r.high = std::min(*a.high, *b.high);
      else
        r.high = a.high ? a.high : b.high;
      return r;
    }
    case DimAtom::Kind::kFloorDiv:
      if (a.low && *a.low >= 0 && b.low && *b.low >= 0) return {0, a.high};
      return {};
    case DimAtom::Kind::kMod:
      if (b.low && *b.low > 0) return {0, b.high ? std::optional<__int128>(*b.high - 1) : std::nullopt};
      return {};
    default:
      return {};
  }
}

Interval interval_of(const Graph& graph, const Dim& dim) {
  Interval sum{dim.offset(), dim.offset()};
  for (const Dim::Term& term : dim.terms()) {
    Interval prod{1, 1};
    for (const auto& atom : term.atoms) {
      const Interval f = interval_of(graph, *atom);
      // Products are followed for factors known not to be negative, which is what dims are.
      if (!f.low || *f.low < 0 || !prod.low) return {};
      if (*prod.low > (static_cast<__int128>(1) << 62) || *f.low > (static_cast<__int128>(1) << 62))
        return {};
      prod.low = *prod.low * *f.low;
      if (prod.high && f.high && *prod.high < (static_cast<__int128>(1) << 62))
        prod.high = *prod.high * *f.high;
      else
        prod.high = std::nullopt;
    }
    const auto scale = [&](std::optional<__int128> v) -> std::optional<__int128> {
      if (!v || *v >= (static_cast<__int128>(1) << 62)) return std::nullopt;
      return *v * term.coefficient;
    };
    const auto low = scale(term.coefficient >= 0 ? prod.low : prod.high);
    const auto high = scale(term.coefficient >= 0 ? prod.high : prod.low);
    sum.low = sum.low && low ? fit(*sum.low + *low) : std::nullopt;
    sum.high = sum.high && high ? fit(*sum.high + *high) : std::nullopt;
  }
  return sum;
}

std::optional<int64_t> to_int64(const std::optional<__int128>& v) {
  if (!v || *v > INT64_MAX || *v < INT64_MIN) return std::nullopt;
  return static_cast<int64_t>(*v);
}

/// True when `a` is min(x, c) with c over 1 and x equal to b: then broadcasting with b can only give b.
bool is_min_with(const Dim& a, const Dim& b) {
  if (a.offset() != 0 || a.terms().size() != 1) return false;
  const Dim::Term& term = a.terms()[0];
  if (term.coefficient != 1 || term.atoms.size() != 1 || term.atoms[0]->kind != DimAtom::Kind::kMin)
    return false;
  const auto over_one = [](const Dim& d) { return d.is_constant() && d.constant() > 1; };
  return (term.atoms[0]->a == b && over_one(term.atoms[0]->b)) ||
         (term.atoms[0]->b == b && over_one(term.atoms[0]->a));
}

}  // namespace

Status node_error(const Node& node, std::string_view what) {
  return invalid_model(fmt::format("{}: {}", node.describe(), what));
}

EvalResult single(Result<Tensor> tensor) {
  if (!tensor.ok()) return std::move(tensor).status();
  std::vector<Tensor> out;
  out.push_back(*std::move(tensor));
  return out;
}

Result<size_t> resolve_axis(const Node& node, int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) return node_error(node, fmt::format("axis {} is outside rank {}", axis, rank));
  return static_cast<size_t>(axis < 0 ? axis + r : axis);
}

Result<std::vector<size_t>> resolve_axes(const Node& node, std::span<const int64_t> axes, size_t rank) {
  std::vector<size_t> out;
  for (int64_t axis : axes) {
    DECANT_ASSIGN(const size_t resolved, resolve_axis(node, axis, rank));
    if (std::find(out.begin(), out.end(), resolved) != out.end()) {
      return node_error(node, fmt::format("axis {} is given twice", axis));
    }
    out.push_back(resolved);
  }
  return out;
}

std::optional<int64_t> lower_bound(const Graph& graph, const Dim& dim) {
  return to_int64(interval_of(graph, dim).low);
}

std::optional<int64_t> upper_bound(const Graph& graph, const Dim& dim) {
  return to_int64(interval_of(graph, dim).high);
}

Dim clamp_to_zero(const Graph& graph, const Dim& a) {
  if (at_least(graph, a, 0)) return a;
  if (at_least(graph, 0, a)) return 0;
  return max(a, Dim(0));
}

Dim smaller(const Graph& graph, const Dim& a, const Dim& b) {
  if (at_least(graph, b, a)) return a;
  if (at_least(graph, a, b)) return b;
  return min(a, b);
}

Result<Dim> broadcast_dim(InferContext& context, const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (a == Dim(1)) return b;
  if (b == Dim(1)) return a;
  if (a.is_constant() && b.is_constant()) {
    return context.error(fmt::format("dims {} and {} do not broadcast", a.constant(), b.constant()));
  }
  if (is_min_with(a, b)) return b;
  if (is_min_with(b, a)) return a;
  // A dim of 0 could still meet a 1; constants first, then whatever is known to be over 1.
  if (a.is_constant() && a.constant() != 1) return a;
  if (b.is_constant() && b.constant() != 1) return b;
  const auto a_low = lower_bound(context.graph(), a), b_low = lower_bound(context.graph(), b);
  if (a_low && *a_low > 1) return a;
  if (b_low && *b_low > 1) return b;
  return context.fresh_symbol("broadcast");
}

Result<Shape> broadcast_shapes(InferContext& context, const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  const size_t pad = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    DECANT_ASSIGN(out[pad + i], broadcast_dim(context, longer[pad + i], shorter[i]));
  }
  return out;
}

Result<std::optional<Shape>> broadcast_inputs(InferContext& context, size_t first, size_t last) {
  Shape out;
  for (size_t i = first; i < last; ++i) {
    if (!context.has_input(i)) continue;
    if (!context.shape(i)) return std::optional<Shape>();
    DECANT_ASSIGN(out, broadcast_shapes(context, out, *context.shape(i)));
  }
  return std::optional<Shape>(std::move(out));
}

Result<Dim> merge_dims(InferContext& context, const Dim& a, const Dim& b) {
  if (a == b || a.is_constant()) {
    if (a != b && b.is_constant()) {
      return context.error(fmt::format("dims {} and {} must be equal", a.constant(), b.constant()));
    }
    return a;
  }
  return b.is_constant() ? b : a;
}

Status require_dtype(InferContext& context, size_t i, bool (*allowed)(DType), std::string_view what) {
  if (!context.has_input(i) || allowed(context.dtype(i))) return ok_status();
  return context.error(fmt::format("input {} must be {}, not {}", i, what, to_string(context.dtype(i))));
}

Status require_same_dtype(InferContext& context, size_t first, size_t last) {
  std::optional<DType> dtype;
  for (size_t i = first; i < last; ++i) {
    if (!context.has_input(i)) continue;
    if (dtype && *dtype != context.dtype(i)) {
      return context.error(fmt::format("inputs have different types: {} and {}", to_string(*dtype),
                                       to_string(context.dtype(i))));
    }
    dtype = context.dtype(i);
  }
  return ok_status();
}

Status require_rank(InferContext& context, size_t i, size_t rank) {
  if (!context.has_input(i) || !context.shape(i) || context.shape(i)->size() == rank) return ok_status();
  return context.error(fmt::format("input {} must have rank {}", i, rank));
}

Status infer_same(InferContext& context) {
  context.set_output(0, context.dtype(0), context.shape(0));
  return ok_status();
}

Status infer_same_float(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  return infer_same(context);
}

std::optional<int64_t> constant_length(InferContext& context, size_t i) {
  if (!context.has_input(i) || !context.shape(i)) return std::nullopt;
  const Shape& shape = *context.shape(i);
  if (shape.empty()) return 1;
  if (shape.size() != 1) return std::nullopt;
  return shape[0].as_constant();
}

void follow_elements(InferContext& context, std::vector<Dim> elements) {
  const Value* out = context.node().output(0);
  if (elements.size() > kMaxFollowedElements || out == nullptr) return;
  if (!is_countable(out->dtype) || !out->shape || out->shape->size() > 1) return;
  const auto count = out->shape->empty() ? std::optional<int64_t>(1) : (*out->shape)[0].as_constant();
  if (!count || *count != static_cast<int64_t>(elements.size())) return;
  context.set_elements(0, std::move(elements));
}

std::vector<int64_t> axes_of(EvalInputs inputs, size_t i) {
  const Tensor* axes = optional_input(inputs, i);
  return axes == nullptr ? std::vector<int64_t>() : axes->to_ints();
}

Result<std::vector<int64_t>> read_int_list(const Node& node, const Tensor& tensor, std::string_view what) {
  if (tensor.rank() > 1 || !is_integer(tensor.dtype()) || tensor.elements() > 1024) {
    return node_error(node,
                      fmt::format("{} must be a short list of integers, not {}", what, describe(tensor)));
  }
  return tensor.to_ints();
}

}  // namespace decant::ir
