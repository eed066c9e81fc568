#include "backends.h"

#include <functional>

#include <fmt/format.h>

#include "formats/onnx/reader.h"
#include "ir/op.h"
#include "passes/passes.h"
#include "runtime/plan.h"

namespace decant::suite {
namespace {

using Values = std::vector<TestValue>;
using Runner = std::function<Result<Values>(const Values&)>;

Result<std::vector<ir::Tensor>> tensors_of(const Values& values) {
  std::vector<ir::Tensor> out;
  for (const TestValue& v : values) {
    if (v.kind != TestValue::Kind::kTensor) return unsupported("sequences and optionals as inputs");
    out.push_back(v.tensors[0]);
  }
  return out;
}

TestValue value_of(ir::Tensor tensor) {
  TestValue value;
  value.tensors.push_back(std::move(tensor));
  return value;
}

Result<Runner> prepare_reference(const std::string& path) {
  DECANT_ASSIGN(auto read, onnx::read_model(path));
  std::shared_ptr<ir::Graph> graph = std::move(read);
  DECANT_RETURN_IF_ERROR(ir::infer_types(*graph));
  return Runner([graph](const Values& inputs) -> Result<Values> {
    DECANT_ASSIGN(const auto tensors, tensors_of(inputs));
    DECANT_ASSIGN(auto results, ir::evaluate_graph(*graph, tensors));
    Values out;
    for (ir::Tensor& t : results) out.push_back(value_of(std::move(t)));
    return out;
  });
}

Result<Runner> prepare_cpu(const std::string& path) {
  DECANT_ASSIGN(auto graph, onnx::read_model(path));
  DECANT_RETURN_IF_ERROR(passes::optimize_for_forward(*graph));
  const size_t output_count = graph->outputs().size();
  DECANT_ASSIGN(auto engine, runtime::Engine::create(1, ""));
  runtime::PlanOptions options;
  options.states_in_place = false;  // inputs are mapped files
  DECANT_ASSIGN(auto compiled, runtime::Plan::compile(std::move(graph), engine, options));
  std::shared_ptr<runtime::Plan> plan = std::move(compiled);
  return Runner([plan, output_count](const Values& inputs) -> Result<Values> {
    DECANT_ASSIGN(const auto tensors, tensors_of(inputs));
    std::vector<runtime::Arg> args;
    for (const ir::Tensor& t : tensors) {
      args.push_back({t.dtype(), const_cast<void*>(t.data()), t.dims().data(), static_cast<int32_t>(t.rank()),
                      t.elements()});
    }
    DECANT_RETURN_IF_ERROR(plan->run(args));
    Values out;
    for (size_t i = 0; i < output_count; ++i) {
      const runtime::Arg& o = plan->output(i);
      out.push_back(value_of(ir::Tensor::view(o.dtype, {o.dims, o.dims + o.rank}, o.data, nullptr)));
    }
    return out;
  });
}

Outcome failed(std::string_view stage, const Status& status) {
  const bool unsupported = stage == "load" && status.code() == StatusCode::kUnsupported;
  return {unsupported ? Outcome::Result::kUnsupported : Outcome::Result::kFailed,
          fmt::format("{}: {}", stage, status.to_string())};
}

}  // namespace

Outcome run_case(const std::string& folder, const std::string& backend) {
  const std::string path = folder + "/model.onnx";
  auto runner = backend == "cpu" ? prepare_cpu(path) : prepare_reference(path);
  if (!runner.ok()) return failed("load", runner.status());
  const auto test = read_case(folder);
  if (!test.ok()) return failed("data", test.status());
  for (size_t s = 0; s < test->sets.size(); ++s) {
    const auto outputs = (*runner)(test->sets[s].inputs);
    if (!outputs.ok()) return failed("run", outputs.status());
    const auto& expected = test->sets[s].outputs;
    if (outputs->size() != expected.size()) {
      return {Outcome::Result::kFailed,
              fmt::format("compare: {} outputs, expected {}", outputs->size(), expected.size())};
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      if (auto d = difference((*outputs)[i], expected[i], test->rtol, test->atol)) {
        return {Outcome::Result::kFailed, fmt::format("compare: set {}, output {} {}", s, i, *d)};
      }
    }
  }
  return {Outcome::Result::kPassed, ""};
}

}  // namespace decant::suite
