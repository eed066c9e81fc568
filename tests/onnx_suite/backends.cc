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

std::vector<ir::Datum> data_of(const Values& values) {
  std::vector<ir::Datum> out;
  for (const TestValue& v : values) {
    if (v.kind == TestValue::Kind::kTensor) {
      out.emplace_back(v.tensors[0]);
    } else if (v.kind == TestValue::Kind::kSequence) {
      out.push_back(ir::Datum::sequence(v.tensors));
    } else {
      out.emplace_back();
    }
  }
  return out;
}

TestValue value_of(const ir::Datum& datum) {
  TestValue value;
  if (datum.is_tensor()) {
    value.tensors.push_back(datum.tensor());
  } else if (datum.is_sequence()) {
    value.kind = TestValue::Kind::kSequence;
    value.tensors = datum.items();
  } else {
    value.kind = TestValue::Kind::kNone;
  }
  return value;
}

Result<Runner> prepare_reference(const std::string& path) {
  DECANT_ASSIGN(auto read, onnx::read_model(path));
  std::shared_ptr<ir::Graph> graph = std::move(read);
  DECANT_RETURN_IF_ERROR(ir::infer_types(*graph));
  return Runner([graph](const Values& inputs) -> Result<Values> {
    DECANT_ASSIGN(const auto results, ir::evaluate_graph_data(*graph, data_of(inputs)));
    Values out;
    for (const ir::Datum& d : results) out.push_back(value_of(d));
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
    DECANT_RETURN_IF_ERROR(plan->run_data(data_of(inputs)));
    Values out;
    for (size_t i = 0; i < output_count; ++i) {
      DECANT_ASSIGN(const ir::Datum output, plan->output_datum(i));
      out.push_back(value_of(output));
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
