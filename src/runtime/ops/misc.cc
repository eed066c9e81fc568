#include <cstring>

#include "runtime/ops/broadcast.h"

namespace decant::runtime {
namespace {

using ir::Node;

bool is_half(DType t) { return t == DType::kFloat16 || t == DType::kBFloat16; }

template <typename From, typename To>
Status convert(const Call& call) {
  const auto* x = call.inputs[0].as<const From>();
  auto* y = call.outputs[0].as<To>();
  for (int64_t i = 0; i < call.inputs[0].elements; ++i) y[i] = static_cast<To>(x[i]);
  return ok_status();
}

std::unique_ptr<Kernel> make_cast(const Node& node) {
  const DType from = node.input(0)->dtype, to = node.output(0)->dtype;
  if (from == to) {
    return kernel_of([](const Call& call) {
      const Arg& x = call.inputs[0];
      if (x.elements)
        std::memcpy(call.outputs[0].data, x.data, static_cast<size_t>(x.elements) * size_of(x.dtype));
      return ok_status();
    });
  }
  if (is_half(from) && to == DType::kFloat32) {
    return kernel_of([from](const Call& call) {
      kernels::convert_to_f32(call.kernels, from, call.inputs[0].data, call.outputs[0].as<float>(),
                              call.inputs[0].elements);
      return ok_status();
    });
  }
  if (from == DType::kFloat32 && is_half(to)) {
    return kernel_of([to](const Call& call) {
      kernels::convert_from_f32(call.kernels, to, call.inputs[0].as<const float>(), call.outputs[0].data,
                                call.inputs[0].elements);
      return ok_status();
    });
  }
  auto pair = [](DType a, DType b) { return static_cast<int>(a) * 64 + static_cast<int>(b); };
  const int key = pair(from, to);
  if (key == pair(DType::kInt64, DType::kFloat32)) return kernel_of(&convert<int64_t, float>);
  if (key == pair(DType::kInt64, DType::kInt32)) return kernel_of(&convert<int64_t, int32_t>);
  if (key == pair(DType::kInt32, DType::kInt64)) return kernel_of(&convert<int32_t, int64_t>);
  if (key == pair(DType::kInt32, DType::kFloat32)) return kernel_of(&convert<int32_t, float>);
  if (key == pair(DType::kInt64, DType::kBool)) return kernel_of(&convert<int64_t, bool>);
  if (key == pair(DType::kBool, DType::kInt64)) return kernel_of(&convert<uint8_t, int64_t>);
  if (key == pair(DType::kBool, DType::kFloat32)) return kernel_of(&convert<uint8_t, float>);
  if (key == pair(DType::kInt32, DType::kFloat32)) return kernel_of(&convert<int32_t, float>);
  if (key == pair(DType::kBool, DType::kInt32)) return kernel_of(&convert<uint8_t, int32_t>);
  if (key == pair(DType::kFloat32, DType::kBool)) return kernel_of(&convert<float, bool>);
  return nullptr;
}

template <typename T>
Status select(const Call& call) {
  const Arg &c = call.inputs[0], &a = call.inputs[1], &b = call.inputs[2], &out = call.outputs[0];
  if (!broadcasts<3>(out, {&c, &a, &b})) return invalid_argument("the operands do not broadcast");
  const BroadcastWalk<3> walk(out, {&c, &a, &b});
  const int64_t sc = walk.column_stride(0), sa = walk.column_stride(1), sb = walk.column_stride(2),
                n = walk.columns;
  walk.for_rows(0, walk.rows, [&](int64_t row, const std::array<int64_t, 3>& at) {
    const auto* k = c.as<const uint8_t>() + at[0];
    const T *x = a.as<const T>() + at[1], *y = b.as<const T>() + at[2];
    T* z = out.as<T>() + row * n;
    for (int64_t i = 0; i < n; ++i) z[i] = k[i * sc] ? x[i * sa] : y[i * sb];
  });
  return ok_status();
}

std::unique_ptr<Kernel> make_where(const Node& node) {
  switch (size_of(node.output(0)->dtype)) {
    case 1:
      return kernel_of(&select<uint8_t>);
    case 2:
      return kernel_of(&select<uint16_t>);
    case 4:
      return kernel_of(&select<uint32_t>);
    case 8:
      return kernel_of(&select<uint64_t>);
    default:
      return nullptr;
  }
}

std::unique_ptr<Kernel> make_range(const Node& node) {
  if (node.output(0)->dtype != DType::kInt64) return nullptr;
  return kernel_of([](const Call& call) {
    const auto start = *call.inputs[0].as<const uint64_t>(), delta = *call.inputs[2].as<const uint64_t>();
    for (int64_t i = 0; i < call.outputs[0].elements; ++i)
      call.outputs[0].as<uint64_t>()[i] = start + static_cast<uint64_t>(i) * delta;
    return ok_status();
  });
}

std::unique_ptr<Kernel> make_softmax(const Node& node) {
  const ir::Value* x = node.input(0);
  if (x->dtype != DType::kFloat32 || !x->shape || x->shape->empty()) return nullptr;
  const int64_t axis = node.int_attribute("axis", -1);
  if (axis != -1 && axis != static_cast<int64_t>(x->shape->size()) - 1) return nullptr;
  return kernel_of([](const Call& call) {
    const Arg& in = call.inputs[0];
    const int64_t cols = in.dims[in.rank - 1];
    kernels::softmax(call.kernels, cols ? in.elements / cols : 0, cols, in.as<const float>(), cols,
                     call.outputs[0].as<float>(), cols);
    return ok_status();
  });
}

}  // namespace

DECANT_KERNEL(Cast) { return {"Cast", "", &make_cast}; }
DECANT_KERNEL(Where) { return {"Where", "", &make_where}; }
DECANT_KERNEL(Range) { return {"Range", "", &make_range}; }
DECANT_KERNEL(Softmax) { return {"Softmax", "", &make_softmax}; }

}  // namespace decant::runtime
