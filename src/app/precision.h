#pragma once

#include <string>
#include <string_view>

#include "base/dtype.h"
#include "base/status.h"

namespace decant::app {

/// What `--precision` names.
struct Precision {
  std::string name = "fp32";
  DType dtype = DType::kFloat32;  ///< of activations, caches, scales and weights that stay dense
  /// Codes of 4 or 8 bits for the weights of products; 0 with keep_packed: none but what the source has.
  int bits = 0;
  bool keep_packed = false;  ///< weights that the source stores in few bits stay so

  bool packs() const { return bits > 0 || keep_packed; }
};

/// "fp32", "fp16", "bf16"; "q8", "q4" (float32 beside the codes), "q4f16" (float16); "source" (float32, and
/// the source's own codes). kInvalidArgument lists the spellings, kUnsupported says so of "int8".
Result<Precision> parse_precision(std::string_view text);

}  // namespace decant::app
