#include "text/template/callable.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "text/template/errors.h"

namespace decant::text {
namespace {

class Function : public Callable {
 public:
  Function(std::string_view name, std::function<Result<Value>(Interpreter&, CallArgs)> body)
      : name_(name), body_(std::move(body)) {}
  std::string_view name() const override { return name_; }
  Result<Value> call(Interpreter& interpreter, CallArgs args) override {
    return body_(interpreter, std::move(args));
  }

 private:
  std::string name_;
  std::function<Result<Value>(Interpreter&, CallArgs)> body_;
};

}  // namespace

bool CallArgs::take(std::string_view name, Value& out) {
  const auto it = std::find_if(named.begin(), named.end(), [&](const auto& n) { return n.first == name; });
  if (it == named.end()) return false;
  out = std::move(it->second);
  named.erase(it);
  return true;
}

Parameters::Parameters(std::string_view function, std::initializer_list<std::string_view> names,
                       size_t required)
    : function_(function),
      names_(names),
      required_(required),
      values_(names.size()),
      set_(names.size(), false) {}

Status Parameters::bind(CallArgs args) {
  if (args.positional.size() > names_.size()) {
    return type_error(fmt::format("{}() takes at most {} arguments ({} given)", function_, names_.size(),
                                  args.positional.size()));
  }
  for (size_t i = 0; i < args.positional.size(); ++i) {
    values_[i] = std::move(args.positional[i]);
    set_[i] = true;
  }
  for (auto& [name, value] : args.named) {
    const auto it = std::find(names_.begin(), names_.end(), name);
    if (it == names_.end()) {
      return type_error(fmt::format("{}() got an unexpected keyword argument '{}'", function_, name));
    }
    const auto i = static_cast<size_t>(it - names_.begin());
    if (set_[i])
      return type_error(fmt::format("{}() got multiple values for argument '{}'", function_, name));
    values_[i] = std::move(value);
    set_[i] = true;
  }
  for (size_t i = 0; i < required_; ++i) {
    if (!set_[i]) {
      return type_error(
          fmt::format("{}() missing 1 required positional argument: '{}'", function_, names_[i]));
    }
  }
  return ok_status();
}

Result<int64_t> Parameters::integer(size_t i, int64_t otherwise) const {
  if (!set_[i]) return otherwise;
  if (values_[i].is_integral()) return values_[i].as_int();
  return type_error(fmt::format("'{}' object cannot be interpreted as an integer", values_[i].type_name()));
}

Result<std::string_view> Parameters::text(size_t i, std::string_view otherwise) const {
  if (!set_[i]) return otherwise;
  if (values_[i].is_string()) return values_[i].as_string();
  if (values_[i].is_undefined()) return raise(values_[i].undefined_kind(), values_[i].undefined_message());
  return type_error(
      fmt::format("{}() argument {} must be str, not {}", function_, i + 1, values_[i].type_name()));
}

Value make_function(std::string_view name, std::function<Result<Value>(Interpreter&, CallArgs)> body) {
  return Value::callable(std::make_shared<Function>(name, std::move(body)));
}

}  // namespace decant::text
