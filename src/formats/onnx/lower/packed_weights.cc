#include <fmt/format.h>

#include <map>
#include <utility>

#include "formats/onnx/lower/lower.h"
#include "formats/onnx/lower/lowering.h"
#include "ir/row_blocks.h"

namespace decant::onnx {
namespace {

/// The tensors of a packed matrix, as the operators take them.
struct Packed {
  ir::RowBlocks form;
  int64_t rows = 0, columns = 0;
  ir::Value *codes = nullptr, *scales = nullptr, *zeros = nullptr;
};

/// A packed matrix, the way round in which its rows are outputs of a product.
struct Matrix {
  const ir::Value* value = nullptr;  ///< the constant in the graph
  ir::ConstantPtr rows;
};

/// What a product multiplies with; a null `rows` for what is not packed.
Matrix matrix_of(const ir::Node& node) {
  const bool fused = node.op() == "FusedMatMul" && node.domain() == "com.microsoft";
  if (!node.is("MatMul") && !fused) return {};
  if (node.float_attribute("alpha", 1.0f) != 1.0f) return {};
  const ir::Value* v = node.input(1);
  bool across = !fused || node.int_attribute("transB", 0) == 0;
  if (!fused && v->producer && v->producer->is("Transpose")) {
    const auto* perm = v->producer->attribute<std::vector<int64_t>>("perm");
    if (perm && *perm != std::vector<int64_t>{1, 0}) return {};
    v = v->producer->input(0);
    across = false;
  }
  if (!v->constant || !v->constant->packed() || v->constant->dims().size() != 2) return {};
  return {v, across ? ir::transpose_constant(v->constant) : v->constant};
}

class PackedLowering {
 public:
  using Known = std::map<const ir::Constant*, Packed>;

  /// `root` is the outermost graph, which all see: it holds the constants.
  PackedLowering(ir::Graph& graph, ir::Graph& root, int accuracy_level, Known& known)
      : l_(graph, 0), graph_(graph), root_(root), accuracy_level_(accuracy_level), known_(known) {}

  Status run() {
    const size_t count = graph_.nodes().size();
    for (size_t i = 0; i < count; ++i) {
      ir::Node* node = graph_.nodes()[i].get();
      if (!node) continue;
      for (auto& [key, attribute] : node->attributes) {
        auto* sub = std::get_if<std::shared_ptr<ir::Graph>>(&attribute);
        if (sub) DECANT_RETURN_IF_ERROR(PackedLowering(**sub, root_, accuracy_level_, known_).run());
      }
      l_.begin(*node);
      ir::Value* y = node->is("Gather") ? look_up(*node) : multiply(*node);
      DECANT_RETURN_IF_ERROR(Status(l_.status()).with_context(node->describe()));
      if (!y) continue;
      l_.replace(*node, 0, y);
      graph_.remove_node(node);
    }
    DECANT_RETURN_IF_ERROR(graph_.sort());
    graph_.remove_dead();
    return ok_status();
  }

 private:
  ir::Value* multiply(const ir::Node& node) {
    const Matrix matrix = matrix_of(node);
    if (!matrix.rows) return nullptr;
    const Packed* p = packed(matrix, node.input(0)->dtype);
    if (!p) return nullptr;
    Lowering::Attributes attributes = {
        {"K", p->columns}, {"N", p->rows}, {"bits", int64_t{p->form.bits}}, {"block_size", p->form.block}};
    if (accuracy_level_ > 0) attributes.emplace_back("accuracy_level", int64_t{accuracy_level_});
    std::vector<ir::Value*> inputs = {node.input(0), p->codes, p->scales};
    if (p->zeros) inputs.push_back(p->zeros);
    return l_.emit_vendor("MatMulNBits", std::move(inputs), std::move(attributes), node.input(0)->dtype,
                          node.output(0)->shape);
  }

  /// The table's codes are those of a head's MatMulNBits with the last two dims as one.
  ir::Value* look_up(const ir::Node& node) {
    const ir::Value* table = node.input(0);
    if (!table->constant || !table->constant->packed() || table->constant->dims().size() != 2 ||
        node.int_attribute("axis", 0) != 0)
      return nullptr;
    const Packed* p = packed({table, table->constant}, table->dtype);
    if (!p || p->form.zero_numbers()) return nullptr;
    if (p->form.bits != 2 && p->form.bits != 4 && p->form.bits != 8) return nullptr;
    const int64_t blocks = p->form.codes->dims()[1], padded = blocks * p->form.block;
    ir::Value* codes = l_.emit("Reshape", {p->codes, l_.ints({p->rows, padded * p->form.bits / 8})});
    std::vector<ir::Value*> inputs = {codes, node.input(1), p->scales};
    if (p->zeros) inputs.push_back(p->zeros);
    std::optional<ir::Shape> shape = node.output(0)->shape;
    if (shape) shape->back() = ir::Dim(padded);
    ir::Value* y = l_.emit_vendor("GatherBlockQuantized", std::move(inputs),
                                  {{"bits", int64_t{p->form.bits}},
                                   {"block_size", p->form.block},
                                   {"gather_axis", int64_t{0}},
                                   {"quantize_axis", int64_t{1}}},
                                  table->dtype, std::move(shape));
    if (padded == p->columns) return y;
    return l_.emit("Slice", {y, l_.ints({0}), l_.ints({p->columns}), l_.ints({-1})});
  }

  /// Null when the matrix has no form that the operators take.
  const Packed* packed(const Matrix& matrix, DType scale_dtype) {
    const auto [at, fresh] = known_.try_emplace(matrix.value->constant.get());
    Packed& p = at->second;
    if (fresh) {
      auto blocks = ir::row_blocks(matrix.rows, scale_dtype);
      if (!blocks) return nullptr;
      p.form = *std::move(blocks);
      p.rows = matrix.rows->dims()[0];
      p.columns = matrix.rows->dims()[1];
      const auto add = [&](const char* part, const ir::ConstantPtr& constant) -> ir::Value* {
        if (!constant) return nullptr;
        return root_.add_constant(root_.unique_name(fmt::format("{}_{}", matrix.value->name, part)),
                                  constant);
      };
      p.codes = add(p.form.bits == 4 ? "Q4" : p.form.bits == 8 ? "Q8" : "Q", p.form.codes);
      p.scales = add("scales", p.form.scales);
      p.zeros = add("zero_points", p.form.zeros);
    }
    return p.codes && p.form.scales->dtype() == scale_dtype ? &p : nullptr;
  }

  Lowering l_;
  ir::Graph &graph_, &root_;
  int accuracy_level_;
  Known& known_;
};

}  // namespace

Status lower_packed_weights(ir::Graph& graph, int accuracy_level) {
  PackedLowering::Known known;
  return PackedLowering(graph, graph, accuracy_level, known).run();
}

}  // namespace decant::onnx
