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

/// Neighbouring axes, from the first to before the last.
struct Axes {
  size_t begin = 0, end = 0;
};

/// The axes that a node with constant axes reduces; none when they are not neighbours.
Axes reduced_axes(const Node& node) {
  const ir::Value *x = node.input(0), *axes = node.input(1);
  if (!x->shape || x->shape->empty() || !axes || !axes->constant || !axes->constant->in_memory()) return {};
  const size_t rank = x->shape->size();
  std::vector<bool> reduced(rank, false);
  for (int64_t axis : axes->constant->tensor().to_ints()) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) return {};
    reduced[static_cast<size_t>(axis)] = true;
  }
  Axes a;
  while (a.begin < rank && !reduced[a.begin]) ++a.begin;
  for (a.end = a.begin; a.end < rank && reduced[a.end];) ++a.end;
  return std::count(reduced.begin(), reduced.end(), true) == static_cast<std::ptrdiff_t>(a.end - a.begin)
             ? a
             : Axes{};
}

/// Row of `cols` numbers to one, in double.
template <typename Op>
double reduce_row(const float* in, int64_t cols) {
  double parts[4] = {Op::kStart, Op::kStart, Op::kStart, Op::kStart};
  int64_t i = 0;
  for (; i + 4 <= cols; i += 4) {
    for (int64_t lane = 0; lane < 4; ++lane)
      parts[lane] = Op::join(parts[lane], static_cast<double>(in[i + lane]));
  }
  for (; i < cols; ++i) parts[0] = Op::join(parts[0], static_cast<double>(in[i]));
  return Op::join(Op::join(parts[0], parts[1]), Op::join(parts[2], parts[3]));
}

/// `rows` rows of `cols` numbers to one row, in double, a block of columns at a time.
template <typename Op>
void reduce_rows(const float* in, int64_t rows, int64_t cols, double divisor, float* out) {
  constexpr int64_t kBlock = 64;
  for (int64_t begin = 0; begin < cols; begin += kBlock) {
    const int64_t n = std::min(kBlock, cols - begin);
    double totals[kBlock];
    std::fill_n(totals, n, Op::kStart);
    for (int64_t row = 0; row < rows; ++row) {
      const float* const x = in + row * cols + begin;
      for (int64_t i = 0; i < n; ++i) totals[i] = Op::join(totals[i], static_cast<double>(x[i]));
    }
    for (int64_t i = 0; i < n; ++i) out[begin + i] = static_cast<float>(totals[i] / divisor);
  }
}

/// f32 over neighbouring axes.
template <typename Op, bool kMean>
std::unique_ptr<Kernel> make(const Node& node) {
  const Axes axes = reduced_axes(node);
  if (axes.begin == axes.end || node.input(0)->dtype != DType::kFloat32) return nullptr;
  return kernel_of([axes](const Call& call) {
    const Arg &x = call.inputs[0], &y = call.outputs[0];
    int64_t before = 1, count = 1, behind = 1;
    for (size_t i = 0; i < static_cast<size_t>(x.rank); ++i)
      (i < axes.begin ? before : i < axes.end ? count : behind) *= x.dims[i];
    if (y.elements != before * behind) return internal_error("a reduction does not fit its output");
    const double divisor = kMean ? static_cast<double>(count) : 1.0;
    const auto* in = x.as<const float>();
    auto* out = y.as<float>();
    for (int64_t i = 0; i < before; ++i) {
      if (behind == 1)
        out[i] = static_cast<float>(reduce_row<Op>(in + i * count, count) / divisor);
      else
        reduce_rows<Op>(in + i * count * behind, count, behind, divisor, out + i * behind);
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
