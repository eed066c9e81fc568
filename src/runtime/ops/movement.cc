#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/parallel.h"
#include "runtime/ops/broadcast.h"

namespace decant::runtime {
namespace {

using ir::Node;

/// Copies a strided view of `source` (strides in elements, may be 0 or negative) into dense `out`.
void copy_strided(const kernels::Context& context, const Arg& out, const std::byte* source,
                  const std::array<int64_t, kMaxRank>& strides, size_t size) {
  if (out.elements == 0) return;
  int rank = out.rank;
  std::array<int64_t, kMaxRank> dims{};
  std::copy(out.dims, out.dims + rank, dims.begin());
  std::array<int64_t, kMaxRank> step = strides;
  // Trailing axes that are contiguous in the source are one block.
  int64_t block = 1;
  while (rank > 0 &&
         (dims[static_cast<size_t>(rank - 1)] == 1 || step[static_cast<size_t>(rank - 1)] == block)) {
    block *= dims[static_cast<size_t>(--rank)];
  }
  const size_t bytes = static_cast<size_t>(block) * size;
  const double cost = 2.0 * static_cast<double>(std::max<size_t>(bytes, 16));
  kernels::for_range(context, out.elements / block, cost, 1, [&](int, int64_t begin, int64_t end) {
    std::array<int64_t, kMaxRank> at{};
    int64_t offset = 0, rest = begin;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      at[a] = rest % dims[a];
      rest /= dims[a];
      offset += at[a] * step[a];
    }
    std::byte* target = static_cast<std::byte*>(out.data) + static_cast<size_t>(begin) * bytes;
    for (int64_t i = begin; i < end; ++i) {
      const std::byte* from = source + offset * static_cast<int64_t>(size);
      if (bytes == 4) {
        std::memcpy(target, from, 4);
      } else if (bytes == 8) {
        std::memcpy(target, from, 8);
      } else {
        std::memcpy(target, from, bytes);
      }
      target += bytes;
      for (int axis = rank - 1; axis >= 0; --axis) {
        const auto a = static_cast<size_t>(axis);
        offset += step[a];
        if (++at[a] < dims[a]) break;
        at[a] = 0;
        offset -= dims[a] * step[a];
      }
    }
  });
}

std::array<int64_t, kMaxRank> dense_strides(const Arg& x) {
  std::array<int64_t, kMaxRank> strides{};
  int64_t stride = 1;
  for (int axis = x.rank - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= x.dims[axis];
  }
  return strides;
}

bool rank_fits(const Node& node) {
  const ir::Value *x = node.input(0), *y = node.output(0);
  return x && x->shape && x->shape->size() <= kMaxRank && y && y->shape && y->shape->size() <= kMaxRank;
}

std::unique_ptr<Kernel> make_transpose(const Node& node) {
  if (!rank_fits(node)) return nullptr;
  std::vector<int64_t> perm;
  if (const auto* given = node.attribute<std::vector<int64_t>>("perm")) perm = *given;
  const auto rank = static_cast<int64_t>(node.input(0)->shape->size());
  for (int64_t i = static_cast<int64_t>(perm.size()); i < rank; ++i) perm.push_back(rank - 1 - i);
  return kernel_of([perm](const Call& call) {
    const Arg& x = call.inputs[0];
    const auto strides = dense_strides(x);
    std::array<int64_t, kMaxRank> permuted{};
    for (size_t i = 0; i < perm.size(); ++i) permuted[i] = strides[static_cast<size_t>(perm[i])];
    copy_strided(call.kernels, call.outputs[0], x.as<const std::byte>(), permuted, size_of(x.dtype));
    return ok_status();
  });
}

std::unique_ptr<Kernel> make_expand(const Node& node) {
  if (!rank_fits(node)) return nullptr;
  return kernel_of([](const Call& call) {
    const Arg &x = call.inputs[0], &out = call.outputs[0];
    if (!broadcasts<1>(out, {&x})) return invalid_argument("the input does not broadcast to the shape");
    copy_strided(call.kernels, out, x.as<const std::byte>(), BroadcastWalk<1>(out, {&x}).strides[0],
                 size_of(x.dtype));
    return ok_status();
  });
}

/// Slice with starts, ends, axes and steps read at run time; negative steps walk backwards.
std::unique_ptr<Kernel> make_slice(const Node& node) {
  if (!rank_fits(node)) return nullptr;
  for (size_t i = 1; i < node.inputs().size(); ++i) {
    if (node.input(i) && node.input(i)->dtype != DType::kInt64) return nullptr;
  }
  return kernel_of([](const Call& call) {
    const Arg &x = call.inputs[0], &out = call.outputs[0], &starts = call.inputs[1];
    const Arg* axes = call.inputs.size() > 3 && call.inputs[3] ? &call.inputs[3] : nullptr;
    const Arg* steps = call.inputs.size() > 4 && call.inputs[4] ? &call.inputs[4] : nullptr;
    auto strides = dense_strides(x);
    int64_t offset = 0;
    for (int64_t i = 0; i < starts.elements; ++i) {
      int64_t axis = axes ? axes->as<const int64_t>()[i] : i;
      if (axis < 0) axis += x.rank;
      if (axis < 0 || axis >= x.rank) return invalid_argument("a slice axis is outside the rank");
      const int64_t step = steps ? steps->as<const int64_t>()[i] : 1, dim = x.dims[axis];
      int64_t start = starts.as<const int64_t>()[i];
      if (start < 0) start = start < -dim ? -1 : start + dim;
      start = step < 0 ? std::clamp<int64_t>(start, -1, dim - 1) : std::clamp<int64_t>(start, 0, dim);
      const int64_t count = out.dims[axis];
      if (count > 0) {
        const __int128 last = static_cast<__int128>(start) + static_cast<__int128>(count - 1) * step;
        if (start < 0 || start >= dim || last < 0 || last >= dim)
          return internal_error("a slice leaves its input");
        offset += start * strides[static_cast<size_t>(axis)];
        strides[static_cast<size_t>(axis)] *= count > 1 ? step : 1;
      }
    }
    copy_strided(call.kernels, out, x.as<const std::byte>() + offset * static_cast<int64_t>(size_of(x.dtype)),
                 strides, size_of(x.dtype));
    return ok_status();
  });
}

int64_t normal_axis(const Node& node, int64_t fallback, size_t rank) {
  const int64_t axis = node.int_attribute("axis", fallback);
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

std::unique_ptr<Kernel> make_concat(const Node& node) {
  const ir::Value* y = node.output(0);
  if (!y->shape || y->shape->empty()) return nullptr;
  const int64_t axis = normal_axis(node, 0, y->shape->size());
  return kernel_of([axis](const Call& call) {
    const Arg& out = call.outputs[0];
    const size_t size = size_of(out.dtype);
    int64_t outer = 1;
    for (int64_t i = 0; i < axis; ++i) outer *= out.dims[i];
    if (outer == 0) return ok_status();
    const size_t row = static_cast<size_t>(out.elements / outer) * size;
    size_t at = 0;
    for (const Arg& x : call.inputs) {
      if (x.elements == 0) continue;
      if (x.rank != out.rank) return invalid_argument("the operands differ in rank");
      const size_t bytes = static_cast<size_t>(x.elements / outer) * size;
      if (at + bytes > row || x.elements % outer != 0)
        return internal_error("the operands do not fit the output");
      for (int64_t o = 0; o < outer; ++o) {
        std::memcpy(out.as<std::byte>() + static_cast<size_t>(o) * row + at,
                    x.as<std::byte>() + static_cast<size_t>(o) * bytes, bytes);
      }
      at += bytes;
    }
    return ok_status();
  });
}

std::unique_ptr<Kernel> make_split(const Node& node) {
  if (!rank_fits(node)) return nullptr;
  const int64_t axis = normal_axis(node, 0, node.input(0)->shape->size());
  return kernel_of([axis](const Call& call) {
    const Arg& x = call.inputs[0];
    const auto strides = dense_strides(x);
    int64_t at = 0;
    for (const Arg& out : call.outputs) {
      if (!out) return internal_error("an output of Split is left out");
      if (at + out.dims[axis] > x.dims[axis]) return internal_error("the parts do not fit the input");
      copy_strided(call.kernels, out,
                   x.as<const std::byte>() +
                       at * strides[static_cast<size_t>(axis)] * static_cast<int64_t>(size_of(x.dtype)),
                   strides, size_of(x.dtype));
      at += out.dims[axis];
    }
    return ok_status();
  });
}

}  // namespace

DECANT_KERNEL(Transpose) { return {"Transpose", "", &make_transpose}; }
DECANT_KERNEL(Expand) { return {"Expand", "", &make_expand}; }
DECANT_KERNEL(Slice) { return {"Slice", "", &make_slice}; }
DECANT_KERNEL(Concat) { return {"Concat", "", &make_concat}; }
DECANT_KERNEL(Split) { return {"Split", "", &make_split}; }

}  // namespace decant::runtime
