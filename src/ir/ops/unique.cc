#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// Without `axis` the input is taken flat.
Status infer_unique(InferContext& context) {
  const int64_t* axis = context.node().attribute<int64_t>("axis");
  const Dim count = context.fresh_symbol("unique");
  if (axis == nullptr) {
    context.set_output(0, context.dtype(0), Shape{count});
  } else if (!context.shape(0)) {
    context.set_output(0, context.dtype(0), std::nullopt);
  } else {
    Shape shape = *context.shape(0);
    DECANT_ASSIGN(const size_t at, resolve_axis(context.node(), *axis, shape.size()));
    shape[at] = count;
    context.set_output(0, context.dtype(0), std::move(shape));
  }
  context.set_output(1, DType::kInt64, Shape{count});
  context.set_output(2, DType::kInt64, Shape{context.fresh_symbol("unique_inverse")});
  context.set_output(3, DType::kInt64, Shape{count});
  return ok_status();
}

/// Order of two elements; NaN comes last, as in NumPy.
template <typename C>
int compare(C a, C b) {
  if constexpr (std::is_same_v<C, double>) {
    const bool na = std::isnan(a), nb = std::isnan(b);
    if (na || nb) return static_cast<int>(na) - static_cast<int>(nb);
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

struct Groups {
  std::vector<int64_t> first;    ///< of each group, the first slice
  std::vector<int64_t> inverse;  ///< of each slice, its group
  std::vector<int64_t> counts;
};

/// Groups equal slices along an axis: `length` slices, slice i having the elements at (o * length + i) *
/// inner + k.
template <typename C>
Groups group_slices(const std::vector<C>& values, int64_t outer, int64_t length, int64_t inner, bool sorted) {
  const auto order = [&](int64_t a, int64_t b) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t k = 0; k < inner; ++k) {
        const int c = compare(values[static_cast<size_t>((o * length + a) * inner + k)],
                              values[static_cast<size_t>((o * length + b) * inner + k)]);
        if (c != 0) return c;
      }
    }
    return 0;
  };
  std::vector<int64_t> slices(static_cast<size_t>(length));
  std::iota(slices.begin(), slices.end(), 0);
  std::stable_sort(slices.begin(), slices.end(), [&](int64_t a, int64_t b) { return order(a, b) < 0; });
  Groups out;
  out.inverse.resize(slices.size());
  for (size_t i = 0; i < slices.size(); ++i) {
    if (i == 0 || order(slices[i - 1], slices[i]) != 0) {
      out.first.push_back(slices[i]);
      out.counts.push_back(0);
    }
    out.inverse[static_cast<size_t>(slices[i])] = static_cast<int64_t>(out.first.size()) - 1;
    ++out.counts.back();
  }
  if (sorted) return out;
  std::vector<size_t> by_first(out.first.size());
  std::iota(by_first.begin(), by_first.end(), size_t{0});
  std::sort(by_first.begin(), by_first.end(),
            [&](size_t a, size_t b) { return out.first[a] < out.first[b]; });
  Groups ordered = out;
  std::vector<int64_t> place(by_first.size());
  for (size_t i = 0; i < by_first.size(); ++i) {
    ordered.first[i] = out.first[by_first[i]];
    ordered.counts[i] = out.counts[by_first[i]];
    place[by_first[i]] = static_cast<int64_t>(i);
  }
  for (int64_t& g : ordered.inverse) g = place[static_cast<size_t>(g)];
  return ordered;
}

EvalResult eval_unique(const Node& node, EvalInputs inputs) {
  const int64_t* axis_attribute = node.attribute<int64_t>("axis");
  const Tensor x = axis_attribute ? *inputs[0] : inputs[0]->reshaped({inputs[0]->elements()});
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, axis_attribute ? *axis_attribute : 0, x.rank()));
  const bool sorted = node.int_attribute("sorted", 1) != 0;
  const int64_t outer = product(x.dims(), 0, axis), length = x.dims()[axis],
                inner = product(x.dims(), axis + 1, x.rank());
  if (x.elements() == 0 && length != 0) return node_error(node, "slices have no elements");
  const Groups groups = with_compute_type(x.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    return group_slices<C>(read<C>(x), outer, length, inner, sorted);
  });
  Dims dims = x.dims();
  const auto count = static_cast<int64_t>(groups.first.size());
  dims[axis] = count;
  std::vector<Tensor> out(std::max<size_t>(1, node.outputs().size()));
  DECANT_ASSIGN(out[0], Tensor::allocate(x.dtype(), dims));
  for (int64_t o = 0; o < outer && out[0].elements() > 0; ++o) {
    for (int64_t g = 0; g < count; ++g) {
      const int64_t from = (o * length + groups.first[static_cast<size_t>(g)]) * inner;
      copy_elements(out[0], (o * count + g) * inner, x, from, inner);
    }
  }
  const std::vector<int64_t>* lists[] = {&groups.first, &groups.inverse, &groups.counts};
  for (size_t i = 1; i < out.size() && i < 4; ++i) {
    DECANT_ASSIGN(out[i], make_tensor<int64_t>(DType::kInt64, {static_cast<int64_t>(lists[i - 1]->size())},
                                               *lists[i - 1]));
  }
  return out;
}

}  // namespace

DECANT_OP(Unique) {
  return {.name = "Unique",
          .doc = "Distinct elements (slices with `axis`), where they first occur, the way back, and counts",
          .min_inputs = 1,
          .max_inputs = 1,
          .max_outputs = 4,
          .infer = infer_unique,
          .eval = eval_unique};
}

}  // namespace decant::ir
