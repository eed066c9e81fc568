#include <algorithm>

#include "text/template/errors.h"
#include "text/template/filters.h"
#include "text/template/interpreter.h"
#include "text/template/members.h"

namespace decant::text {
namespace {

// Applies `step` to each item; what comes out so far, and an error behind it, make an iterator. Python's
// generators raise when they are read, not when they are made.
template <typename Step>
Result<Value> generate(Interpreter& in, const Value& input, Step step) {
  std::vector<Value> out;
  if (!truthy(input) && !input.is_undefined()) return Value::iterator("generator", {});
  auto items = iterate(input);
  if (!items.ok()) return Value::iterator("generator", {}, items.status());
  for (Value& item : *items) {
    DECANT_RETURN_IF_ERROR(in.charge_steps(1));
    Status status = step(item, out);
    if (!status.ok()) return Value::iterator("generator", std::move(out), std::move(status));
  }
  DECANT_RETURN_IF_ERROR(in.charge_bytes(out.size() * sizeof(Value)));
  return Value::iterator("generator", std::move(out));
}

Result<Value> map(Interpreter& in, const Value& input, CallArgs args) {
  Value path;
  Value otherwise = Value::undefined("");
  if (args.positional.empty() && args.take("attribute", path)) {
    const bool has_default = args.take("default", otherwise);
    if (!args.named.empty()) {
      return raise("FilterArgumentError", "Unexpected keyword argument '" + args.named[0].first + "'");
    }
    return generate(in, input, [&](const Value& item, std::vector<Value>& out) -> Status {
      DECANT_ASSIGN(Value v, follow_path(in, item, path));
      out.push_back(has_default && v.is_undefined() ? otherwise : std::move(v));
      return ok_status();
    });
  }
  if (args.positional.empty() || !args.positional[0].is_string()) {
    return raise("FilterArgumentError", "map requires a filter argument");
  }
  const std::string filter(args.positional[0].as_string());
  args.positional.erase(args.positional.begin());
  return generate(in, input, [&](const Value& item, std::vector<Value>& out) -> Status {
    DECANT_ASSIGN(Value v, in.apply_filter(filter, item, args));
    out.push_back(std::move(v));
    return ok_status();
  });
}

template <bool kKeep, bool kByAttribute>
Result<Value> select(Interpreter& in, const Value& input, CallArgs args) {
  Value path;
  if (kByAttribute) {
    if (args.positional.empty()) return raise("FilterArgumentError", "Missing parameter for attribute name");
    path = args.positional[0];
    args.positional.erase(args.positional.begin());
  }
  std::string test;
  if (!args.positional.empty()) {
    if (!args.positional[0].is_string()) return type_error("the test's name must be a text");
    test = args.positional[0].as_string();
    args.positional.erase(args.positional.begin());
  }
  return generate(in, input, [&](const Value& item, std::vector<Value>& out) -> Status {
    Value subject = item;
    if (kByAttribute) {
      DECANT_ASSIGN(subject, follow_path(in, item, path));
    }
    bool holds = truthy(subject);
    if (!test.empty()) {
      DECANT_ASSIGN(holds, in.apply_test(test, subject, args));
    }
    if (holds == kKeep) out.push_back(item);
    return ok_status();
  });
}

constexpr FilterEntry kFilters[] = {
    {"map", map},
    {"reject", select<false, false>},
    {"rejectattr", select<false, true>},
    {"select", select<true, false>},
    {"selectattr", select<true, true>},
};

}  // namespace

std::span<const FilterEntry> selection_filters() { return kFilters; }

}  // namespace decant::text
