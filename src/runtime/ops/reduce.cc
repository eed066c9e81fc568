#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::Node;

struct SumOf {
  static constexpr double kStart = 0;
  static double join(double a, double b) { return a + b; }
};
struct LargestOf {
  static constexpr double kStart = -std::numeric_limits<double>::infinity();
  static double join(double a, double b) { return std::isnan(a) || a > b ? a : b; }
};
struct SmallestOf {
  static constexpr double kStart = std::numeric_limits<double>::infinity();
  static double join(double a, double b) { return std::isnan(a) || a < b ? a : b; }
};

/// How many trailing axes a node with constant axes reduces, and no other; 0 when it is not so.
size_t trailing_axes(const Node& node) {
  const ir::Value *x = node.input(0), *axes = node.input(1);
  if (!x->shape || x->shape->empty() || !axes || !axes->constant || !axes->constant->in_memory()) return 0;
  const size_t rank = x->shape->size();
  std::vector<bool> reduced(rank, false);
  for (int64_t axis : axes->constant->tensor().to_ints()) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) return 0;
    reduced[static_cast<size_t>(axis)] = true;
  }
  size_t n = 0;
  while (n < rank && reduced[rank - 1 - n]) ++n;
  return std::count(reduced.begin(), reduced.end(), true) == static_cast<std::ptrdiff_t>(n) ? n : 0;
}

/// Over trailing axes of f32 rows, in double.
template <typename Op, bool kMean>
std::unique_ptr<Kernel> make(const Node& node) {
  const size_t n = trailing_axes(node);
  if (n == 0 || node.input(0)->dtype != DType::kFloat32) return nullptr;
  return kernel_of([n](const Call& call) {
    const Arg &x = call.inputs[0], &y = call.outputs[0];
    int64_t cols = 1;
    for (size_t i = 0; i < n; ++i) cols *= x.dims[x.rank - 1 - static_cast<int32_t>(i)];
    if (y.elements * cols != x.elements) return internal_error("a reduction does not fit its output");
    for (int64_t row = 0; row < y.elements; ++row) {
      const float* const in = x.as<const float>() + row * cols;
      double parts[4] = {Op::kStart, Op::kStart, Op::kStart, Op::kStart};
      int64_t i = 0;
      for (; i + 4 <= cols; i += 4) {
        for (int64_t lane = 0; lane < 4; ++lane)
          parts[lane] = Op::join(parts[lane], static_cast<double>(in[i + lane]));
      }
      for (; i < cols; ++i) parts[0] = Op::join(parts[0], static_cast<double>(in[i]));
      double total = Op::join(Op::join(parts[0], parts[1]), Op::join(parts[2], parts[3]));
      if (kMean) total /= static_cast<double>(cols);
      y.as<float>()[row] = static_cast<float>(total);
    }
    return ok_status();
  });
}

}  // namespace

DECANT_KERNEL(ReduceSum) { return {"ReduceSum", "", &make<SumOf, false>}; }
DECANT_KERNEL(ReduceMean) { return {"ReduceMean", "", &make<SumOf, true>}; }
DECANT_KERNEL(ReduceMax) { return {"ReduceMax", "", &make<LargestOf, false>}; }
DECANT_KERNEL(ReduceMin) { return {"ReduceMin", "", &make<SmallestOf, false>}; }

}  // namespace decant::runtime
