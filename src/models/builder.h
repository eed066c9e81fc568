#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "models/weights.h"

namespace decant::models {

/// Writes the nodes of a model into a new graph. Values are owned by the graph. Values of weights and
/// activations have `dtype`; nodes are named after the module they belong to.
class Builder {
 public:
  using Attributes = std::vector<std::pair<std::string, ir::Attribute>>;

  /// `weights` must outlive the builder.
  Builder(WeightReader& weights, DType dtype);

  ir::Graph& graph() { return *graph_; }
  std::unique_ptr<ir::Graph> take() { return std::move(graph_); }
  WeightReader& weights() { return weights_; }
  DType dtype() const { return dtype_; }

  /// One operator call with one output. `scope` is the module's path, for the name.
  ir::Value* op(const std::string& type, std::vector<ir::Value*> inputs, Attributes attributes = {},
                const std::string& scope = "");

  /// A checkpoint tensor in the model's dtype.
  ir::Value* weight(const std::string& name, std::vector<int64_t> dims);
  /// A matrix [rows, columns] of the checkpoint, with its axes exchanged.
  ir::Value* transposed_weight(const std::string& name, int64_t rows, int64_t columns);

  ir::Value* int_scalar(int64_t value);
  ir::Value* ints(std::vector<int64_t> values);
  ir::Value* float_scalar(float value);
  ir::Value* floats(const std::vector<float>& values);
  ir::Value* cast(ir::Value* x, DType dtype);
  /// Size of an axis as an i64 scalar.
  ir::Value* size(ir::Value* x, int64_t axis);

 private:
  ir::Value* constant(const std::string& hint, const ir::Tensor& tensor);

  WeightReader& weights_;
  DType dtype_;
  std::unique_ptr<ir::Graph> graph_;
  std::map<std::string, ir::Value*>
      shared_;  ///< small constants and tensors already in the graph, by content or name
};

}  // namespace decant::models
