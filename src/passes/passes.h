#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "ir/graph.h"
#include "ir/tensor.h"

namespace decant::passes {

/// Every pass takes a typed, sorted graph and leaves one; it returns whether it changed anything. A pass
/// rewrites only what it can prove equal; the graph before and after gives the same outputs on the reference
/// kernels, but for what a comment below says.

/// Puts the chosen branch in the place of an If whose condition is a constant, at every depth.
Result<bool> inline_branches(ir::Graph& graph);

/// Replaces values known at compile time by constants: nodes over small constants, integer tensors whose
/// elements inference found. No constant above 4 MiB is made.
Result<bool> fold_constants(ir::Graph& graph);

/// Drops Identity, Dropout-free copies, casts to the same dtype, transposes that do nothing, arithmetic with
/// neutral constants.
Result<bool> simplify(ir::Graph& graph);

/// Older exporters label a mask's length "past + 1" whatever the number of new tokens: it becomes past + that
/// number. (A run checks the dims it is given, so a label that was meant literally gives an error, not a
/// wrong answer.) A label computed from symbols that no input's dim gives ("encoder_length / 2") becomes a
/// symbol.
Result<bool> correct_labels(ir::Graph& graph);

/// Gives scalar integer inputs a symbol for their value, so that lengths fed as tensors become dims.
Result<bool> name_scalar_inputs(ir::Graph& graph);

/// The input `name` becomes the constant `value`: what depends on it alone folds, branches on it are chosen.
/// Fails when there is no such input or its dtype or dims do not fit; the error lists the inputs.
Status bind_input(ir::Graph& graph, std::string_view name, const ir::Tensor& value);

/// Drops inputs that no node reads and no output hands through (states stay).
Result<bool> drop_unused_inputs(ir::Graph& graph);

/// MatMul by Transpose of a constant matrix (a tied head) becomes FusedMatMul with transB: the table is read
/// as stored.
Result<bool> fold_weight_transpose(ir::Graph& graph);

/// BatchNormalization of a Conv with constant f32 weights goes into its weights and bias; rounding differs.
Result<bool> fold_batch_norm(ir::Graph& graph);

/// Nodes that compute the same from the same inputs become one; so do equal small constants.
Result<bool> merge_equal(ir::Graph& graph);

/// Gemm with a constant matrix becomes a product and an addition.
Result<bool> split_gemm(ir::Graph& graph);

/// x / sqrt(mean(x²) + ε) · w in the spellings of exporters becomes RMSNormalization; LayerNormalization
/// where the mean was taken off before, with a bias that is added. Arithmetic in half precision with casts to
/// f32 inside is one f32 norm afterwards.
Result<bool> lift_norms(ir::Graph& graph);

/// ½ · x · (1 + erf(x / √2)) and its tanh approximation, multiplied in any order, become Gelu.
Result<bool> lift_gelu(ir::Graph& graph);

/// x · sigmoid(α · x) becomes Swish, swish(g) · u becomes SwiGLU.
Result<bool> lift_swiglu(ir::Graph& graph);

/// x · cos + rotate_half(x) · sin becomes RotaryEmbedding: over all or the first channels, in halves or
/// interleaved, with tables computed, constant, or gathered by position, where their two halves are provably
/// equal.
Result<bool> lift_rotary(ir::Graph& graph);

/// softmax(q kᵀ · scale + mask) v, with repeated key-value heads, becomes Attention. Query rows that may
/// attend to nothing stay what the source makes of them: zero where it guards them, NaN where infinities are
/// added without a guard, a mean of all values where the masked scores are a finite number (such masks stay
/// numbers).
Result<bool> lift_attention(ir::Graph& graph);

/// Rows taken range by range, each range times its own matrix of a stack, and joined again (torch's
/// grouped_mm over experts) become GroupedMatMul, which reads the matrices that have rows. Only where the
/// ranges are counted from the rows themselves, so that they cover all.
Result<bool> lift_grouped_matmul(ir::Graph& graph);

/// GatherND of whole rows (indices of one number) becomes Gather.
Result<bool> gather_rows(ir::Graph& graph);

/// Attention loses a constant mask that hides nothing.
Result<bool> drop_open_masks(ir::Graph& graph);

/// Attention between the Transposes that split and join heads takes the joined [batch, length, heads * dim]
/// tensors.
Result<bool> join_heads(ir::Graph& graph);

/// A scatter of consecutive positions into a cache (ScatterElements, or ScatterND on a transposed cache)
/// becomes TensorScatter; a ScatterND that writes every element in order becomes what it writes.
Result<bool> lift_tensor_scatter(ir::Graph& graph);

/// The name that exporters give the output of the state `input`; empty when the input is named like no state.
std::string state_output_name(const std::string& input);

/// Finds states by the names exporters give them (past_key_values.* / present.*, input.* / output.*) and
/// their shapes. Key-values of cross-attention, which never change, are not among them.
Result<bool> detect_states(ir::Graph& graph);

/// Growing key-value caches that only attention reads become fixed buffers of the new dim "max_cache_len",
/// written at the new scalar input "cache_length"; see kCacheLengthInput.
Result<bool> fix_states(ir::Graph& graph);
inline constexpr std::string_view kCacheLengthInput = "cache_length";

/// Computes only the last row of the output named "logits" ([batch, sequence, vocabulary] -> [batch, 1,
/// vocabulary]).
Result<bool> keep_last_logits(ir::Graph& graph);

/// Half-precision arithmetic is done in f32: activations are widened, weights and caches stay as stored,
/// inputs and outputs keep their dtypes. Values differ from the stored dtype's by rounding only.
Result<bool> widen_half(ir::Graph& graph);

/// Dense matrices that f32 activations are multiplied with are converted to `dtype` when a plan is compiled.
/// Values differ by the rounding of weights only: products are summed in f32, and all else stays f32.
Result<bool> hold_weights(ir::Graph& graph, DType dtype);

/// All lifts in order, then clean-up. Inputs and outputs stay as they are, but for half precision inside.
Status optimize_for_forward(ir::Graph& graph);

/// The same, and growing caches become fixed ones (fix_states); unsupported when they are used in other ways.
Status optimize_with_fixed_caches(ir::Graph& graph);

/// The same for a decoding session: growing caches become fixed ones (fix_states), only the last logits are
/// computed.
Status optimize_for_generation(ir::Graph& graph);

}  // namespace decant::passes
