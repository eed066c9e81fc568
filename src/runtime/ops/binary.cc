#include <algorithm>
#include <functional>
#include <type_traits>

#include "runtime/ops/broadcast.h"

namespace decant::runtime {
namespace {

using ir::Node;
using kernels::BinaryOp;

/// out = f(a, b) with broadcasting, any rank up to kMaxRank.
template <typename In, typename Out, typename F>
Status apply(const Call& call, F f) {
  const Arg &a = call.inputs[0], &b = call.inputs[1], &out = call.outputs[0];
  if (!broadcasts<2>(out, {&a, &b})) return invalid_argument("the operands do not broadcast");
  const BroadcastWalk<2> walk(out, {&a, &b});
  const int64_t sa = walk.column_stride(0), sb = walk.column_stride(1), n = walk.columns;
  walk.for_rows(0, walk.rows, [&](int64_t row, const std::array<int64_t, 2>& at) {
    const In *x = a.as<const In>() + at[0], *y = b.as<const In>() + at[1];
    Out* z = out.as<Out>() + row * n;
    if (sa == 1 && sb == 1) {
      for (int64_t i = 0; i < n; ++i) z[i] = f(x[i], y[i]);
    } else if (sb == 0) {
      for (int64_t i = 0; i < n; ++i) z[i] = f(x[i * sa], *y);
    } else {
      for (int64_t i = 0; i < n; ++i) z[i] = f(x[i * sa], y[i * sb]);
    }
  });
  return ok_status();
}

bool same_shape(const Arg& a, const Arg& b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

/// The f32 forms with a vector kernel; the rest walks.
template <BinaryOp op, typename F>
Status apply_f32(const Call& call, F f) {
  const Arg &a = call.inputs[0], &b = call.inputs[1], &out = call.outputs[0];
  if (same_shape(a, b)) {
    kernels::binary(call.kernels, op, a.as<const float>(), b.as<const float>(), out.as<float>(), a.elements);
  } else if (b.elements == 1 && a.elements == out.elements) {
    kernels::binary_scalar(call.kernels, op, a.as<const float>(), *b.as<const float>(), out.as<float>(),
                           a.elements);
  } else if (a.elements == 1 && b.elements == out.elements) {
    kernels::binary_scalar(call.kernels, op, b.as<const float>(), *a.as<const float>(), out.as<float>(),
                           b.elements, true);
  } else if (a.elements == out.elements && b.rank >= 1 && b.elements == b.dims[b.rank - 1] &&
             b.elements == out.dims[out.rank - 1]) {
    kernels::binary_row(call.kernels, op, a.as<const float>(), b.as<const float>(), out.as<float>(),
                        out.elements / b.elements, b.elements);
  } else {
    return apply<float, float>(call, f);
  }
  return ok_status();
}

bool two_shapes(const Node& node) {
  return node.inputs().size() == 2 && node.input(1) && node.input(0)->dtype == node.input(1)->dtype;
}

/// Integer arithmetic wraps, as ONNX Runtime's does.
template <BinaryOp op, typename F, bool kIntegers>
std::unique_ptr<Kernel> make_arithmetic(const Node& node) {
  if (!two_shapes(node)) return nullptr;
  switch (node.input(0)->dtype) {
    case DType::kFloat32:
      return kernel_of([](const Call& call) { return apply_f32<op>(call, F()); });
    case DType::kInt64:
      if constexpr (kIntegers) {
        return kernel_of([](const Call& call) {
          return apply<uint64_t, uint64_t>(call, [](uint64_t a, uint64_t b) {
            if constexpr (op == BinaryOp::kMin || op == BinaryOp::kMax) {
              return static_cast<uint64_t>(F()(static_cast<int64_t>(a), static_cast<int64_t>(b)));
            } else {
              return F()(a, b);
            }
          });
        });
      }
      return nullptr;
    default:
      return nullptr;
  }
}

struct MinOf {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct MaxOf {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

template <typename F>
std::unique_ptr<Kernel> make_compare(const Node& node) {
  if (!two_shapes(node)) return nullptr;
  switch (node.input(0)->dtype) {
    case DType::kFloat32:
      return kernel_of([](const Call& call) { return apply<float, bool>(call, F()); });
    case DType::kInt64:
      return kernel_of([](const Call& call) { return apply<int64_t, bool>(call, F()); });
    case DType::kInt32:
      return kernel_of([](const Call& call) { return apply<int32_t, bool>(call, F()); });
    case DType::kBool:
      return kernel_of([](const Call& call) { return apply<uint8_t, bool>(call, F()); });
    default:
      return nullptr;
  }
}

template <typename F>
std::unique_ptr<Kernel> make_logic(const Node& node) {
  return kernel_of([](const Call& call) {
    return apply<uint8_t, bool>(call, [](uint8_t a, uint8_t b) { return F()(a != 0, b != 0); });
  });
}

std::unique_ptr<Kernel> make_not(const Node&) {
  return kernel_of([](const Call& call) {
    const auto* x = call.inputs[0].as<const uint8_t>();
    auto* y = call.outputs[0].as<uint8_t>();
    for (int64_t i = 0; i < call.inputs[0].elements; ++i) y[i] = x[i] == 0;
    return ok_status();
  });
}

}  // namespace

DECANT_KERNEL(Add) { return {"Add", "", &make_arithmetic<BinaryOp::kAdd, std::plus<>, true>}; }
DECANT_KERNEL(Sub) { return {"Sub", "", &make_arithmetic<BinaryOp::kSub, std::minus<>, true>}; }
DECANT_KERNEL(Mul) { return {"Mul", "", &make_arithmetic<BinaryOp::kMul, std::multiplies<>, true>}; }
DECANT_KERNEL(Div) { return {"Div", "", &make_arithmetic<BinaryOp::kDiv, std::divides<>, false>}; }
DECANT_KERNEL(Min) { return {"Min", "", &make_arithmetic<BinaryOp::kMin, MinOf, true>}; }
DECANT_KERNEL(Max) { return {"Max", "", &make_arithmetic<BinaryOp::kMax, MaxOf, true>}; }
DECANT_KERNEL(Equal) { return {"Equal", "", &make_compare<std::equal_to<>>}; }
DECANT_KERNEL(Less) { return {"Less", "", &make_compare<std::less<>>}; }
DECANT_KERNEL(LessOrEqual) { return {"LessOrEqual", "", &make_compare<std::less_equal<>>}; }
DECANT_KERNEL(Greater) { return {"Greater", "", &make_compare<std::greater<>>}; }
DECANT_KERNEL(GreaterOrEqual) { return {"GreaterOrEqual", "", &make_compare<std::greater_equal<>>}; }
DECANT_KERNEL(And) { return {"And", "", &make_logic<std::logical_and<>>}; }
DECANT_KERNEL(Or) { return {"Or", "", &make_logic<std::logical_or<>>}; }
DECANT_KERNEL(Xor) { return {"Xor", "", &make_logic<std::not_equal_to<>>}; }
DECANT_KERNEL(Not) { return {"Not", "", &make_not}; }

}  // namespace decant::runtime
