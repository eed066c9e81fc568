#include <fmt/format.h>

#include "base/checked.h"
#include "formats/onnx/adapters/adapters.h"
#include "ir/packed_constant.h"

namespace decant::onnx {
namespace {

/// Bits of a code; 0 for types that packed constants do not hold.
int code_bits(DType t) {
  return t == DType::kInt8 || t == DType::kUInt8 || is_small_integer(t) ? bits_of(t) : 0;
}

bool is_signed_code(DType t) { return t == DType::kInt8 || t == DType::kInt4 || t == DType::kInt2; }

bool is_one_number(const ir::Constant& c) { return c.elements() == 1; }

/// The layout of x with scales per tensor, per index of `axis` or per block of it; nothing when the packed
/// form has no room for it.
std::optional<PackedLayout> layout_of(const ir::Constant& x, const ir::Constant& scale, int64_t axis,
                                      int64_t block) {
  const auto& dims = x.dims();
  const auto rank = static_cast<int64_t>(dims.size());
  PackedLayout l;
  l.bits = code_bits(x.dtype());
  l.is_signed = is_signed_code(x.dtype());
  l.scale_dtype = scale.dtype();
  l.zero_point = 0;
  if (rank == 0 || x.elements() == 0) return std::nullopt;
  const bool whole = is_one_number(scale) && block == 0;
  if (!whole && axis < 0) axis += rank;
  if (!whole && axis != 0 && axis != rank - 1) return std::nullopt;
  const bool by_rows = !whole && axis == 0 && rank > 1;
  l.rows = by_rows ? dims[0] : x.elements() / dims[static_cast<size_t>(rank - 1)];
  l.columns = x.elements() / l.rows;
  l.row_bits = l.columns * l.bits;
  if (whole) {
    l.block_rows = l.rows;
    l.block_columns = l.columns;
  } else if (block == 0) {
    if (scale.elements() != dims[static_cast<size_t>(axis)]) return std::nullopt;
    l.block_rows = by_rows ? 1 : l.rows;
    l.block_columns = by_rows ? l.columns : 1;
  } else {
    l.block_rows = by_rows ? block : 1;
    l.block_columns = by_rows ? 1 : block;
    if (l.scale_rows() * l.scale_columns() != scale.elements()) return std::nullopt;
  }
  l.zero_row_bits = l.scale_columns() * l.bits;
  return l;
}

}  // namespace

/// DequantizeLinear(x, scale, [zero_point]) of constants becomes a packed constant; that of rows gathered
/// from a constant table (with one scale) a Gather from a packed table. Others stay.
Status adapt_dequantize(Adaptation& a) {
  ir::Value *x = a.node.input(0), *scale = a.node.input(1), *zero = a.node.input(2);
  if (!x || !scale || !scale->constant || (zero && !zero->constant)) return ok_status();
  if (!scale->constant->in_memory() || (zero && !zero->constant->in_memory())) return ok_status();
  if (a.node.int_attribute("output_dtype", 0) != 0) return ok_status();
  const DType dtype = scale->dtype;
  if (dtype != DType::kFloat32 && dtype != DType::kFloat16 && dtype != DType::kBFloat16) return ok_status();

  // Steps between the table and x that act alike on codes and on numbers.
  const bool one = is_one_number(*scale->constant) && a.node.int_attribute("block_size", 0) == 0;
  ir::Node* between = nullptr;
  const ir::Value* table = x;
  if (one && x->producer && (x->producer->is("Gather") || x->producer->is("Transpose"))) {
    between = x->producer;
    table = between->input(0);
  }
  if (!table || !table->constant || !table->constant->in_memory() || code_bits(table->dtype) == 0)
    return ok_status();
  if (zero && (zero->dtype != table->dtype || zero->constant->elements() != scale->constant->elements()))
    return ok_status();
  auto layout = layout_of(*table->constant, *scale->constant, a.node.int_attribute("axis", 1),
                          a.node.int_attribute("block_size", 0));
  if (!layout) return ok_status();
  ir::PackedConstant packed;
  packed.layout = *layout;
  packed.codes = table->constant;
  packed.scales = scale->constant;
  if (zero) {
    packed.layout.zero = PackedLayout::Zero::kCodes;
    packed.zeros = zero->constant;
  }
  auto decoded = ir::packed_constant(dtype, table->constant->dims(), std::move(packed));
  if (!decoded.ok()) return std::move(decoded).status().with_context(a.node.describe());
  ir::Value* y = a.graph.add_constant(a.graph.unique_name(a.node.name + "_weights"), *std::move(decoded));
  if (between) {
    std::vector<ir::Value*> inputs = between->inputs();
    inputs[0] = y;
    y = a.emit(between->op(), inputs,
               Adaptation::Attributes(between->attributes.begin(), between->attributes.end()));
  }
  if (a.graph.is_output(a.node.output(0)) && y->constant) y = a.emit("Identity", {y});
  a.replace_output(0, y);
  a.remove();
  return ok_status();
}

}  // namespace decant::onnx
