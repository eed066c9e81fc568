#include <fmt/format.h>

#include <algorithm>

#include "text/template/errors.h"
#include "text/template/filters.h"
#include "text/template/interpreter.h"
#include "text/template/operators.h"
#include "text/template/repr.h"
#include "text/template/split.h"
#include "text/template/unicode.h"

namespace decant::text {
namespace {

// What sort, min, unique ... compare: an attribute when one is named, texts without their case unless it
// counts.
struct KeyMaker {
  Interpreter& in;
  Value attribute;
  bool case_sensitive;

  Result<Value> operator()(const Value& item) const {
    Value key = item;
    if (!attribute.is_none()) {
      DECANT_ASSIGN(key, follow_path(in, item, attribute));
    }
    if (!case_sensitive && key.is_string()) return Value::string(to_lower(key.as_string()));
    return key;
  }
};

struct Keyed {
  Value key;
  Value item;
};

Result<std::vector<Keyed>> keyed(const Value& input, const KeyMaker& make_key) {
  DECANT_ASSIGN(const auto items, iterate(input));
  DECANT_RETURN_IF_ERROR(make_key.in.charge_steps(items.size()));
  std::vector<Keyed> out;
  for (const Value& item : items) {
    DECANT_ASSIGN(Value key, make_key(item));
    out.push_back({std::move(key), item});
  }
  return out;
}

// A stable sort whose comparison may fail.
Status sort_keyed(Interpreter& in, std::vector<Keyed>& items, bool reverse) {
  Status status;
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    if (!status.ok()) return false;
    if (status = in.charge_bytes(a.key.weight()); !status.ok()) return false;
    auto result = reverse ? less(b.key, a.key) : less(a.key, b.key);
    if (result.ok()) return *result;
    status = result.status();
    return false;
  });
  return status;
}

Result<Value> items_of(Interpreter& in, std::vector<Keyed> keyed_items) {
  std::vector<Value> out;
  for (Keyed& k : keyed_items) out.push_back(std::move(k.item));
  return in.make_list(std::move(out));
}

Result<Value> sort(Interpreter& in, const Value& input, CallArgs args) {
  Parameters p("sort", {"reverse", "case_sensitive", "attribute"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  const bool by_several =
      p.has(2) && p[2].is_string() && p[2].as_string().find(',') != std::string_view::npos;
  if (by_several) {
    // Sorting by the last key first and keeping the order of equal ones amounts to sorting by all of them.
    auto paths = split_text(p[2].as_string(), ",", -1);
    Value current = input;
    for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
      const KeyMaker key{in, Value::string(std::string(*path)), p.flag(1, false)};
      DECANT_ASSIGN(auto items, keyed(current, key));
      DECANT_RETURN_IF_ERROR(sort_keyed(in, items, p.flag(0, false)));
      DECANT_ASSIGN(current, items_of(in, std::move(items)));
    }
    return current;
  }
  const KeyMaker key{in, p.get(2, Value::none()), p.flag(1, false)};
  DECANT_ASSIGN(auto items, keyed(input, key));
  DECANT_RETURN_IF_ERROR(sort_keyed(in, items, p.flag(0, false)));
  return items_of(in, std::move(items));
}

Result<Value> dict_sort(Interpreter& in, const Value& input, CallArgs args) {
  Parameters p("dictsort", {"case_sensitive", "by", "reverse"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const std::string_view by, p.text(1, "key"));
  if (by != "key" && by != "value") {
    return raise("FilterArgumentError", "You can only sort by either \"key\" or \"value\"");
  }
  if (input.is_undefined()) return raise(input.undefined_kind(), input.undefined_message());
  if (!input.is_dict())
    return undefined_error(fmt::format("'{} object' has no attribute 'items'", input.type_name()));
  const KeyMaker key{in, Value::none(), p.flag(0, false)};
  std::vector<Keyed> items;
  for (const auto& [name, value] : input.entries()) {
    DECANT_ASSIGN(Value k, key(by == "key" ? name : value));
    items.push_back({std::move(k), Value::tuple({name, value})});
  }
  DECANT_RETURN_IF_ERROR(sort_keyed(in, items, p.flag(2, false)));
  return items_of(in, std::move(items));
}

template <bool kMax>
Result<Value> extreme(Interpreter& in, const Value& input, CallArgs args) {
  Parameters p(kMax ? "max" : "min", {"case_sensitive", "attribute"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  const KeyMaker key{in, p.get(1, Value::none()), p.flag(0, false)};
  DECANT_ASSIGN(auto items, keyed(input, key));
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    DECANT_ASSIGN(const bool better,
                  kMax ? less(items[best].key, items[i].key) : less(items[i].key, items[best].key));
    if (better) best = i;
  }
  return items[best].item;
}

Result<Value> unique(Interpreter& in, const Value& input, CallArgs args) {
  Parameters p("unique", {"case_sensitive", "attribute"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  const KeyMaker key{in, p.get(1, Value::none()), p.flag(0, false)};
  DECANT_ASSIGN(auto items, keyed(input, key));
  std::vector<std::pair<Value, Value>> seen;
  for (Keyed& k : items) {
    if (!hashable(k.key)) return type_error(fmt::format("unhashable type: '{}'", k.key.type_name()));
    seen.emplace_back(k.key, Value::none());
  }
  // The dict keeps the first of equal keys; walk both in step to find the items they came from.
  const Value distinct = Value::dict(std::move(seen));
  std::vector<Value> out;
  size_t next = 0;
  for (const Keyed& k : items) {
    if (next < distinct.entries().size() && equal(distinct.entries()[next].first, k.key)) {
      out.push_back(k.item);
      ++next;
    }
  }
  return Value::iterator("generator", std::move(out));
}

Result<Value> group_by(Interpreter& in, const Value& input, CallArgs args) {
  Parameters p("groupby", {"attribute", "default", "case_sensitive"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  const KeyMaker key{in, p[0], p.flag(2, false)};
  DECANT_ASSIGN(auto items, keyed(input, key));
  for (Keyed& k : items) {
    if (k.key.is_undefined() && p.has(1)) k.key = p[1];
  }
  DECANT_RETURN_IF_ERROR(sort_keyed(in, items, false));
  std::vector<Value> groups;
  for (size_t i = 0; i < items.size();) {
    std::vector<Value> group;
    const size_t first = i;
    for (; i < items.size() && equal(items[i].key, items[first].key); ++i) group.push_back(items[i].item);
    DECANT_ASSIGN(Value grouper, follow_path(in, items[first].item, p[0]));
    if (grouper.is_undefined() && p.has(1)) grouper = p[1];
    DECANT_ASSIGN(Value list, in.make_list(std::move(group)));
    DECANT_ASSIGN(Value pair, checked_tuple({std::move(grouper), std::move(list)}));
    groups.push_back(std::move(pair));
  }
  return in.make_list(std::move(groups));
}

Result<Value> join(Interpreter& in, const Value& input, CallArgs args) {
  Parameters p("join", {"d", "attribute"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  const size_t limit = in.options().limits.output_bytes;
  DECANT_ASSIGN(const std::string separator, to_text(p.get(0, Value::string("")), limit));
  DECANT_ASSIGN(const auto items, iterate(input));
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += separator;
    Value item = items[i];
    if (p.has(1) && !p[1].is_none()) {
      DECANT_ASSIGN(item, follow_path(in, item, p[1]));
    }
    DECANT_RETURN_IF_ERROR(append_text(out, item, limit));
    if (out.size() > limit) return limit_error("a joined text grows too long");
  }
  return in.make_string(std::move(out));
}

Result<Value> first(Interpreter&, const Value& input, CallArgs) {
  Value none = Value::undefined("No first item, sequence was empty.");
  if (input.is(ValueKind::kIterator)) return input.next_or(std::move(none));
  DECANT_ASSIGN(auto items, iterate(input));
  return items.empty() ? std::move(none) : std::move(items.front());
}

Result<Value> last(Interpreter&, const Value& input, CallArgs) {
  if (input.is(ValueKind::kIterator)) {
    return type_error(fmt::format("'{}' object is not reversible", input.type_name()));
  }
  DECANT_ASSIGN(auto items, iterate(input));
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : std::move(items.back());
}

Result<Value> length(Interpreter&, const Value& input, CallArgs) {
  if (input.is_undefined() && input.undefined_kind() != "UndefinedError") {
    return raise(input.undefined_kind(), input.undefined_message());
  }
  DECANT_ASSIGN(const int64_t n, length_of(input));
  return Value::integer(n);
}

Result<Value> list(Interpreter& in, const Value& input, CallArgs) {
  DECANT_ASSIGN(auto items, iterate(input));
  return in.make_list(std::move(items));
}

// A mapping's pairs; anything else is found out only when the iterator is read.
Result<Value> items(Interpreter&, const Value& input, CallArgs) {
  std::vector<Value> pairs;
  if (input.is_undefined()) return Value::iterator("generator", {});
  if (!input.is_dict())
    return Value::iterator("generator", {}, type_error("Can only get item pairs from a mapping."));
  for (const auto& [key, value] : input.entries()) pairs.push_back(Value::tuple({key, value}));
  return Value::iterator("generator", std::move(pairs));
}

Result<Value> reverse(Interpreter& in, const Value& input, CallArgs) {
  DECANT_ASSIGN(auto items, iterate(input));
  std::reverse(items.begin(), items.end());
  if (!input.is_string()) return Value::iterator("list_reverseiterator", std::move(items));
  std::string text;
  for (const Value& v : items) text += v.as_string();
  return in.make_string(std::move(text));
}

Result<Value> sum(Interpreter& in, const Value& input, CallArgs args) {
  Parameters p("sum", {"attribute", "start"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const auto items, iterate(input));
  Value total = p.get(1, Value::integer(0));
  for (Value item : items) {
    DECANT_RETURN_IF_ERROR(in.charge_steps(1));
    if (p.has(0) && !p[0].is_none()) {
      DECANT_ASSIGN(item, follow_path(in, item, p[0]));
    }
    DECANT_ASSIGN(total, binary(in, Op::kAdd, total, item));
  }
  return total;
}

Result<Value> batch(Interpreter& in, const Value& input, CallArgs args) {
  Parameters p("batch", {"linecount", "fill_with"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const int64_t size, p.integer(0, 1));
  if (size < 1 || size > in.options().limits.range_items) return value_error("batch needs a positive size");
  DECANT_ASSIGN(const auto items, iterate(input));
  std::vector<Value> batches;
  for (size_t i = 0; i < items.size(); i += static_cast<size_t>(size)) {
    std::vector<Value> one;
    for (size_t k = i; k < items.size() && k < i + static_cast<size_t>(size); ++k) one.push_back(items[k]);
    while (p.has(1) && !p[1].is_none() && one.size() < static_cast<size_t>(size)) one.push_back(p[1]);
    DECANT_ASSIGN(Value list, in.make_list(std::move(one)));
    batches.push_back(std::move(list));
  }
  return Value::iterator("generator", std::move(batches));
}

Result<Value> slice(Interpreter& in, const Value& input, CallArgs args) {
  Parameters p("slice", {"slices", "fill_with"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const int64_t count, p.integer(0, 1));
  if (count < 1 || count > in.options().limits.range_items)
    return value_error("slice needs a positive number");
  DECANT_ASSIGN(const auto items, iterate(input));
  const auto n = static_cast<size_t>(count);
  const size_t longer = items.size() % n;
  std::vector<Value> slices;
  size_t next = 0;
  for (size_t i = 0; i < n; ++i) {
    std::vector<Value> one;
    for (size_t k = items.size() / n + (i < longer ? 1 : 0); k > 0; --k) one.push_back(items[next++]);
    if (p.has(1) && !p[1].is_none() && i >= longer) one.push_back(p[1]);
    DECANT_ASSIGN(Value list, in.make_list(std::move(one)));
    slices.push_back(std::move(list));
  }
  return Value::iterator("generator", std::move(slices));
}

constexpr FilterEntry kFilters[] = {
    {"batch", batch},      {"count", length}, {"dictsort", dict_sort}, {"first", first},
    {"groupby", group_by}, {"items", items},  {"join", join},          {"last", last},
    {"length", length},    {"list", list},    {"max", extreme<true>},  {"min", extreme<false>},
    {"reverse", reverse},  {"slice", slice},  {"sort", sort},          {"sum", sum},
    {"unique", unique},
};

}  // namespace

std::span<const FilterEntry> sequence_filters() { return kFilters; }

}  // namespace decant::text
