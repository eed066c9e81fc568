#include <cstring>

#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::Node;

/// TensorScatter-24, linear, on [batch, head, position, channel] with axis 2. When the plan gave the output
/// its input's memory, only the update is written.
class TensorScatter final : public Kernel {
 public:
  Status run(const Call& call) override {
    const Arg &past = call.inputs[0], &update = call.inputs[1], &out = call.outputs[0];
    const Arg* indices = call.inputs.size() > 2 && call.inputs[2] ? &call.inputs[2] : nullptr;
    const int64_t batch = past.dims[0], heads = past.dims[1], capacity = past.dims[2],
                  channels = past.dims[3];
    const int64_t length = update.dims[2];
    if (update.dims[0] != batch || update.dims[1] != heads || update.dims[3] != channels) {
      return invalid_argument("the update does not fit the cache");
    }
    if (indices && indices->elements != batch)
      return invalid_argument("write_indices has not one entry for each batch row");
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t at = indices ? indices->as<const int64_t>()[b] : 0;
      if (at < 0 || length > capacity || at > capacity - length) {
        return out_of_range("the cache holds " + std::to_string(capacity) + " positions; writing " +
                            std::to_string(length) + " at " + std::to_string(at) +
                            " does not fit. Raise --max-cache-len");
      }
    }
    if (out.data != past.data)
      std::memcpy(out.data, past.data, static_cast<size_t>(past.elements) * size_of(past.dtype));
    const int64_t row = length * channels;
    const size_t size = size_of(past.dtype);
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t at = indices ? indices->as<const int64_t>()[b] : 0;
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t target = ((b * heads + h) * capacity + at) * channels, source = (b * heads + h) * row;
        std::memcpy(out.as<std::byte>() + static_cast<size_t>(target) * size,
                    update.as<std::byte>() + static_cast<size_t>(source) * size,
                    static_cast<size_t>(row) * size);
      }
    }
    return ok_status();
  }
};

std::unique_ptr<Kernel> make(const Node& node) {
  const ir::Value *past = node.input(0), *update = node.input(1);
  if (!past->shape || past->shape->size() != 4 || !update->shape || update->shape->size() != 4)
    return nullptr;
  const int64_t axis = node.int_attribute("axis", -2);
  if (axis != -2 && axis != 2) return nullptr;
  if (node.string_attribute("mode", "linear") != "linear") return nullptr;
  if (past->dtype != update->dtype) return nullptr;
  return std::make_unique<TensorScatter>();
}

}  // namespace

DECANT_KERNEL(TensorScatter) { return {"TensorScatter", "", &make}; }

}  // namespace decant::runtime
