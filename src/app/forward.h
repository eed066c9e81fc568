#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/run_options.h"
#include "base/status.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "kernels/low_bit.h"

namespace decant::app {

struct ForwardOptions {
  std::string component;   ///< empty: the only one, the whole model or the decoder
  std::string dtype;       ///< which of a repository's files; see find_layout
  bool reference = false;  ///< reference kernels, on the graph as written
  int threads = 0;
  std::string isa;
  int repeat = 1;
  /// What weights of products are held in; kUndefined or kFloat32: as stored. Activations, norms, softmax,
  /// scores and sums are f32 in every case.
  DType compute_type = DType::kUndefined;
  RunOptions limits;                                          ///< the deadline is one for all runs
  kernels::Precision precision = kernels::Precision::kExact;  ///< of products with weights of few bits
};

struct NamedOutput {
  std::string name;
  ir::Tensor tensor;
};

/// Runs one graph once (`repeat` times for timing) on tensors from a safetensors file and writes all its
/// outputs, under their own names, to another. Inputs of zero elements for growing caches may be left out.
/// Fails, with all names, when inputs are missing or unknown. A flag that chooses a branch of the graph (a
/// merged decoder's use_cache_branch) is fixed before compiling, so that the branch taken is all there is.
/// `seconds` gets one entry for each run, `profile` operators with their seconds in all runs, the slowest
/// first.
Status forward(const std::string& model, const std::string& inputs_path, const std::string& outputs_path,
               const ForwardOptions& options, std::vector<double>* seconds,
               std::vector<std::pair<std::string, double>>* profile = nullptr);

}  // namespace decant::app
