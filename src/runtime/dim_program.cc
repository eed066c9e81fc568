#include "runtime/dim_program.h"

namespace decant::runtime {

int DimProgram::symbol_slot(const std::string& name) {
  auto [it, inserted] = known_.emplace(name, static_cast<int>(slots_.size()));
  if (inserted) slots_.push_back(0);
  return it->second;
}

std::vector<std::string> DimProgram::symbols() const {
  std::vector<std::string> names;
  for (const auto& [key, slot] : known_) {
    if (!key.starts_with('=')) names.push_back(key);  // other keys are those of expressions
  }
  return names;
}

int DimProgram::find_symbol(const std::string& name) const {
  auto it = known_.find(name);
  return it == known_.end() ? -1 : it->second;
}

int DimProgram::constant_slot(int64_t value) {
  auto [it, inserted] = constants_.emplace(value, static_cast<int>(slots_.size()));
  if (inserted) slots_.push_back(value);
  return it->second;
}

int DimProgram::emit(Code code, int a, int b) {
  const int out = static_cast<int>(slots_.size());
  slots_.push_back(0);
  code_.push_back({code, out, a, b});
  return out;
}

int DimProgram::add(const ir::Dim& dim) {
  if (dim.is_constant()) return constant_slot(dim.constant());
  if (const std::string name = dim.symbol_name(); !name.empty()) return symbol_slot(name);
  const std::string key = "=" + dim.to_string();
  if (auto it = known_.find(key); it != known_.end()) return it->second;
  int sum = dim.offset() == 0 ? -1 : constant_slot(dim.offset());
  for (const ir::Dim::Term& term : dim.terms()) {
    int product = term.coefficient == 1 ? -1 : constant_slot(term.coefficient);
    for (const auto& atom : term.atoms) {
      int factor = 0;
      switch (atom->kind) {
        case ir::DimAtom::Kind::kSymbol:
          factor = symbol_slot(atom->key);
          break;
        case ir::DimAtom::Kind::kFloorDiv:
          factor = emit(Code::kFloorDiv, add(atom->a), add(atom->b));
          break;
        case ir::DimAtom::Kind::kMod:
          factor = emit(Code::kMod, add(atom->a), add(atom->b));
          break;
        case ir::DimAtom::Kind::kMax:
          factor = emit(Code::kMax, add(atom->a), add(atom->b));
          break;
        case ir::DimAtom::Kind::kMin:
          factor = emit(Code::kMin, add(atom->a), add(atom->b));
          break;
      }
      product = product < 0 ? factor : emit(Code::kMul, product, factor);
    }
    sum = sum < 0 ? product : emit(Code::kAdd, sum, product);
  }
  known_.emplace(key, sum);
  return sum;
}

Status DimProgram::evaluate() {
  int64_t* s = slots_.data();
  for (const Instruction& i : code_) {
    const int64_t a = s[i.a], b = s[i.b];
    bool overflow = false;
    switch (i.code) {
      case Code::kAdd:
        overflow = __builtin_add_overflow(a, b, &s[i.out]);
        break;
      case Code::kMul:
        overflow = __builtin_mul_overflow(a, b, &s[i.out]);
        break;
      case Code::kFloorDiv:
      case Code::kMod: {
        if (b == 0 || (a == INT64_MIN && b == -1)) return invalid_argument("a dim divides by zero");
        const int64_t q = a / b - ((a % b != 0 && ((a < 0) != (b < 0))) ? 1 : 0);
        s[i.out] = i.code == Code::kFloorDiv ? q : a - q * b;
        break;
      }
      case Code::kMax:
        s[i.out] = a > b ? a : b;
        break;
      case Code::kMin:
        s[i.out] = a < b ? a : b;
        break;
    }
    if (overflow) return out_of_range("a dim passes 64 bits");
  }
  return ok_status();
}

}  // namespace decant::runtime
