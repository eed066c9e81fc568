#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <optional>
#include <utility>

#include "decant/run_options.h"
#include "decant/status.h"
#include "decant/types.h"

namespace decant::python {

namespace nb = nanobind;

/// A failed call on its way to Python, where it becomes the exception of decant.errors for its code.
class Failure : public std::exception {
 public:
  explicit Failure(Status status) : status_(std::move(status)) {}
  const Status& status() const { return status_; }
  const char* what() const noexcept override { return status_.message().c_str(); }

 private:
  Status status_;
};

inline void check(Status status) {
  if (!status.ok()) throw Failure(std::move(status));
}

template <typename T>
T unwrap(Result<T> result) {
  if (!result.ok()) throw Failure(std::move(result).status());
  return *std::move(result);
}

/// Calls `f` without the interpreter lock.
template <typename F>
auto unlocked(F&& f) {
  const nb::gil_scoped_release release;
  return f();
}

/// Limits of a run that may take so many seconds. Fails for numbers that are no time.
RunOptions limits(std::optional<double> seconds);

/// (name, dtype, dims or None); a dim is an int or an expression.
nb::tuple describe(const TensorInfo& info);

void bind_errors(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_model(nb::module_& m);
void bind_text(nb::module_& m);

}  // namespace decant::python
