#pragma once

#include <memory>
#include <vector>

#include "kernels/low_bit.h"
#include "runtime/kernel.h"

namespace decant::runtime {

/// Whether a node is a product of f32 rows with a constant f32, f16 or bf16 matrix, which `make_matmul_group`
/// can run in one region with others that share the left operand.
bool matmul_can_group(const ir::Node& node);

/// The Add of a constant row to such a product that nothing else reads, or null.
const ir::Node* matmul_bias(const ir::Graph& graph, const ir::Node& node);
/// What `add` adds to `product`.
const ir::Value* bias_of(const ir::Node& add, const ir::Value* product);

/// Kernel of several such nodes with the same input 0. Operands: [A, B of each node, bias of each node]; the
/// biases, or single ones, may be left out; outputs: C of each node.
std::unique_ptr<Kernel> make_matmul_group(const std::vector<const ir::Node*>& nodes);

/// The weights of such a node as codes of few bits, when its matrix is stored as such; else null. A view of
/// the matrix.
std::unique_ptr<LowBitRows> low_bit_weights(const ir::Node& node);

/// Kernel of several such nodes with the same input 0 on their packed weights. Operands as above, B left out.
std::unique_ptr<Kernel> make_low_bit_group(std::vector<std::shared_ptr<const kernels::LowBitMatrix>> weights,
                                           kernels::Precision precision);

}  // namespace decant::runtime
