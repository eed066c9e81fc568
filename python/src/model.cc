#include "decant/model.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <memory>
#include <mutex>

#include "bindings.h"
#include "decant/compiled_model.h"

namespace decant::python {

nb::tuple describe(const TensorInfo& info) {
  nb::object dims = nb::none();
  if (info.type.dims) {
    nb::list list;
    for (const Dim& d : *info.type.dims) {
      if (d.size >= 0) {
        list.append(d.size);
      } else {
        list.append(d.symbol);
      }
    }
    dims = nb::tuple(list);
  }
  return nb::make_tuple(info.name, std::string(to_string(info.type.dtype)), dims);
}

namespace {

using Tensors = std::map<std::string, Tensor>;

nb::list describe_all(std::span<const TensorInfo> infos) {
  nb::list out;
  for (const TensorInfo& info : infos) out.append(describe(info));
  return out;
}

NamedTensors named(const Tensors& tensors) { return {tensors.begin(), tensors.end()}; }

Tensors result(NamedTensors tensors) {
  return {std::make_move_iterator(tensors.begin()), std::make_move_iterator(tensors.end())};
}

/// A compiled model whose runs, copies of results included, take turns.
struct Compiled {
  CompiledModel model;
  std::shared_ptr<std::mutex> running = std::make_shared<std::mutex>();
};

struct Bound {
  Binding binding;
  std::shared_ptr<std::mutex> running;
  std::vector<TensorInfo> outputs;
  std::map<std::string, bool> own;  ///< outputs that have a tensor of the caller's
};

/// Calls a Python function from any thread. What it raises goes to sys.unraisablehook: there is no one to
/// catch it.
std::function<void(int64_t, int64_t)> progress(nb::object function) {
  const std::shared_ptr<nb::object> held(new nb::object(std::move(function)), [](nb::object* object) {
    const nb::gil_scoped_acquire lock;
    delete object;
  });
  return [held](int64_t done, int64_t total) {
    const nb::gil_scoped_acquire lock;
    try {
      (*held)(done, total);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("on_download");
    }
  };
}

Model load(const std::string& path, const std::string& component, const std::string& dtype, int threads,
           const std::string& isa, nb::object on_download) {
  LoadOptions options;
  options.component = component;
  options.dtype = dtype;
  options.threads = threads;
  options.isa = isa;
  if (!on_download.is_none()) options.on_download = progress(std::move(on_download));
  return unlocked([&] { return unwrap(Model::load(path, options)); });
}

Compiled compile(const Model& model, std::vector<std::string> static_inputs,
                 std::map<std::string, std::vector<int64_t>> example_shapes, bool fixed_caches,
                 size_t max_plans) {
  CompileOptions options;
  options.static_inputs = std::move(static_inputs);
  options.example_shapes = std::move(example_shapes);
  options.fixed_caches = fixed_caches;
  options.max_plans = max_plans;
  return unlocked([&] { return Compiled{unwrap(model.compile(options))}; });
}

Bound bind(const Compiled& compiled) {
  const auto outputs = compiled.model.outputs();
  return {compiled.model.bind(), compiled.running, {outputs.begin(), outputs.end()}, {}};
}

/// Runs, and copies the outputs that lie in the plan's memory.
Tensors run_bound(Bound& bound, std::optional<double> timeout) {
  const RunOptions options = limits(timeout);
  return unlocked([&] {
    const std::lock_guard lock(*bound.running);
    check(bound.binding.run(options));
    Tensors out;
    for (const TensorInfo& info : bound.outputs) {
      if (bound.own[info.name]) continue;
      const TensorView v = bound.binding.output(info.name);
      const size_t bytes = bytes_of(v.dtype, static_cast<uint64_t>(v.elements)).value_or(0);
      out.emplace(info.name,
                  unwrap(Tensor::copy_bytes(v.dtype, {v.dims.begin(), v.dims.end()}, v.data, bytes)));
    }
    return out;
  });
}

}  // namespace

void bind_model(nb::module_& m) {
  nb::class_<Model>(m, "Model")
      .def_static("load", &load, nb::arg("path"), nb::arg("component"), nb::arg("dtype"), nb::arg("threads"),
                  nb::arg("isa"), nb::arg("on_download").none())
      .def_prop_ro("layout", [](const Model& model) { return model.layout(); })
      .def_prop_ro("inputs", [](const Model& model) { return describe_all(model.inputs()); })
      .def_prop_ro("outputs", [](const Model& model) { return describe_all(model.outputs()); })
      .def(
          "run",
          [](const Model& model, const Tensors& inputs, std::optional<double> timeout) {
            const RunOptions options = limits(timeout);
            return unlocked([&] { return result(unwrap(model.run(named(inputs), options))); });
          },
          nb::arg("inputs"), nb::arg("timeout").none())
      .def("compile", &compile, nb::arg("static_inputs"), nb::arg("example_shapes"), nb::arg("fixed_caches"),
           nb::arg("max_plans"));

  nb::class_<Compiled>(m, "CompiledModel")
      .def_prop_ro("inputs", [](const Compiled& c) { return describe_all(c.model.inputs()); })
      .def_prop_ro("outputs", [](const Compiled& c) { return describe_all(c.model.outputs()); })
      .def_prop_ro("compile_count", [](const Compiled& c) { return c.model.compile_count(); })
      .def(
          "run",
          [](const Compiled& c, const Tensors& inputs, std::optional<double> timeout) {
            const RunOptions options = limits(timeout);
            return unlocked([&] {
              const std::lock_guard lock(*c.running);
              return result(unwrap(c.model.run(named(inputs), options)));
            });
          },
          nb::arg("inputs"), nb::arg("timeout").none())
      .def("bind", &bind);

  nb::class_<Bound>(m, "Binding")
      .def(
          "set_input",
          [](Bound& b, const std::string& name, const Tensor& t) { check(b.binding.set_input(name, t)); },
          nb::arg("name"), nb::arg("tensor"))
      .def(
          "set_output",
          [](Bound& b, const std::string& name, const Tensor& t) {
            check(b.binding.set_output(name, t));
            b.own[name] = true;
          },
          nb::arg("name"), nb::arg("tensor"))
      .def(
          "clear_output",
          [](Bound& b, const std::string& name) {
            check(b.binding.clear_output(name));
            b.own[name] = false;
          },
          nb::arg("name"))
      .def("run", &run_bound, nb::arg("timeout").none())
      .def(
          "in_place", [](const Bound& b, const std::string& name) { return b.binding.in_place(name); },
          nb::arg("name"));
}

}  // namespace decant::python
