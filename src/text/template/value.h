#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace decant::text {

class Callable;
class Value;
struct LoopState;

enum class ValueKind : uint8_t {
  kNone,
  kUndefined,  ///< a name or member that does not exist; prints as nothing, most uses are errors
  kBool,
  kInt,
  kBigInt,  ///< an integer beyond 64 bits: printed and compared, not computed with
  kDouble,
  kString,
  kList,
  kTuple,
  kDict,
  kRange,
  kIterator,   ///< runs out once: what map(), select(), items ... give
  kView,       ///< dict keys(), values(), items(): can be walked again, has a length, cannot be indexed
  kNamespace,  ///< the only thing a template can change
  kLoop,
  kCallable,
};

/// Containers nested deeper than this are refused when they are made, so that walking one can recurse.
inline constexpr uint32_t kMaxValueDepth = 256;
/// The same for the number of values in a container, shared ones counted as often as they are met.
inline constexpr uint64_t kMaxValueWeight = uint64_t{1} << 22;

/// A value of the template language, as Python would have it. Copies share their storage; lists and dicts
/// never change after they are made, so a Value may be read from several threads (a render's own namespaces
/// stay inside it). Texts are UTF-8; whatever came in invalid prints as it came.
class Value {
 public:
  Value() = default;  ///< None
  static Value none() { return Value(); }
  static Value undefined(std::string message, std::string_view error_kind = "UndefinedError");
  static Value boolean(bool b);
  static Value integer(int64_t i);
  /// Optional minus, then digits; becomes a kInt when it fits.
  static Value big_integer(std::string_view decimal);
  static Value real(double d);
  static Value string(std::string text, bool markup = false);
  /// list, tuple and dict are for sizes known to be small; what a template makes goes through checked_list
  /// and so on.
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  /// A later entry with an equal key replaces the value of the earlier one.
  static Value dict(std::vector<std::pair<Value, Value>> entries);
  static Value range(int64_t start, int64_t stop, int64_t step);
  static Value iterator(std::string_view type_name, std::vector<Value> items, Status at_end = ok_status());
  static Value view(std::string_view type_name, std::vector<Value> items);
  static Value new_namespace();
  static Value loop(std::shared_ptr<LoopState> state);
  static Value callable(std::shared_ptr<Callable> callable);

  ValueKind kind() const { return kind_; }
  bool is(ValueKind k) const { return kind_ == k; }
  bool is_none() const { return kind_ == ValueKind::kNone; }
  bool is_undefined() const { return kind_ == ValueKind::kUndefined; }
  bool is_string() const { return kind_ == ValueKind::kString; }
  bool is_sequence() const { return kind_ == ValueKind::kList || kind_ == ValueKind::kTuple; }
  bool is_dict() const { return kind_ == ValueKind::kDict; }
  /// bool, int or double: what Python counts as a number, big integers apart.
  bool is_number() const { return is_integral() || kind_ == ValueKind::kDouble; }
  bool is_integral() const { return kind_ == ValueKind::kBool || kind_ == ValueKind::kInt; }

  // Each accessor's precondition is the kind it names.
  bool as_bool() const { return number_.i != 0; }
  int64_t as_int() const { return number_.i; }  ///< kBool too
  double as_double() const {
    return kind_ == ValueKind::kDouble ? number_.d : static_cast<double>(number_.i);
  }
  std::string_view as_string() const;
  size_t code_points() const;
  bool is_ascii() const;
  bool is_markup() const;  ///< false for everything that is no string
  std::string_view big_digits() const;
  const std::vector<Value>& items() const;  ///< list, tuple, view
  const std::vector<std::pair<Value, Value>>& entries() const;
  /// The value of `key`, null when the dict has none. Any hashable value may be a key.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  struct Range {
    int64_t start, stop, step;
    int64_t size() const;
  };
  const Range& as_range() const;
  std::string_view undefined_message() const;
  std::string_view undefined_kind() const;
  /// Attributes of a namespace, shared by all copies.
  std::vector<std::pair<std::string, Value>>& attributes() const;
  const std::shared_ptr<LoopState>& as_loop() const;
  Callable& as_callable() const;
  /// Takes what is left in an iterator: ends in `at_end` when there is an error behind the last item.
  Result<std::vector<Value>> drain() const;
  Result<Value> next_or(Value when_empty) const;

  /// How deep containers nest: 0 for a scalar.
  uint32_t depth() const;
  /// Values a walk over this one meets, itself included.
  uint64_t weight() const;
  /// Python's type name: "str", "NoneType", "dict_items", ...
  std::string_view type_name() const;
  /// Whether both are the same object (`is`, sameas); scalars compare by value.
  bool same_object(const Value& other) const;

 private:
  Value(ValueKind kind, std::shared_ptr<void> rep) : kind_(kind), rep_(std::move(rep)) {}
  template <typename T>
  T& rep() const {
    return *static_cast<T*>(rep_.get());
  }

  ValueKind kind_ = ValueKind::kNone;
  union {
    int64_t i;
    double d;
  } number_ = {0};
  std::shared_ptr<void> rep_;
};

/// A list, tuple or dict, or an error when it would be nested too deep or weigh too much.
Result<Value> checked_list(std::vector<Value> items);
Result<Value> checked_tuple(std::vector<Value> items);
Result<Value> checked_dict(std::vector<std::pair<Value, Value>> entries);

/// Python's truth of a value.
bool truthy(const Value& v);
/// Python's ==: 1 == 1.0 == True, containers by their items.
bool equal(const Value& a, const Value& b);
/// Whether `v` may be a dict key.
bool hashable(const Value& v);

/// What a loop over `v` would see: list items, dict keys, the code points of a text; takes the rest of an
/// iterator.
Result<std::vector<Value>> iterate(const Value& v);

/// len(v), or the TypeError Python raises.
Result<int64_t> length_of(const Value& v);

/// Reads JSON as Python's json.loads does: order of keys kept, the last of equal keys wins, integers of any
/// size.
Result<Value> parse_json(std::string_view text);

}  // namespace decant::text
