#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "ir/quantized_constant.h"

namespace decant::passes {

/// What the weights of products become.
struct WeightQuantization {
  int bits = 4;        ///< 4 or 8; 0: what is packed stays packed, what is dense stays dense
  int64_t block = 32;  ///< weights along a row with one scale: a power of two, 16 to 256
  /// Codes, scales and zero points of all quantized weights together take no more bits a weight than this:
  /// tensors go from 4 bits to 8 in the order of what that gains. `bits` does not count then.
  std::optional<double> bits_per_weight = {};
  std::shared_ptr<ir::SharedPool> pool = {};  ///< null: no threads
};

/// A weight that is packed afterwards.
struct QuantizedWeight {
  std::string name;
  int64_t rows = 0, columns = 0;  ///< outputs and inputs of the product
  int bits = 0;
  int64_t block = 0;
  bool zero_points = false;
  bool kept = false;         ///< it was packed before, in no more bits than asked for
  bool shared = false;       ///< an embedding table that is also the head
  int64_t bytes_before = 0;  ///< of the dense tensor
  int64_t bytes_after = 0;
  std::shared_ptr<const ir::QuantizedMatrix> matrix = {};  ///< the error, once it was written; null when kept
};

/// Gives the constant matrices that products and token embeddings read a packed form: MatMul, FusedMatMul,
/// Gemm, and Gather from a table by token ids (inputs named *input_ids) or from one that is also a head.
/// Other tables, vectors, and whatever else reads a matrix stay as they are. The graph's nodes do not change;
/// values are those of the rounded weights. Zero points are used for a matrix when they take more error away
/// than their bytes would in codes: more than a factor 4^(bits / block), as an error falls by 4 with each bit
/// a weight.
///
/// Weights are read when they are written; here only a sample of their rows is. Errors name the tensor.
Result<std::vector<QuantizedWeight>> quantize_weights(ir::Graph& graph, const WeightQuantization& options);

}  // namespace decant::passes
