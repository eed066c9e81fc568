#include "text/template/members.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "text/template/errors.h"
#include "text/template/interpreter.h"
#include "text/template/loop.h"
#include "text/template/repr.h"
#include "text/template/unicode.h"

namespace decant::text {
namespace {

class BoundMethod : public Callable {
 public:
  BoundMethod(Value self, const MethodEntry& entry) : self_(std::move(self)), entry_(entry) {}
  std::string_view name() const override { return entry_.name; }
  Result<Value> call(Interpreter& interpreter, CallArgs args) override {
    return entry_.method(interpreter, self_, std::move(args));
  }

 private:
  Value self_;
  const MethodEntry& entry_;
};

std::string object_name(const Value& v) {
  return v.is_none() ? "None" : fmt::format("{} object", v.type_name());
}

Result<std::optional<Value>> find_member(Interpreter& interpreter, const Value& object,
                                         std::string_view name) {
  using Found = std::optional<Value>;
  if (object.is(ValueKind::kNamespace)) {
    for (const auto& [attribute, value] : object.attributes()) {
      if (attribute == name) return Found(value);
    }
    return Found();
  }
  if (object.is(ValueKind::kLoop)) return loop_attribute(interpreter, object, name);
  if (object.is(ValueKind::kCallable)) {
    if (name == "name" && object.type_name() == "Macro") {
      return Found(Value::string(std::string(object.as_callable().name())));
    }
    return Found();
  }
  const MethodEntry* entry =
      object.is_string() ? find_string_method(name) : find_container_method(object, name);
  if (entry == nullptr) return Found();
  if (entry->method == nullptr) {
    return Found(Value::undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, object.type_name()),
        "SecurityError"));
  }
  return Found(Value::callable(std::make_shared<BoundMethod>(object, *entry)));
}

// The item, when the object has one under this key.
std::optional<Value> find_item(const Value& object, const Value& key) {
  switch (object.kind()) {
    case ValueKind::kDict: {
      const Value* v = hashable(key) ? object.find(key) : nullptr;
      return v == nullptr ? std::nullopt : std::optional(*v);
    }
    case ValueKind::kList:
    case ValueKind::kTuple:
    case ValueKind::kRange:
    case ValueKind::kString:
      break;
    default:
      return std::nullopt;
  }
  if (!key.is_integral()) return std::nullopt;
  const int64_t size = object.is_string()             ? static_cast<int64_t>(object.code_points())
                       : object.is(ValueKind::kRange) ? object.as_range().size()
                                                      : static_cast<int64_t>(object.items().size());
  const int64_t i = key.as_int() < 0 ? key.as_int() + size : key.as_int();
  if (i < 0 || i >= size) return std::nullopt;
  if (object.is(ValueKind::kRange))
    return Value::integer(object.as_range().start + i * object.as_range().step);
  if (!object.is_string()) return object.items()[static_cast<size_t>(i)];
  const std::string_view text = object.as_string();
  const size_t begin = object.is_ascii() ? static_cast<size_t>(i) : byte_offset(text, static_cast<size_t>(i));
  size_t end = begin;
  next_code_point(text, end);
  return Value::string(std::string(text.substr(begin, end - begin)), object.is_markup());
}

Result<Value> missing(const Value& object, const Value& key) {
  if (key.is_string()) {
    return Value::undefined(fmt::format("'{}' has no attribute '{}'", object_name(object), key.as_string()));
  }
  DECANT_ASSIGN(std::string text, [&]() -> Result<std::string> {
    std::string repr;
    DECANT_RETURN_IF_ERROR(append_repr(repr, key, 1 << 16));
    return repr;
  }());
  return Value::undefined(fmt::format("{} has no element {}", object_name(object), text));
}

struct Bounds {
  int64_t start, stop, step;
};

Result<Bounds> slice_bounds(const Value& start, const Value& stop, const Value& step, int64_t size) {
  for (const Value* v : {&start, &stop, &step}) {
    if (v->is_undefined())
      return type_error("slice indices must be integers or None or have an __index__ method");
    if (!v->is_none() && !v->is_integral()) {
      return type_error("slice indices must be integers or None or have an __index__ method");
    }
  }
  const int64_t by = step.is_none() ? 1 : step.as_int();
  if (by == 0) return value_error("slice step cannot be zero");
  const int64_t lowest = by < 0 ? -1 : 0;
  const int64_t highest = by < 0 ? size - 1 : size;
  const auto clamp = [&](const Value& v, int64_t otherwise) {
    if (v.is_none()) return otherwise;
    const int64_t i = v.as_int() < 0 ? v.as_int() + size : v.as_int();
    return i < lowest ? lowest : i > highest ? highest : i;
  };
  return Bounds{clamp(start, by < 0 ? highest : lowest), clamp(stop, by < 0 ? lowest : highest), by};
}

}  // namespace

Result<Value> get_attribute(Interpreter& interpreter, const Value& object, std::string_view name) {
  if (object.is_undefined()) return raise(object.undefined_kind(), object.undefined_message());
  if (name.starts_with("__")) {
    return Value::undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, object.type_name()),
        "SecurityError");
  }
  DECANT_ASSIGN(const auto member, find_member(interpreter, object, name));
  if (member) return *member;
  if (object.is_dict()) {
    if (const Value* v = object.find(name)) return *v;
  }
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", object_name(object), name));
}

Result<Value> get_item(Interpreter& interpreter, const Value& object, const Value& key) {
  if (object.is_undefined()) return raise(object.undefined_kind(), object.undefined_message());
  if (auto item = find_item(object, key)) return *item;
  if (key.is_string()) return get_attribute(interpreter, object, key.as_string());
  return missing(object, key);
}

Result<Value> get_slice(Interpreter& interpreter, const Value& object, const Value& start, const Value& stop,
                        const Value& step) {
  if (object.is_undefined()) return raise(object.undefined_kind(), object.undefined_message());
  const bool is_range = object.is(ValueKind::kRange);
  if (!object.is_string() && !object.is_sequence() && !is_range) {
    return Value::undefined(fmt::format("{} has no element slice", object_name(object)));
  }
  DECANT_ASSIGN(const int64_t size, length_of(object));
  DECANT_ASSIGN(const Bounds b, slice_bounds(start, stop, step, size));
  const int64_t count = Value::Range{b.start, b.stop, b.step}.size();
  if (object.is_string() && b.step == 1) {
    const std::string_view text = object.as_string();
    if (count <= 0) return Value::string("", object.is_markup());
    const auto first = static_cast<size_t>(b.start);
    const size_t begin = object.is_ascii() ? first : byte_offset(text, first);
    const size_t n = object.is_ascii() ? static_cast<size_t>(count)
                                       : byte_offset(text.substr(begin), static_cast<size_t>(count));
    return interpreter.make_string(std::string(text.substr(begin, n)), object.is_markup());
  }
  DECANT_ASSIGN(const auto all, iterate(object));
  DECANT_RETURN_IF_ERROR(interpreter.charge_bytes(all.size() * sizeof(Value)));
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) items.push_back(all[static_cast<size_t>(b.start + i * b.step)]);
  if (object.is(ValueKind::kTuple)) return checked_tuple(std::move(items));
  if (!object.is_string()) return interpreter.make_list(std::move(items));
  std::string text;
  for (const Value& v : items) text += v.as_string();
  return interpreter.make_string(std::move(text), object.is_markup());
}

}  // namespace decant::text
