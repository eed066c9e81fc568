#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>

#include "bindings.h"
#include "cli/run.h"
#include "decant/version.h"

namespace decant::python {
namespace {

int run_command(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return unlocked([&] { return cli::run(static_cast<int>(argv.size()), argv.data()); });
}

}  // namespace

RunOptions limits(std::optional<double> seconds) {
  if (!seconds) return {};
  if (!(*seconds >= 0)) throw Failure(invalid_argument("a timeout is a number of seconds, zero or more"));
  constexpr double kLongest = 1e9;  // a double of seconds beyond the clock's range has no duration
  if (*seconds > kLongest) return {};
  return RunOptions::within(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(*seconds)));
}

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& raised, void*) {
    try {
      std::rethrow_exception(raised);
    } catch (const Failure& failure) {
      const std::string code(to_string(failure.status().code()));
      const nb::object error =
          nb::module_::import_("decant.errors").attr("from_code")(code, failure.status().message());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    }
  });
}

NB_MODULE(_native, m) {
  nb::set_leak_warnings(false);  // what is alive when the interpreter ends is no fault
  m.attr("__version__") = std::string(version());
  m.def("run_command", &run_command, nb::arg("arguments"));
  bind_errors(m);
  bind_tensor(m);
  bind_model(m);
  bind_text(m);
}

}  // namespace decant::python
