#include "suite_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "formats/onnx/messages.h"
#include "formats/onnx/tensor_loader.h"

namespace decant::suite {
namespace {

namespace fs = std::filesystem;

Result<ir::Tensor> tensor_from(onnx::Bytes bytes, const std::shared_ptr<const MappedFile>& file) {
  onnx::ParseContext context;
  context.base = file->bytes().data();
  DECANT_ASSIGN(const onnx::TensorMessage message, onnx::parse_tensor(context, bytes));
  onnx::TensorLoader loader(file, "");
  DECANT_ASSIGN(const ir::ConstantPtr constant, loader.load(message));
  return constant->materialize();
}

/// The bytes of field `wanted` of a message, each time it occurs.
Result<std::vector<onnx::Bytes>> fields(onnx::Bytes bytes, uint32_t wanted) {
  onnx::ParseContext context;
  context.base = bytes.data();
  onnx::WireReader reader(context, bytes);
  std::vector<onnx::Bytes> out;
  while (reader.next()) {
    if (reader.field() == wanted) {
      out.push_back(reader.bytes());
    } else {
      reader.skip();
    }
  }
  DECANT_RETURN_IF_ERROR(reader.status());
  return out;
}

/// SequenceProto: field 3 has its tensors.
Result<TestValue> sequence_from(onnx::Bytes bytes, const std::shared_ptr<const MappedFile>& file) {
  TestValue value;
  value.kind = TestValue::Kind::kSequence;
  DECANT_ASSIGN(const auto tensors, fields(bytes, 3));
  for (const onnx::Bytes& t : tensors) {
    DECANT_ASSIGN(ir::Tensor tensor, tensor_from(t, file));
    value.tensors.push_back(std::move(tensor));
  }
  return value;
}

/// OptionalProto: field 3 is a tensor, field 5 a sequence; neither: no value.
Result<TestValue> optional_from(onnx::Bytes bytes, const std::shared_ptr<const MappedFile>& file) {
  DECANT_ASSIGN(const auto tensors, fields(bytes, 3));
  DECANT_ASSIGN(const auto sequences, fields(bytes, 5));
  TestValue value;
  if (!sequences.empty()) return sequence_from(sequences[0], file);
  if (tensors.empty()) {
    value.kind = TestValue::Kind::kNone;
    return value;
  }
  DECANT_ASSIGN(ir::Tensor tensor, tensor_from(tensors[0], file));
  value.tensors.push_back(std::move(tensor));
  return value;
}

Result<TestValue> read_value(const std::string& path, std::string_view kind) {
  DECANT_ASSIGN(const auto file, MappedFile::open(path));
  if (kind == "sequence") return sequence_from(file->bytes(), file);
  if (kind == "optional" || kind == "optional sequence") return optional_from(file->bytes(), file);
  if (kind != "tensor") return unsupported(fmt::format("values of kind {}", kind));
  DECANT_ASSIGN(ir::Tensor tensor, tensor_from(file->bytes(), file));
  TestValue value;
  value.tensors.push_back(std::move(tensor));
  return value;
}

Result<std::vector<TestValue>> read_values(const fs::path& folder, std::string_view role,
                                           const std::vector<onnx::ValueMessage>& declared) {
  std::vector<TestValue> out;
  for (size_t i = 0; i < declared.size(); ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", role, i);
    if (!fs::exists(path)) break;
    auto value = read_value(path.string(), declared[i].kind);
    if (!value.ok()) return std::move(value).status().with_context(path.filename().string());
    out.push_back(*std::move(value));
  }
  return out;
}

std::optional<std::string> difference(const ir::Tensor& actual, const ir::Tensor& expected, double rtol,
                                      double atol) {
  if (actual.dtype() != expected.dtype() || actual.dims() != expected.dims()) {
    return fmt::format("is {}, expected {}", ir::describe(actual), ir::describe(expected));
  }
  // Half types: at least two units in the last place, which is where the order of roundings shows.
  if (expected.dtype() == DType::kBFloat16) rtol = std::max(rtol, std::ldexp(1.0, -6));
  if (expected.dtype() == DType::kFloat16) rtol = std::max(rtol, std::ldexp(1.0, -9));
  // A sum that should be zero is left with rounding errors of its terms: four units of the largest element.
  if (expected.dtype() == DType::kFloat32) {
    double largest = 0;
    for (int64_t i = 0; i < expected.elements(); ++i) {
      const double e = std::fabs(expected.double_at(i));
      if (std::isfinite(e)) largest = std::max(largest, e);
    }
    atol = std::max(atol, std::ldexp(largest, -21));
  }
  const bool is_complex = expected.dtype() == DType::kComplex64 || expected.dtype() == DType::kComplex128;
  if (is_complex && std::memcmp(actual.data(), expected.data(), expected.bytes()) != 0)
    return "has other complex numbers than expected";
  for (int64_t i = 0; i < expected.elements() && !is_complex; ++i) {
    if (expected.dtype() == DType::kString) {
      if (actual.string_at(i) == expected.string_at(i)) continue;
      return fmt::format("element {} is '{}', expected '{}'", i, actual.string_at(i), expected.string_at(i));
    }
    if (!is_float(expected.dtype()) && !is_small_float(expected.dtype())) {
      if (actual.int_at(i) == expected.int_at(i)) continue;
      return fmt::format("element {} is {}, expected {}", i, actual.int_at(i), expected.int_at(i));
    }
    const double a = actual.double_at(i), e = expected.double_at(i);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    if (!is_float(expected.dtype())) return fmt::format("element {} is {}, expected {}", i, a, e);
    if (std::isfinite(a) && std::isfinite(e) && std::fabs(a - e) <= atol + rtol * std::fabs(e)) continue;
    return fmt::format("element {} is {}, expected {}", i, a, e);
  }
  return std::nullopt;
}

}  // namespace

Result<SuiteCase> read_case(const std::string& folder) {
  SuiteCase out;
  out.folder = folder;
  const fs::path root(folder);
  if (std::ifstream json(root / "data.json"); json) {
    const auto data = nlohmann::json::parse(json, nullptr, false);
    if (!data.is_object()) return invalid_argument("data.json is no JSON object");
    out.rtol = data.value("rtol", out.rtol);
    out.atol = data.value("atol", out.atol);
  }
  DECANT_ASSIGN(const auto file, MappedFile::open((root / "model.onnx").string()));
  onnx::ParseContext context;
  context.base = file->bytes().data();
  DECANT_ASSIGN(const onnx::ModelMessage model, onnx::parse_model(context, file->bytes()));
  if (!model.graph) return invalid_argument("the model has no graph");
  DECANT_ASSIGN(const onnx::GraphMessage graph, onnx::parse_graph(context, *model.graph));
  for (int i = 0; fs::is_directory(root / fmt::format("test_data_set_{}", i)); ++i) {
    const fs::path set_folder = root / fmt::format("test_data_set_{}", i);
    DataSet set;
    DECANT_ASSIGN(set.inputs, read_values(set_folder, "input", graph.inputs));
    DECANT_ASSIGN(set.outputs, read_values(set_folder, "output", graph.outputs));
    out.sets.push_back(std::move(set));
  }
  if (out.sets.empty()) return invalid_argument("the case has no data");
  return out;
}

std::optional<std::string> difference(const TestValue& actual, const TestValue& expected, double rtol,
                                      double atol) {
  if (actual.kind != expected.kind) return "is of another kind than expected";
  if (actual.tensors.size() != expected.tensors.size()) {
    return fmt::format("has {} elements, expected {}", actual.tensors.size(), expected.tensors.size());
  }
  for (size_t i = 0; i < expected.tensors.size(); ++i) {
    if (auto d = difference(actual.tensors[i], expected.tensors[i], rtol, atol)) return d;
  }
  return std::nullopt;
}

}  // namespace decant::suite
