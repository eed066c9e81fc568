#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/constant.h"

namespace decant::models {

/// The tensors of a model under their checkpoint names ("model.layers.0.self_attn.q_proj.weight"), wherever
/// they are stored. Nothing is read until a constant's rows are.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// Null when there is no such tensor; an error when it cannot be read as asked (its encoding, say).
  virtual Result<ir::ConstantPtr> find(const std::string& name) const = 0;
  virtual std::vector<std::string> names() const = 0;
};

/// Hands out the tensors of a source and remembers which were asked for, so that finish() can name all
/// tensors that are missing, have another shape, or were left unread. Not thread-safe.
class WeightReader {
 public:
  /// `source` must outlive the reader.
  explicit WeightReader(const WeightSource& source) : source_(source) {}

  /// The tensor `name`, which must have `dims`. On a problem, notes it for finish() and returns a stand-in of
  /// these dims that cannot be read.
  ir::ConstantPtr get(const std::string& name, const std::vector<int64_t>& dims);

  /// Tensors that the model does without although checkpoints may have them: by exact name.
  void ignore(std::string name) { read_.insert(std::move(name)); }

  /// kInvalidModel with all names when a tensor was missing, misshapen or never asked for. Rotary frequency
  /// buffers
  /// ("...rotary_emb.inv_freq"), which old checkpoints carry, need not be read.
  Status finish() const;

 private:
  const WeightSource& source_;
  std::set<std::string> read_;
  std::vector<std::string> missing_, problems_;
};

}  // namespace decant::models
