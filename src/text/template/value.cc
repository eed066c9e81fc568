#include "text/template/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "text/template/callable.h"
#include "text/template/errors.h"
#include "text/template/unicode.h"

namespace decant::text {
namespace {

struct StringRep {
  std::string text;
  size_t code_points;
  bool markup;
};

// How deep containers nest inside a value, and how many values a walk over it meets.
struct Extent {
  uint32_t depth = 1;
  uint64_t weight = 1;

  void add(const Value& v) {
    depth = std::max(depth, v.depth() + 1);
    weight = std::min(weight + v.weight(), 2 * kMaxValueWeight);
  }
};

struct ListRep {
  std::vector<Value> items;
  Extent extent;
  std::string_view type_name;
};

struct DictRep {
  std::vector<std::pair<Value, Value>> entries;
  std::unordered_map<std::string_view, uint32_t> by_name;  // text keys only
  Extent extent;
};

struct UndefinedRep {
  std::string message;
  std::string_view kind;
};

struct IteratorRep {
  std::string_view type_name;
  std::vector<Value> items;
  size_t next = 0;
  Status at_end;
};

using NamespaceRep = std::vector<std::pair<std::string, Value>>;

Extent extent_of(const std::vector<Value>& items) {
  Extent extent;
  for (const Value& v : items) extent.add(v);
  return extent;
}

}  // namespace

Value Value::undefined(std::string message, std::string_view error_kind) {
  return Value(ValueKind::kUndefined,
               std::make_shared<UndefinedRep>(UndefinedRep{std::move(message), error_kind}));
}

Value Value::boolean(bool b) {
  Value v(ValueKind::kBool, nullptr);
  v.number_.i = b ? 1 : 0;
  return v;
}

Value Value::integer(int64_t i) {
  Value v(ValueKind::kInt, nullptr);
  v.number_.i = i;
  return v;
}

Value Value::big_integer(std::string_view decimal) {
  const bool negative = decimal.starts_with('-');
  std::string_view digits = decimal.substr(negative ? 1 : 0);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  int64_t value = 0;
  for (char c : digits) {
    const int64_t digit = negative ? -(c - '0') : c - '0';
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value)) {
      return Value(ValueKind::kBigInt,
                   std::make_shared<std::string>((negative ? "-" : "") + std::string(digits)));
    }
  }
  return integer(value);
}

Value Value::real(double d) {
  Value v(ValueKind::kDouble, nullptr);
  v.number_.d = d;
  return v;
}

Value Value::string(std::string text, bool markup) {
  const size_t n = count_code_points(text);
  return Value(ValueKind::kString, std::make_shared<StringRep>(StringRep{std::move(text), n, markup}));
}

Value Value::list(std::vector<Value> items) {
  const Extent extent = extent_of(items);
  return Value(ValueKind::kList, std::make_shared<ListRep>(ListRep{std::move(items), extent, "list"}));
}

Value Value::tuple(std::vector<Value> items) {
  const Extent extent = extent_of(items);
  return Value(ValueKind::kTuple, std::make_shared<ListRep>(ListRep{std::move(items), extent, "tuple"}));
}

Value Value::dict(std::vector<std::pair<Value, Value>> entries) {
  auto rep = std::make_shared<DictRep>();
  rep->entries.reserve(entries.size());
  const auto find_other = [&](const Value& key) {
    return std::find_if(rep->entries.begin(), rep->entries.end(),
                        [&](const auto& e) { return equal(e.first, key); });
  };
  for (auto& [key, value] : entries) {
    rep->extent.add(key);
    rep->extent.add(value);
    if (key.is_string()) {
      const auto [it, added] =
          rep->by_name.try_emplace(key.as_string(), static_cast<uint32_t>(rep->entries.size()));
      if (!added) {
        rep->entries[it->second].second = std::move(value);
        continue;
      }
    } else if (const auto it = find_other(key); it != rep->entries.end()) {
      it->second = std::move(value);
      continue;
    }
    rep->entries.emplace_back(std::move(key), std::move(value));
  }
  return Value(ValueKind::kDict, std::move(rep));
}

Value Value::range(int64_t start, int64_t stop, int64_t step) {
  return Value(ValueKind::kRange, std::make_shared<Range>(Range{start, stop, step}));
}

Value Value::iterator(std::string_view type_name, std::vector<Value> items, Status at_end) {
  return Value(ValueKind::kIterator,
               std::make_shared<IteratorRep>(IteratorRep{type_name, std::move(items), 0, std::move(at_end)}));
}

Value Value::view(std::string_view type_name, std::vector<Value> items) {
  const Extent extent = extent_of(items);
  return Value(ValueKind::kView, std::make_shared<ListRep>(ListRep{std::move(items), extent, type_name}));
}

Value Value::new_namespace() { return Value(ValueKind::kNamespace, std::make_shared<NamespaceRep>()); }

Value Value::loop(std::shared_ptr<LoopState> state) {
  return Value(ValueKind::kLoop, std::make_shared<std::shared_ptr<LoopState>>(std::move(state)));
}

Value Value::callable(std::shared_ptr<Callable> callable) {
  return Value(ValueKind::kCallable, std::move(callable));
}

std::string_view Value::as_string() const { return rep<StringRep>().text; }
size_t Value::code_points() const { return rep<StringRep>().code_points; }
bool Value::is_ascii() const { return rep<StringRep>().code_points == rep<StringRep>().text.size(); }
bool Value::is_markup() const { return is_string() && rep<StringRep>().markup; }
std::string_view Value::big_digits() const { return rep<std::string>(); }
const std::vector<Value>& Value::items() const { return rep<ListRep>().items; }
const std::vector<std::pair<Value, Value>>& Value::entries() const { return rep<DictRep>().entries; }
const Value::Range& Value::as_range() const { return rep<Range>(); }
std::string_view Value::undefined_message() const { return rep<UndefinedRep>().message; }
std::string_view Value::undefined_kind() const { return rep<UndefinedRep>().kind; }
std::vector<std::pair<std::string, Value>>& Value::attributes() const { return rep<NamespaceRep>(); }
const std::shared_ptr<LoopState>& Value::as_loop() const { return rep<std::shared_ptr<LoopState>>(); }
Callable& Value::as_callable() const { return rep<Callable>(); }

const Value* Value::find(std::string_view key) const {
  const auto& dict = rep<DictRep>();
  const auto it = dict.by_name.find(key);
  return it == dict.by_name.end() ? nullptr : &dict.entries[it->second].second;
}

const Value* Value::find(const Value& key) const {
  if (key.is_string()) return find(key.as_string());
  for (const auto& [k, v] : entries()) {
    if (!k.is_string() && equal(k, key)) return &v;
  }
  return nullptr;
}

int64_t Value::Range::size() const {
  if (step > 0 && start < stop) {
    return static_cast<int64_t>((static_cast<uint64_t>(stop) - static_cast<uint64_t>(start) - 1) /
                                static_cast<uint64_t>(step)) +
           1;
  }
  if (step < 0 && start > stop) {
    return static_cast<int64_t>((static_cast<uint64_t>(start) - static_cast<uint64_t>(stop) - 1) /
                                (uint64_t{0} - static_cast<uint64_t>(step))) +
           1;
  }
  return 0;
}

Result<std::vector<Value>> Value::drain() const {
  auto& it = rep<IteratorRep>();
  std::vector<Value> rest(it.items.begin() + static_cast<ptrdiff_t>(it.next), it.items.end());
  it.next = it.items.size();
  if (!it.at_end.ok()) return std::exchange(it.at_end, ok_status());
  return rest;
}

Result<Value> Value::next_or(Value when_empty) const {
  auto& it = rep<IteratorRep>();
  if (it.next < it.items.size()) return it.items[it.next++];
  if (!it.at_end.ok()) return std::exchange(it.at_end, ok_status());
  return when_empty;
}

uint32_t Value::depth() const {
  switch (kind_) {
    case ValueKind::kList:
    case ValueKind::kTuple:
    case ValueKind::kView:
      return rep<ListRep>().extent.depth;
    case ValueKind::kDict:
      return rep<DictRep>().extent.depth;
    default:
      return 0;
  }
}

uint64_t Value::weight() const {
  switch (kind_) {
    case ValueKind::kList:
    case ValueKind::kTuple:
    case ValueKind::kView:
      return rep<ListRep>().extent.weight;
    case ValueKind::kDict:
      return rep<DictRep>().extent.weight;
    default:
      return 1;
  }
}

std::string_view Value::type_name() const {
  switch (kind_) {
    case ValueKind::kNone:
      return "NoneType";
    case ValueKind::kUndefined:
      return "Undefined";
    case ValueKind::kBool:
      return "bool";
    case ValueKind::kInt:
    case ValueKind::kBigInt:
      return "int";
    case ValueKind::kDouble:
      return "float";
    case ValueKind::kString:
      return is_markup() ? "Markup" : "str";
    case ValueKind::kList:
    case ValueKind::kTuple:
    case ValueKind::kView:
      return rep<ListRep>().type_name;
    case ValueKind::kDict:
      return "dict";
    case ValueKind::kRange:
      return "range";
    case ValueKind::kIterator:
      return rep<IteratorRep>().type_name;
    case ValueKind::kNamespace:
      return "TemplateNamespace";
    case ValueKind::kLoop:
      return "LoopContext";
    case ValueKind::kCallable:
      return as_callable().type_name();
  }
  return "object";
}

bool Value::same_object(const Value& other) const {
  if (kind_ != other.kind_) return false;
  if (kind_ == ValueKind::kDouble) return number_.d == other.number_.d;
  if (rep_ == nullptr) return number_.i == other.number_.i;
  if (is_string()) return as_string() == other.as_string();
  return rep_ == other.rep_;
}

namespace {

Result<Value> checked(Value v) {
  if (v.depth() > kMaxValueDepth) {
    return limit_error(fmt::format("containers nested more than {} deep", kMaxValueDepth));
  }
  if (v.weight() > kMaxValueWeight)
    return limit_error(fmt::format("a container of over {} values", kMaxValueWeight));
  return v;
}

}  // namespace

Result<Value> checked_list(std::vector<Value> items) { return checked(Value::list(std::move(items))); }
Result<Value> checked_tuple(std::vector<Value> items) { return checked(Value::tuple(std::move(items))); }
Result<Value> checked_dict(std::vector<std::pair<Value, Value>> entries) {
  return checked(Value::dict(std::move(entries)));
}

bool truthy(const Value& v) {
  switch (v.kind()) {
    case ValueKind::kNone:
    case ValueKind::kUndefined:
      return false;
    case ValueKind::kBool:
    case ValueKind::kInt:
      return v.as_int() != 0;
    case ValueKind::kDouble:
      return v.as_double() != 0;
    case ValueKind::kString:
      return !v.as_string().empty();
    case ValueKind::kList:
    case ValueKind::kTuple:
    case ValueKind::kView:
      return !v.items().empty();
    case ValueKind::kDict:
      return !v.entries().empty();
    case ValueKind::kRange:
      return v.as_range().size() != 0;
    default:
      return true;
  }
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
    return a.as_double() == b.as_double();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case ValueKind::kNone:
    case ValueKind::kUndefined:
      return true;
    case ValueKind::kBigInt:
      return a.big_digits() == b.big_digits();
    case ValueKind::kString:
      return a.as_string() == b.as_string();
    case ValueKind::kList:
    case ValueKind::kTuple:
      return a.same_object(b) ||
             std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), equal);
    case ValueKind::kDict: {
      if (a.same_object(b)) return true;
      if (a.entries().size() != b.entries().size()) return false;
      for (const auto& [key, value] : a.entries()) {
        const Value* other = b.find(key);
        if (other == nullptr || !equal(value, *other)) return false;
      }
      return true;
    }
    case ValueKind::kRange: {
      const auto& x = a.as_range();
      const auto& y = b.as_range();
      const int64_t n = x.size();
      return n == y.size() && (n == 0 || (x.start == y.start && (n == 1 || x.step == y.step)));
    }
    default:
      return a.same_object(b);
  }
}

bool hashable(const Value& v) {
  if (v.is(ValueKind::kTuple)) return std::all_of(v.items().begin(), v.items().end(), hashable);
  return !v.is(ValueKind::kList) && !v.is_dict() && !v.is(ValueKind::kView);
}

Result<std::vector<Value>> iterate(const Value& v) {
  std::vector<Value> out;
  switch (v.kind()) {
    case ValueKind::kUndefined:
      if (v.undefined_kind() != "UndefinedError") return raise(v.undefined_kind(), v.undefined_message());
      return out;
    case ValueKind::kString:
      for (size_t i = 0; i < v.as_string().size();) {
        const size_t start = i;
        next_code_point(v.as_string(), i);
        out.push_back(Value::string(std::string(v.as_string().substr(start, i - start)), v.is_markup()));
      }
      return out;
    case ValueKind::kList:
    case ValueKind::kTuple:
    case ValueKind::kView:
      return v.items();
    case ValueKind::kDict:
      for (const auto& entry : v.entries()) out.push_back(entry.first);
      return out;
    case ValueKind::kRange:
      for (int64_t i = 0, n = v.as_range().size(); i < n; ++i) {
        out.push_back(Value::integer(v.as_range().start + i * v.as_range().step));
      }
      return out;
    case ValueKind::kIterator:
      return v.drain();
    default:
      return type_error(fmt::format("'{}' object is not iterable", v.type_name()));
  }
}

Result<int64_t> length_of(const Value& v) {
  switch (v.kind()) {
    case ValueKind::kUndefined:
      return int64_t{0};
    case ValueKind::kString:
      return static_cast<int64_t>(v.code_points());
    case ValueKind::kList:
    case ValueKind::kTuple:
    case ValueKind::kView:
      return static_cast<int64_t>(v.items().size());
    case ValueKind::kDict:
      return static_cast<int64_t>(v.entries().size());
    case ValueKind::kRange:
      return v.as_range().size();
    default:
      return type_error(fmt::format("object of type '{}' has no len()", v.type_name()));
  }
}

}  // namespace decant::text
