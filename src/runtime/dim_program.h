#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/dim.h"

namespace decant::runtime {

/// All dims of a plan, compiled to straight-line integer code over slots: the symbols first, then constants
/// and results. Equal expressions share a slot. Evaluation neither allocates nor looks anything up.
class DimProgram {
 public:
  /// Slot of a symbol; added when new. Slots of symbols are bound by the caller before `evaluate`.
  int symbol_slot(const std::string& name);
  /// Names of all symbols that have a slot.
  std::vector<std::string> symbols() const;
  /// Slot of the symbol, or -1.
  int find_symbol(const std::string& name) const;
  /// Slot that holds the expression's value after `evaluate`.
  int add(const ir::Dim& dim);

  std::vector<int64_t>& slots() { return slots_; }
  int64_t at(int slot) const { return slots_[static_cast<size_t>(slot)]; }
  void set(int slot, int64_t value) { slots_[static_cast<size_t>(slot)] = value; }

  /// Computes every expression from the symbols' slots.
  Status evaluate();

 private:
  enum class Code : uint8_t { kAdd, kMul, kFloorDiv, kMod, kMax, kMin };
  struct Instruction {
    Code code;
    int out, a, b;
  };
  int constant_slot(int64_t value);
  int emit(Code code, int a, int b);

  std::vector<int64_t> slots_;
  std::vector<Instruction> code_;
  std::map<std::string, int> known_;
  std::map<int64_t, int> constants_;
};

}  // namespace decant::runtime
