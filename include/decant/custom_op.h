#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decant/export.h"
#include "decant/status.h"
#include "decant/tensor.h"
#include "decant/types.h"

namespace decant {

/// Attributes of one node. Values of another kind than asked for count as absent.
class DECANT_EXPORT Attributes {
 public:
  explicit Attributes(const void* node) : node_(node) {}
  bool has(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t fallback) const;
  float number(std::string_view name, float fallback) const;
  std::string text(std::string_view name, std::string fallback) const;
  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<float> numbers(std::string_view name) const;

 private:
  const void* node_;
};

/// What type inference of a custom operator sees and fills in. An input that is left out has dtype
/// kUndefined.
struct OpTypes {
  const Attributes& attributes;
  std::span<const TensorType> inputs;
  /// One for each output of the node. Dims may be those of an input, numbers, or names that occur nowhere
  /// else.
  std::span<TensorType> outputs;
};

/// One call of a custom operator. Inputs that are left out have no data. Outputs have the dims that inference
/// gave for these inputs, and must be written whole.
struct OpCall {
  const Attributes& attributes;
  std::span<const TensorView> inputs;
  std::span<const MutableTensorView> outputs;
};

/// An operator that a program brings along, given to Model::load in LoadOptions::custom_ops, for the nodes
/// with its domain and name. Use a domain of your own: nodes of ai.onnx and com.microsoft may be rewritten
/// while a file is read.
///
/// Both callbacks may be called from several threads at once when several models use them; what they capture
/// must allow that. An error they return becomes the error of the load or run, with the node's name in front.
/// They must not throw.
struct CustomOp {
  std::string domain;  ///< "" for ai.onnx
  std::string name;

  /// Gives dtype and dims of the outputs, at load and compile time with symbolic dims, before a call with
  /// numbers. With numbers for all input dims all output dims must be numbers.
  std::function<Status(const OpTypes& types)> infer;

  std::function<Status(const OpCall& call)> compute;
};

}  // namespace decant
