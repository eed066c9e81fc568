#include <cstring>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_bit_cast(InferContext& context) {
  const int64_t code = context.node().int_attribute("to", 0);
  const DType to = dtype_from_onnx_code(code);
  if (to == DType::kUndefined)
    return unsupported(fmt::format("{}: type {}", context.node().describe(), code));
  if (bits_of(to) == 0 || bits_of(to) != bits_of(context.dtype(0))) {
    return context.error(fmt::format("{} has another width than the input", to_string(to)));
  }
  context.set_output(0, to, context.shape(0));
  return ok_status();
}

EvalResult eval_bit_cast(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  const DType to = dtype_from_onnx_code(node.int_attribute("to", 0));
  if (to == DType::kUndefined || bits_of(to) == 0 || bits_of(to) != bits_of(x.dtype())) {
    return node_error(node, "the type to cast to has another width");
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(to, x.dims()));
  if (x.bytes() != 0) std::memcpy(out.mutable_data(), x.data(), x.bytes());
  if (to == DType::kBool) {
    for (int64_t i = 0; i < out.elements(); ++i) {
      auto& byte = out.mutable_data_as<uint8_t>()[i];
      byte = byte != 0;
    }
  }
  return single(std::move(out));
}

}  // namespace

DECANT_OP(BitCast) {
  return {.name = "BitCast",
          .doc = "The same bits as another type of the same width",
          .min_inputs = 1,
          .max_inputs = 1,
          .any_dtype = true,
          .infer = infer_bit_cast,
          .eval = eval_bit_cast};
}

}  // namespace decant::ir
