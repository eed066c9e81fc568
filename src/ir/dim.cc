#include "ir/dim.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace decant::ir {
namespace {

using AtomPtr = std::shared_ptr<const DimAtom>;
using Term = Dim::Term;

int compare_atoms(const std::vector<AtomPtr>& a, const std::vector<AtomPtr>& b) {
  const size_t n = std::min(a.size(), b.size());
  for (size_t i = 0; i < n; ++i) {
    if (int c = a[i]->key.compare(b[i]->key)) return c;
  }
  return static_cast<int>(a.size()) - static_cast<int>(b.size());
}

/// Sorted, like terms merged, zero terms dropped.
std::vector<Term> normalise(std::vector<Term> terms) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return compare_atoms(a.atoms, b.atoms) < 0; });
  std::vector<Term> out;
  for (Term& t : terms) {
    if (!out.empty() && compare_atoms(out.back().atoms, t.atoms) == 0) {
      out.back().coefficient += t.coefficient;
    } else {
      out.push_back(std::move(t));
    }
  }
  std::erase_if(out, [](const Term& t) { return t.coefficient == 0; });
  return out;
}

int64_t floor_div_int(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

bool add_overflows(int64_t a, int64_t b, int64_t* out) { return __builtin_add_overflow(a, b, out); }
bool mul_overflows(int64_t a, int64_t b, int64_t* out) { return __builtin_mul_overflow(a, b, out); }

}  // namespace

struct DimAccess {
  static Dim make(int64_t constant, std::vector<Term> terms) {
    return Dim::from_terms(constant, std::move(terms));
  }
  static Dim operation(DimAtom::Kind kind, const char* name, const Dim& a, const Dim& b) {
    return Dim::from_atom({kind, std::string(name) + "(" + a.to_string() + ", " + b.to_string() + ")", a, b});
  }
  /// A symbol that nothing binds: the value of an expression that left 64 bits.
  static Dim overflow() { return Dim::symbol("<overflow>"); }
};

std::span<const Term> Dim::terms() const {
  return terms_ ? std::span<const Term>(*terms_) : std::span<const Term>();
}

Dim Dim::from_terms(int64_t constant, std::vector<Term> terms) {
  Dim d(constant);
  terms = normalise(std::move(terms));
  if (!terms.empty()) d.terms_ = std::make_shared<const std::vector<Term>>(std::move(terms));
  return d;
}

Dim Dim::from_atom(DimAtom atom) {
  return from_terms(0, {{1, {std::make_shared<const DimAtom>(std::move(atom))}}});
}

Dim Dim::symbol(std::string name) {
  std::string key = name;
  return from_atom({DimAtom::Kind::kSymbol, std::move(key), Dim(), Dim()});
}

std::string Dim::symbol_name() const {
  if (constant_ != 0 || !terms_ || terms_->size() != 1) return "";
  const Term& t = (*terms_)[0];
  if (t.coefficient != 1 || t.atoms.size() != 1 || t.atoms[0]->kind != DimAtom::Kind::kSymbol) return "";
  return t.atoms[0]->key;
}

std::string Dim::to_string() const {
  if (is_constant()) return std::to_string(constant_);
  std::string out;
  for (const Term& t : *terms_) {
    int64_t c = t.coefficient;
    if (!out.empty()) {
      out += c < 0 ? " - " : " + ";
      if (c < 0) c = -c;
    }
    if (c != 1) out += std::to_string(c) + "*";
    for (size_t i = 0; i < t.atoms.size(); ++i) out += (i ? "*" : "") + t.atoms[i]->key;
  }
  if (constant_ > 0) out += " + " + std::to_string(constant_);
  if (constant_ < 0) out += " - " + std::to_string(constant_).substr(1);
  return out;
}

std::vector<std::string> Dim::symbols() const {
  std::set<std::string> names;
  for (const Term& t : terms()) {
    for (const AtomPtr& atom : t.atoms) {
      if (atom->kind == DimAtom::Kind::kSymbol) {
        names.insert(atom->key);
      } else {
        for (const Dim* d : {&atom->a, &atom->b}) {
          for (std::string& s : d->symbols()) names.insert(std::move(s));
        }
      }
    }
  }
  return {names.begin(), names.end()};
}

Result<int64_t> Dim::evaluate(const std::function<std::optional<int64_t>(const std::string&)>& lookup) const {
  int64_t sum = constant_;
  for (const Term& t : terms()) {
    int64_t product = t.coefficient;
    for (const AtomPtr& atom : t.atoms) {
      int64_t v = 0;
      if (atom->kind == DimAtom::Kind::kSymbol) {
        const auto bound = lookup(atom->key);
        if (!bound)
          return invalid_argument("dim '" + to_string() + "': symbol '" + atom->key + "' has no value");
        v = *bound;
      } else {
        DECANT_ASSIGN(const int64_t a, atom->a.evaluate(lookup));
        DECANT_ASSIGN(const int64_t b, atom->b.evaluate(lookup));
        switch (atom->kind) {
          case DimAtom::Kind::kFloorDiv:
          case DimAtom::Kind::kMod: {
            if (b == 0 || (a == INT64_MIN && b == -1))
              return invalid_argument("dim '" + to_string() + "': division by zero");
            const int64_t q = floor_div_int(a, b);
            v = atom->kind == DimAtom::Kind::kFloorDiv ? q : a - q * b;
            break;
          }
          case DimAtom::Kind::kMax:
            v = std::max(a, b);
            break;
          default:
            v = std::min(a, b);
            break;
        }
      }
      if (mul_overflows(product, v, &product))
        return out_of_range("dim '" + to_string() + "' passes 64 bits");
    }
    if (add_overflows(sum, product, &sum)) return out_of_range("dim '" + to_string() + "' passes 64 bits");
  }
  return sum;
}

Dim Dim::substitute(const std::function<std::optional<Dim>(const std::string&)>& lookup) const {
  Dim sum(constant_);
  for (const Term& t : terms()) {
    Dim product(t.coefficient);
    for (const AtomPtr& atom : t.atoms) {
      switch (atom->kind) {
        case DimAtom::Kind::kSymbol: {
          auto replacement = lookup(atom->key);
          product = product * (replacement ? *replacement : Dim::symbol(atom->key));
          break;
        }
        case DimAtom::Kind::kFloorDiv:
          product = product * floor_div(atom->a.substitute(lookup), atom->b.substitute(lookup));
          break;
        case DimAtom::Kind::kMod:
          product = product * mod(atom->a.substitute(lookup), atom->b.substitute(lookup));
          break;
        case DimAtom::Kind::kMax:
          product = product * max(atom->a.substitute(lookup), atom->b.substitute(lookup));
          break;
        case DimAtom::Kind::kMin:
          product = product * min(atom->a.substitute(lookup), atom->b.substitute(lookup));
          break;
      }
    }
    sum = sum + product;
  }
  return sum;
}

Dim operator+(const Dim& a, const Dim& b) {
  int64_t constant = 0;
  if (add_overflows(a.constant_, b.constant_, &constant)) return DimAccess::overflow();
  if (a.is_constant() && b.is_constant()) return Dim(constant);
  std::vector<Term> terms(a.terms().begin(), a.terms().end());
  terms.insert(terms.end(), b.terms().begin(), b.terms().end());
  return DimAccess::make(constant, std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) { return a + Dim(-1) * b; }

Dim operator*(const Dim& a, const Dim& b) {
  int64_t constant = 0;
  if (mul_overflows(a.constant_, b.constant_, &constant)) return DimAccess::overflow();
  if (a.is_constant() && b.is_constant()) return Dim(constant);
  std::vector<Term> terms;
  auto multiply = [&](const Term* x, int64_t cx, const Term* y, int64_t cy) {
    Term t{0, {}};
    if (mul_overflows(cx, cy, &t.coefficient)) return false;
    if (x) t.atoms = x->atoms;
    if (y) t.atoms.insert(t.atoms.end(), y->atoms.begin(), y->atoms.end());
    std::sort(t.atoms.begin(), t.atoms.end(),
              [](const AtomPtr& l, const AtomPtr& r) { return l->key < r->key; });
    terms.push_back(std::move(t));
    return true;
  };
  bool fits = true;
  for (const Term& x : a.terms()) {
    fits = fits && multiply(&x, x.coefficient, nullptr, b.constant_);
    for (const Term& y : b.terms()) fits = fits && multiply(&x, x.coefficient, &y, y.coefficient);
  }
  for (const Term& y : b.terms()) fits = fits && multiply(nullptr, a.constant_, &y, y.coefficient);
  return fits ? DimAccess::make(constant, std::move(terms)) : DimAccess::overflow();
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.constant_ != b.constant_ || a.is_constant() != b.is_constant()) return false;
  if (a.terms_ == b.terms_) return true;
  return std::equal(a.terms_->begin(), a.terms_->end(), b.terms_->begin(), b.terms_->end(),
                    [](const Term& x, const Term& y) {
                      return x.coefficient == y.coefficient && compare_atoms(x.atoms, y.atoms) == 0;
                    });
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (b == Dim(1)) return a;
  if (a.is_constant() && b.is_constant() && b.constant() != 0 &&
      !(a.constant() == INT64_MIN && b.constant() == -1)) {
    return Dim(floor_div_int(a.constant(), b.constant()));
  }
  if (auto exact = Dim::divide_exact(a, b)) return *exact;
  return DimAccess::operation(DimAtom::Kind::kFloorDiv, "floordiv", a, b);
}

Dim mod(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant() && b.constant() != 0 &&
      !(a.constant() == INT64_MIN && b.constant() == -1)) {
    return Dim(a.constant() - floor_div_int(a.constant(), b.constant()) * b.constant());
  }
  if (Dim::divide_exact(a, b)) return Dim(0);
  return DimAccess::operation(DimAtom::Kind::kMod, "mod", a, b);
}

Dim max(const Dim& a, const Dim& b) {
  if (a == b) return a;
  const Dim difference = a - b;
  if (difference.is_constant()) return difference.constant() >= 0 ? a : b;
  return DimAccess::operation(DimAtom::Kind::kMax, "max", a, b);
}

Dim min(const Dim& a, const Dim& b) {
  if (a == b) return a;
  const Dim difference = a - b;
  if (difference.is_constant()) return difference.constant() >= 0 ? b : a;
  return DimAccess::operation(DimAtom::Kind::kMin, "min", a, b);
}

std::optional<Dim> Dim::divide_exact(const Dim& a, const Dim& b) {
  if (b == Dim(0)) return std::nullopt;
  if (a == b) return Dim(1);
  // Only division by a single product is attempted; sums as divisors divide only themselves.
  if (!b.is_constant() && (b.constant_ != 0 || b.terms_->size() != 1)) return std::nullopt;
  const int64_t divisor = b.is_constant() ? b.constant_ : (*b.terms_)[0].coefficient;
  const std::vector<AtomPtr> no_atoms;
  const std::vector<AtomPtr>& divisor_atoms = b.is_constant() ? no_atoms : (*b.terms_)[0].atoms;
  if (a.constant_ != 0 && !divisor_atoms.empty()) return std::nullopt;
  if (divisor == -1 || a.constant_ % divisor != 0) return std::nullopt;
  std::vector<Term> terms;
  for (const Term& t : a.terms()) {
    if (t.coefficient % divisor != 0) return std::nullopt;
    Term quotient{t.coefficient / divisor, t.atoms};
    for (const AtomPtr& d : divisor_atoms) {
      auto it = std::find_if(quotient.atoms.begin(), quotient.atoms.end(),
                             [&](const AtomPtr& x) { return x->key == d->key; });
      if (it == quotient.atoms.end()) return std::nullopt;
      quotient.atoms.erase(it);
    }
    if (quotient.atoms.empty() && !t.atoms.empty()) {
      // The symbol cancelled: what remains is a number, which belongs to the constant.
      return Dim::divide_exact(a - Dim::from_terms(0, {t}), b).has_value()
                 ? std::optional(*Dim::divide_exact(a - Dim::from_terms(0, {t}), b) +
                                 Dim(quotient.coefficient))
                 : std::nullopt;
    }
    terms.push_back(std::move(quotient));
  }
  return from_terms(a.constant_ / divisor, std::move(terms));
}

namespace {

/// Recursive-descent reader of "a + 2*b - 1"; anything it cannot read makes the whole label one symbol.
class LabelParser {
 public:
  explicit LabelParser(const std::string& text) : text_(text) {}

  std::optional<Dim> parse() {
    auto sum = parse_sum();
    skip_spaces();
    return sum && at_ == text_.size() ? sum : std::nullopt;
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::optional<Dim> parse_sum() {
    auto sum = parse_product();
    while (sum) {
      const bool plus = take('+');
      if (!plus && !take('-')) return sum;
      auto next = parse_product();
      if (!next) return std::nullopt;
      sum = plus ? *sum + *next : *sum - *next;
    }
    return sum;
  }
  std::optional<Dim> parse_product() {
    auto product = parse_factor();
    while (product && take('*')) {
      auto next = parse_factor();
      if (!next) return std::nullopt;
      product = *product * *next;
    }
    return product;
  }
  std::optional<Dim> parse_factor() {
    skip_spaces();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' ||
                                  text_[at_] == '.' || text_[at_] == ':' || text_[at_] == '/')) {
      ++at_;
    }
    if (at_ == begin || at_ - begin > 256) return std::nullopt;
    const std::string word = text_.substr(begin, at_ - begin);
    if (word.find_first_not_of("0123456789") != std::string::npos) {
      return std::isdigit(static_cast<unsigned char>(word[0])) ? std::nullopt
                                                               : std::optional(Dim::symbol(word));
    }
    if (word.size() > 18) return std::nullopt;
    return Dim(std::stoll(word));
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

Dim Dim::parse(const std::string& label) {
  if (label.size() < 4096) {
    if (auto parsed = LabelParser(label).parse()) return *parsed;
  }
  return symbol(label);
}

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + shape[i].to_string();
  return out + "]";
}

std::optional<std::vector<int64_t>> constant_shape(const Shape& shape) {
  std::vector<int64_t> dims;
  for (const Dim& d : shape) {
    if (!d.is_constant()) return std::nullopt;
    dims.push_back(d.constant());
  }
  return dims;
}

Dim element_count(const Shape& shape) {
  Dim n(1);
  for (const Dim& d : shape) n = n * d;
  return n;
}

}  // namespace decant::ir
