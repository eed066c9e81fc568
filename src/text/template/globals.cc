#include "text/template/globals.h"

#include <fmt/format.h>

#include <memory>

#include "text/template/clock.h"
#include "text/template/errors.h"
#include "text/template/interpreter.h"
#include "text/template/repr.h"

namespace decant::text {
namespace {

// The entries dict(...) would have.
Result<std::vector<std::pair<Value, Value>>> dict_entries(CallArgs args) {
  std::vector<std::pair<Value, Value>> entries;
  if (args.positional.size() > 1) return type_error("dict expected at most 1 argument");
  if (!args.positional.empty()) {
    const Value& from = args.positional[0];
    if (from.is_dict()) {
      entries = from.entries();
    } else {
      DECANT_ASSIGN(const auto pairs, iterate(from));
      for (const Value& pair : pairs) {
        DECANT_ASSIGN(auto both, iterate(pair));
        if (both.size() != 2) return value_error("dictionary update sequence element has not length 2");
        if (!hashable(both[0])) return type_error(fmt::format("unhashable type: '{}'", both[0].type_name()));
        entries.emplace_back(std::move(both[0]), std::move(both[1]));
      }
    }
  }
  for (auto& [name, value] : args.named) entries.emplace_back(Value::string(name), std::move(value));
  return entries;
}

Result<Value> make_dict(Interpreter& in, CallArgs args) {
  DECANT_ASSIGN(auto entries, dict_entries(std::move(args)));
  DECANT_RETURN_IF_ERROR(in.charge_bytes(entries.size() * 2 * sizeof(Value)));
  return checked_dict(std::move(entries));
}

Result<Value> make_namespace(Interpreter& in, CallArgs args) {
  DECANT_ASSIGN(const Value attributes, make_dict(in, std::move(args)));
  const Value ns = in.make_namespace();
  for (const auto& [key, value] : attributes.entries()) {
    if (!key.is_string()) continue;
    if (key.as_string().starts_with('_')) {
      return security_error(
          fmt::format("Chat templates cannot store underscore-prefixed attributes on a namespace, but got "
                      "'{}'. Please rename "
                      "the attribute.",
                      key.as_string()));
    }
    ns.attributes().emplace_back(std::string(key.as_string()), value);
  }
  return ns;
}

Result<Value> make_range(Interpreter& in, CallArgs args) {
  int64_t bounds[3] = {0, 0, 1};
  const size_t n = args.positional.size();
  if (n < 1 || n > 3 || !args.named.empty())
    return type_error(fmt::format("range expected 1 to 3 arguments, got {}", n));
  for (size_t i = 0; i < n; ++i) {
    const Value& v = args.positional[i];
    if (v.is_undefined()) return raise(v.undefined_kind(), v.undefined_message());
    if (!v.is_integral())
      return type_error(fmt::format("'{}' object cannot be interpreted as an integer", v.type_name()));
    bounds[n == 1 ? 1 : i] = v.as_int();
  }
  if (bounds[2] == 0) return value_error("range() arg 3 must not be zero");
  const int64_t size = Value::Range{bounds[0], bounds[1], bounds[2]}.size();
  const int64_t limit = in.options().limits.range_items;
  if (size < 0 || size > limit) {
    return raise("OverflowError",
                 fmt::format("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", limit));
  }
  return Value::range(bounds[0], bounds[1], bounds[2]);
}

Result<Value> raise_exception(Interpreter& in, CallArgs args) {
  Parameters p("raise_exception", {"message"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const std::string text, to_text(p[0], in.options().limits.output_bytes));
  return raise("TemplateError", text);
}

Result<Value> strftime_now(Interpreter& in, CallArgs args) {
  Parameters p("strftime_now", {"format"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const std::string_view format, p.text(0));
  if (format.size() > 10'000) return limit_error("a time format of over 10000 bytes");
  return in.make_string(format_time(in.options().now ? *in.options().now : local_now(), format));
}

// joiner(sep): nothing on the first call, the separator after.
Result<Value> make_joiner(Interpreter&, CallArgs args) {
  Parameters p("joiner", {"sep"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  auto used = std::make_shared<bool>(false);
  return make_function(
      "joiner", [used, separator = p.get(0, Value::string(", "))](Interpreter&, CallArgs) -> Result<Value> {
        return std::exchange(*used, true) ? separator : Value::string("");
      });
}

// cycler(items...): a namespace of next, reset and what next gives.
Result<Value> make_cycler(Interpreter& in, CallArgs args) {
  if (args.positional.empty()) return runtime_error("at least one item has to be provided");
  const Value cycler = in.make_namespace();
  auto position = std::make_shared<size_t>(0);
  auto items = std::make_shared<std::vector<Value>>(std::move(args.positional));
  auto& attributes = cycler.attributes();
  attributes.emplace_back("current", items->front());
  // The namespace outlives its functions' calls: both end with the render, so its attributes may be held by
  // address.
  std::vector<std::pair<std::string, Value>>* const slots = &attributes;
  attributes.emplace_back("next", make_function("next", [=](Interpreter&, CallArgs) -> Result<Value> {
                            const Value now = (*items)[*position];
                            *position = (*position + 1) % items->size();
                            if (!slots->empty()) (*slots)[0].second = (*items)[*position];
                            return now;
                          }));
  attributes.emplace_back("reset", make_function("reset", [=](Interpreter&, CallArgs) -> Result<Value> {
                            *position = 0;
                            if (!slots->empty()) (*slots)[0].second = items->front();
                            return Value::none();
                          }));
  return cycler;
}

}  // namespace

const Value* find_global(std::string_view name) {
  static const std::vector<std::pair<std::string_view, Value>> kGlobals = {
      {"range", make_function("range", make_range)},
      {"dict", make_function("dict", make_dict)},
      {"namespace", make_function("namespace", make_namespace)},
      {"raise_exception", make_function("raise_exception", raise_exception)},
      {"strftime_now", make_function("strftime_now", strftime_now)},
      {"joiner", make_function("joiner", make_joiner)},
      {"cycler", make_function("cycler", make_cycler)},
  };
  for (const auto& [known, value] : kGlobals) {
    if (known == name) return &value;
  }
  return nullptr;
}

}  // namespace decant::text
