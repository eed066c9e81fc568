#include <fmt/format.h>

#include "base/checked.h"
#include "formats/onnx/adapters/adapters.h"
#include "ir/packed_constant.h"

namespace decant::onnx {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// Sizes of attributes: products of two of them cannot overflow.
constexpr int64_t kMaxSize = int64_t{1} << 31;

Result<int64_t> size_attribute(const Adaptation& a, std::string_view name, int64_t min) {
  DECANT_ASSIGN(const int64_t value, a.required_int(name, min));
  if (value > kMaxSize) return a.bad_form(fmt::format("attribute '{}' is {}", name, value));
  return value;
}

Status check_dtype(const Adaptation& a, const ir::Constant& c, DType dtype, std::string_view what) {
  if (c.dtype() == dtype) return ok_status();
  return a.unsupported_form(fmt::format("'{}' of {}", what, ir::describe(c.dtype(), c.dims())));
}

/// A · weightsᵀ with weights [N, K], and the bias. Products are made from weights decoded to float32,
/// whatever the type of A.
Status replace_by_product(Adaptation& a, ir::ConstantPtr weights, bool transposed, ir::Value* bias) {
  ir::Value* matrix = a.graph.add_constant(a.graph.unique_name(a.node.name + "_weights"), std::move(weights));
  ir::Value* y = a.emit("FusedMatMul", {a.node.input(0), matrix}, {{"transB", int64_t{transposed ? 1 : 0}}},
                        "com.microsoft");
  if (bias) y = a.emit("Add", {y, bias});
  a.replace_output(0, y);
  a.remove();
  return ok_status();
}

}  // namespace

/// MatMulNBits(A, B, scales, [zero_points], [g_idx], [bias]): B is [N, blocks, block_size * bits / 8].
Status adapt_matmul_nbits(Adaptation& a) {
  if (!a.node.input(0)) return a.bad_form("input 0 ('A') is left out");
  DECANT_ASSIGN(const int64_t n, size_attribute(a, "N", 1));
  DECANT_ASSIGN(const int64_t k, size_attribute(a, "K", 1));
  DECANT_ASSIGN(const int64_t block, size_attribute(a, "block_size", 1));
  const int64_t bits = a.node.int_attribute("bits", 4);
  if (bits < 2 || bits > 8) return a.unsupported_form(fmt::format("a width of {} bits", bits));
  if (block % 8 != 0) return a.bad_form(fmt::format("block_size {} is no multiple of 8", block));
  if (a.node.int_attribute("weight_prepacked", 0) != 0) {
    return a.unsupported_form("weight_prepacked (a GPU's own layout)");
  }
  const int64_t blocks = ceil_div(k, block);
  ir::PackedConstant packed;
  DECANT_ASSIGN(packed.codes, a.constant_input(1, "B"));
  DECANT_ASSIGN(packed.scales, a.constant_input(2, "scales"));
  DECANT_RETURN_IF_ERROR(check_dtype(a, *packed.codes, DType::kUInt8, "B"));
  const std::vector<int64_t> expected = {n, blocks, block * bits / 8};
  if (packed.codes->elements() != n * blocks * expected[2] || packed.codes->dims().empty() ||
      packed.codes->dims()[0] != n) {
    return a.bad_form(fmt::format("B is {}, it should be {}",
                                  ir::describe(packed.codes->dtype(), packed.codes->dims()),
                                  ir::describe(DType::kUInt8, expected)));
  }
  if (packed.scales->elements() != n * blocks) {
    return a.bad_form(fmt::format("scales are {} for {} blocks",
                                  ir::describe(packed.scales->dtype(), packed.scales->dims()), n * blocks));
  }
  PackedLayout& layout = packed.layout;
  layout.rows = n;
  layout.columns = k;
  layout.bits = static_cast<int>(bits);
  layout.row_bits = blocks * block * bits;
  layout.block_columns = block;
  layout.scale_dtype = packed.scales->dtype();
  layout.zero_point = 1 << (bits - 1);
  if (a.node.input(3)) {
    DECANT_ASSIGN(packed.zeros, a.constant_input(3, "zero_points"));
    if (packed.zeros->dtype() == DType::kUInt8) {
      layout.zero = PackedLayout::Zero::kCodes;
      layout.zero_row_bits = ceil_div(blocks * bits, 8) * 8;
    } else {
      layout.zero = PackedLayout::Zero::kNumbers;
      layout.zero_dtype = packed.zeros->dtype();
    }
  }
  if (a.node.input(4)) {
    DECANT_ASSIGN(packed.groups, a.constant_input(4, "g_idx"));
    DECANT_RETURN_IF_ERROR(check_dtype(a, *packed.groups, DType::kInt32, "g_idx"));
    if (packed.groups->elements() < k) return a.bad_form("g_idx is shorter than K");
    if (packed.groups->elements() > k) {  // padded like the blocks
      packed.groups = ir::Constant::from_tensor(ir::Tensor::view(
          DType::kInt32, {k}, packed.groups->tensor().data(), packed.groups->tensor().owner()));
    }
  }
  auto weights = ir::packed_constant(DType::kFloat32, {n, k}, std::move(packed));
  if (!weights.ok()) return std::move(weights).status().with_context(a.node.describe());
  return replace_by_product(a, *std::move(weights), true, a.node.input(5));
}

/// MatMulBnb4(A, B, absmax): B is the flattened [N, K] matrix, the first code of each byte in the high half.
Status adapt_matmul_bnb4(Adaptation& a) {
  if (!a.node.input(0)) return a.bad_form("input 0 ('A') is left out");
  DECANT_ASSIGN(const int64_t n, size_attribute(a, "N", 1));
  DECANT_ASSIGN(const int64_t k, size_attribute(a, "K", 1));
  DECANT_ASSIGN(const int64_t block, size_attribute(a, "block_size", 1));
  DECANT_ASSIGN(const int64_t type, a.required_int("quant_type", 0));
  if (type > 1) return a.unsupported_form(fmt::format("quant_type {}", type));
  ir::PackedConstant packed;
  DECANT_ASSIGN(packed.codes, a.constant_input(1, "B"));
  DECANT_ASSIGN(packed.scales, a.constant_input(2, "absmax"));
  DECANT_RETURN_IF_ERROR(check_dtype(a, *packed.codes, DType::kUInt8, "B"));
  PackedLayout& layout = packed.layout;
  layout.rows = 1;  // blocks run on over the ends of rows
  layout.columns = n * k;
  layout.bits = 4;
  layout.high_first = true;
  layout.block_columns = block;
  layout.scale_dtype = packed.scales->dtype();
  layout.table = type == 1 ? nf4_table() : fp4_table();
  if (k % block == 0) {
    layout.rows = n;
    layout.columns = k;
    layout.row_bits = 4 * k;
  }
  auto weights = ir::packed_constant(DType::kFloat32, {n, k}, std::move(packed));
  if (!weights.ok()) return std::move(weights).status().with_context(a.node.describe());
  return replace_by_product(a, *std::move(weights), a.node.int_attribute("transB", 1) != 0, nullptr);
}

/// GatherBlockQuantized(data, indices, scales, [zero_points]): a Gather from a packed table.
Status adapt_gather_block_quantized(Adaptation& a) {
  if (!a.node.input(1)) return a.bad_form("input 1 ('indices') is left out");
  ir::PackedConstant packed;
  DECANT_ASSIGN(packed.codes, a.constant_input(0, "data"));
  DECANT_ASSIGN(packed.scales, a.constant_input(2, "scales"));
  const auto& stored = packed.codes->dims();
  const auto rank = static_cast<int64_t>(stored.size());
  // Of uint8, each byte holds several codes; elements of int4 and uint4 are codes.
  const DType code = packed.codes->dtype();
  const bool bytes = code == DType::kUInt8;
  if (!bytes && code != DType::kInt4 && code != DType::kUInt4)
    return a.unsupported_form(fmt::format("'data' of {}", ir::describe(code, stored)));
  const int64_t bits = bytes ? a.node.int_attribute("bits", 4) : 4;
  const int64_t block = a.node.int_attribute("block_size", 128);
  if (bits != 2 && bits != 4 && bits != 8) return a.unsupported_form(fmt::format("a width of {} bits", bits));
  if (block <= 0) return a.bad_form(fmt::format("block_size is {}", block));
  int64_t quantized = a.node.int_attribute("quantize_axis", 1),
          gathered = a.node.int_attribute("gather_axis", 0);
  if (quantized < 0) quantized += rank;
  if (gathered < 0) gathered += rank;
  if (rank < 1 || quantized < 0 || quantized >= rank || gathered < 0 || gathered >= rank) {
    return a.bad_form("an axis is outside the rank of 'data'");
  }
  const int64_t per_byte = bytes ? 8 / bits : 1;
  std::vector<int64_t> dims = stored;
  if (dims.back() > kMaxSize) return a.bad_form("'data' is too wide");
  dims.back() *= per_byte;
  if (quantized != rank - 1)
    return a.unsupported_form(fmt::format("quantize_axis {} of rank {}", quantized, rank));
  PackedLayout& layout = packed.layout;
  layout.columns = dims.back();
  layout.rows = layout.columns ? packed.codes->elements() * per_byte / layout.columns : 0;
  layout.bits = static_cast<int>(bits);
  layout.row_bits = layout.columns * bits;
  layout.block_columns = block;
  layout.scale_dtype = packed.scales->dtype();
  layout.is_signed = code == DType::kInt4;
  layout.zero_point = bytes ? 1 << (bits - 1) : 0;
  if (a.node.input(3)) {
    DECANT_ASSIGN(packed.zeros, a.constant_input(3, "zero_points"));
    DECANT_RETURN_IF_ERROR(check_dtype(a, *packed.zeros, packed.codes->dtype(), "zero_points"));
    layout.zero = PackedLayout::Zero::kCodes;
    layout.zero_row_bits = layout.scale_columns() * bits;
    if (bytes) layout.zero_row_bits = ceil_div(layout.zero_row_bits, 8) * 8;
  }
  const DType dtype = packed.scales->dtype();
  auto table = ir::packed_constant(dtype, dims, std::move(packed));
  if (!table.ok()) return std::move(table).status().with_context(a.node.describe());
  ir::Value* data = a.graph.add_constant(a.graph.unique_name(a.node.name + "_table"), *std::move(table));
  a.replace_output(0, a.emit("Gather", {data, a.node.input(1)}, {{"axis", gathered}}));
  a.remove();
  return ok_status();
}

}  // namespace decant::onnx
