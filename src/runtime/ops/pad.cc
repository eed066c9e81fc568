#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/ops/broadcast.h"

namespace decant::runtime {
namespace {

using ir::Node;

/// Constant padding of all axes, pads not negative; the last axes that keep their size move as one block.
class Pad final : public Kernel {
 public:
  Status run(const Call& call) override {
    const Arg &x = call.inputs[0], &pads = call.inputs[1], &out = call.outputs[0];
    const Arg* value = call.inputs.size() > 2 && call.inputs[2] ? &call.inputs[2] : nullptr;
    const auto rank = static_cast<size_t>(x.rank);
    if (pads.elements != 2 * x.rank) return invalid_argument("two pads for each axis are needed");
    const auto* before = pads.as<const int64_t>();
    for (size_t d = 0; d < rank; ++d) {
      if (before[d] < 0 || before[rank + d] < 0) return unsupported("pads below zero");
      if (before[d] + x.dims[d] + before[rank + d] != out.dims[d])
        return internal_error("the pads do not fit the output");
    }
    fill(out, value);
    if (x.elements == 0) return ok_status();
    // Axis `inner` and those behind it are one run in both; it may be padded itself.
    size_t inner = rank;
    while (inner > 0 && (inner == rank || x.dims[inner] == out.dims[inner])) --inner;
    const size_t size = size_of(x.dtype);
    int64_t in_block = 1, out_block = 1, offset = 0;
    for (size_t d = inner; d < rank; ++d) {
      in_block *= x.dims[d];
      out_block *= out.dims[d];
    }
    if (inner < rank) offset = out.dims[inner] ? before[inner] * (out_block / out.dims[inner]) : 0;
    const int64_t blocks = x.elements / in_block;
    std::array<int64_t, kMaxRank> at{};
    for (int64_t i = 0; i < blocks; ++i) {
      int64_t row = 0;
      for (size_t d = 0; d < inner; ++d) row = row * out.dims[d] + at[d] + before[d];
      std::memcpy(out.as<std::byte>() + static_cast<size_t>(row * out_block + offset) * size,
                  x.as<const std::byte>() + static_cast<size_t>(i * in_block) * size,
                  static_cast<size_t>(in_block) * size);
      for (size_t d = inner; d-- > 0;) {
        if (++at[d] < x.dims[d]) break;
        at[d] = 0;
      }
    }
    return ok_status();
  }

 private:
  static void fill(const Arg& out, const Arg* value) {
    const size_t size = size_of(out.dtype), bytes = static_cast<size_t>(out.elements) * size;
    if (!value || value->elements != 1) {
      std::memset(out.data, 0, bytes);
      return;
    }
    for (size_t i = 0; i < bytes; i += size) std::memcpy(out.as<std::byte>() + i, value->data, size);
  }
};

std::unique_ptr<Kernel> make(const Node& node) {
  const ir::Value *x = node.input(0), *pads = node.input(1);
  if (node.string_attribute("mode", "constant") != "constant" || node.input(3) || !x->shape ||
      x->shape->empty() || x->shape->size() > kMaxRank || pads->dtype != DType::kInt64 ||
      size_of(x->dtype) == 0)
    return nullptr;
  if (const auto& known = pads->constant; known && known->in_memory()) {
    for (int64_t i = 0; i < known->elements(); ++i) {
      if (known->tensor().int_at(i) < 0) return nullptr;
    }
  } else if (pads->elements) {
    for (const ir::Dim& d : *pads->elements) {
      if (d.is_constant() && d.constant() < 0) return nullptr;
    }
  }
  return std::make_unique<Pad>();
}

}  // namespace

DECANT_KERNEL(Pad) { return {"Pad", "", &make}; }

}  // namespace decant::runtime
