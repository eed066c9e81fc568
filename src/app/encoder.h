#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/layout.h"
#include "base/status.h"
#include "ir/tensor.h"
#include "runtime/session.h"

namespace decant::app {

using NamedTensors = std::vector<std::pair<std::string, ir::Tensor>>;

/// The part of an encoder-decoder model that runs once, before the decoder's loop. Not thread-safe.
class Encoder {
 public:
  static Result<std::unique_ptr<Encoder>> load(const Layout& layout, const Component& component,
                                               const std::shared_ptr<runtime::Engine>& engine,
                                               kernels::Precision precision = kernels::Precision::kExact);

  /// Whether the graph reads `name` (under its usual name).
  bool takes(std::string_view name) const;

  /// Runs on token ids (with a mask of ones) or on the tensors given, and binds what comes out to the
  /// session's constants of that name: the hidden states, the key-values of cross-attention, the encoder's
  /// attention mask. Tensors that the encoder does not take go to the session. Fails, naming them, when
  /// inputs are missing.
  Status run(std::span<const int32_t> ids, const NamedTensors& inputs, runtime::Session& session);

 private:
  std::unique_ptr<runtime::Plan> plan_;
};

/// All tensors of a safetensors file; they view the mapped file.
Result<NamedTensors> read_tensors(const std::string& path);

/// The tensor [1, ids.size()] of dtype int64.
Result<ir::Tensor> ids_tensor(std::span<const int32_t> ids);
/// int64 ones of [1, length].
Result<ir::Tensor> mask_tensor(int64_t length);

}  // namespace decant::app
