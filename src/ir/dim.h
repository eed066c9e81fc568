#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace decant::ir {

struct DimAtom;

/// An integer expression over named symbols ("batch_size", "past_sequence_length + sequence_length"), kept as
/// a sum of products in normal form, so that equal expressions compare equal. Immutable value; cheap to copy.
/// Arithmetic that overflows 64 bits gives an opaque symbol-free atom that evaluates to an error.
class Dim {
 public:
  Dim() : Dim(0) {}
  Dim(int64_t constant) : constant_(constant) {}  // NOLINT: implicit by design
  static Dim symbol(std::string name);

  /// Reads the labels that exporters write: an integer, a symbol, or sums and products of them. Text of any
  /// other form becomes one symbol with that text as its name.
  static Dim parse(const std::string& label);

  bool is_constant() const { return terms_ == nullptr; }
  /// Precondition: is_constant().
  int64_t constant() const { return constant_; }
  std::optional<int64_t> as_constant() const {
    return is_constant() ? std::optional(constant_) : std::nullopt;
  }
  /// The name when the expression is exactly one symbol, else empty.
  std::string symbol_name() const;

  std::string to_string() const;
  /// Names of all symbols in the expression, sorted, each once.
  std::vector<std::string> symbols() const;

  /// Value under the given symbol values; fails on an unbound symbol, a division by zero, or overflow.
  Result<int64_t> evaluate(const std::function<std::optional<int64_t>(const std::string&)>& lookup) const;
  /// The expression with symbols replaced; the lookup returns nothing for those that stay.
  Dim substitute(const std::function<std::optional<Dim>(const std::string&)>& lookup) const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);
  friend bool operator!=(const Dim& a, const Dim& b) { return !(a == b); }
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim mod(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);

  /// a / b when b divides a exactly as an expression (e.g. (4·s) / 4, (b·s·h) / (b·s)), else nothing.
  static std::optional<Dim> divide_exact(const Dim& a, const Dim& b);

  struct Term {
    int64_t coefficient;
    std::vector<std::shared_ptr<const DimAtom>> atoms;  ///< sorted by key
  };
  std::span<const Term> terms() const;
  /// The summand without symbols.
  int64_t offset() const { return constant_; }

 private:
  static Dim from_terms(int64_t constant, std::vector<Term> terms);
  static Dim from_atom(DimAtom atom);
  friend struct DimAccess;

  int64_t constant_ = 0;
  std::shared_ptr<const std::vector<Term>> terms_;  ///< null when the expression is a constant
};

/// A symbol, or an operation that has no normal form as a sum of products.
struct DimAtom {
  enum class Kind { kSymbol, kFloorDiv, kMod, kMax, kMin };
  Kind kind;
  std::string key;  ///< canonical text: the name of a symbol, "floordiv(a, b)", ...
  Dim a, b;         ///< operands of the operations
};

using Shape = std::vector<Dim>;

/// "[batch_size, 32, sequence_length]".
std::string to_string(const Shape& shape);
/// All dims constant: their values; else nothing.
std::optional<std::vector<int64_t>> constant_shape(const Shape& shape);
Dim element_count(const Shape& shape);

}  // namespace decant::ir
