#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template/value.h"

namespace decant::text {

class Interpreter;

/// Arguments of a call as they were written: by position, then by name.
struct CallArgs {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  /// Takes a named argument out; null when it was not given.
  bool take(std::string_view name, Value& out);
};

/// Something a template can call. Lives at most as long as the render that made it.
class Callable {
 public:
  virtual ~Callable() = default;
  virtual std::string_view type_name() const { return "builtin_function_or_method"; }
  virtual std::string_view name() const = 0;
  virtual Result<Value> call(Interpreter& interpreter, CallArgs args) = 0;
};

/// Sorts arguments into the named parameters of a built-in function. Missing ones stay unset.
///
///   Parameters p("replace", {"old", "new", "count"}, 2);
///   DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
class Parameters {
 public:
  Parameters(std::string_view function, std::initializer_list<std::string_view> names, size_t required = 0);

  /// TypeError for too many, unknown, doubled or missing arguments.
  Status bind(CallArgs args);

  bool has(size_t i) const { return set_[i]; }
  const Value& operator[](size_t i) const { return values_[i]; }
  /// The argument, or `otherwise` when it was not given.
  Value get(size_t i, Value otherwise) const { return set_[i] ? values_[i] : std::move(otherwise); }
  bool flag(size_t i, bool otherwise) const { return set_[i] ? truthy(values_[i]) : otherwise; }
  Result<int64_t> integer(size_t i, int64_t otherwise) const;
  Result<std::string_view> text(size_t i, std::string_view otherwise = {}) const;

 private:
  std::string_view function_;
  std::vector<std::string_view> names_;
  size_t required_;
  std::vector<Value> values_;
  std::vector<bool> set_;
};

/// A plain function of the engine as a value.
Value make_function(std::string_view name, std::function<Result<Value>(Interpreter&, CallArgs)> body);

}  // namespace decant::text
