#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "ir/tensor.h"

namespace decant::ir {

/// What a value holds during a run: a tensor, a sequence of tensors, or nothing (an optional without element;
/// an optional with one is that tensor or sequence itself). A handle: copies share the data.
class Datum {
 public:
  using Sequence = std::vector<Tensor>;

  Datum() = default;
  Datum(Tensor tensor) : content_(std::move(tensor)) {}  // NOLINT: implicit by design
  static Datum sequence(Sequence items) {
    Datum d;
    d.content_ = std::make_shared<const Sequence>(std::move(items));
    return d;
  }

  bool is_tensor() const { return std::holds_alternative<Tensor>(content_); }
  bool is_sequence() const { return std::holds_alternative<std::shared_ptr<const Sequence>>(content_); }
  bool is_empty() const { return std::holds_alternative<std::monostate>(content_); }

  /// Precondition: is_tensor() / is_sequence().
  const Tensor& tensor() const { return std::get<Tensor>(content_); }
  const Sequence& items() const { return *std::get<std::shared_ptr<const Sequence>>(content_); }

 private:
  std::variant<std::monostate, Tensor, std::shared_ptr<const Sequence>> content_;
};

/// "float32[2,3]", "a sequence of 2 tensors", "an empty optional".
std::string describe(const Datum& datum);

}  // namespace decant::ir
