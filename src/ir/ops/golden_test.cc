// Compares type inference and reference kernels with the node cases of the ONNX backend test suite
// (testdata/ops/goldens.bin, written by scripts/make_op_goldens.py).

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "ir/op.h"
#include "ir/ops/elements.h"

namespace decant::ir {
namespace {

struct Case {
  std::string name, op;
  std::map<std::string, Attribute, std::less<>> attributes;
  std::vector<std::optional<Tensor>> inputs, outputs;
};

class Reader {
 public:
  explicit Reader(std::string data) : data_(std::move(data)) {}
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, data_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string bytes(size_t n) {
    std::string out = data_.substr(at_, n);
    at_ += n;
    return out;
  }
  std::string text() { return bytes(number<uint16_t>()); }
  Tensor tensor() {
    const DType dtype = dtype_from_onnx_code(number<uint8_t>());
    std::vector<int64_t> dims(number<uint8_t>());
    for (int64_t& d : dims) d = number<int64_t>();
    Tensor out = *Tensor::allocate(dtype, dims);
    const std::string raw = bytes(out.bytes());
    if (!raw.empty()) std::memcpy(out.mutable_data(), raw.data(), raw.size());
    return out;
  }
  template <typename T>
  std::vector<T> list() {
    std::vector<T> out(number<uint16_t>());
    for (T& v : out) v = number<T>();
    return out;
  }
  Attribute attribute() {
    switch (number<uint8_t>()) {
      case 0:
        return number<int64_t>();
      case 1:
        return number<float>();
      case 2:
        return text();
      case 3:
        return list<int64_t>();
      case 4:
        return list<float>();
      case 6: {
        std::vector<std::string> out(number<uint16_t>());
        for (std::string& s : out) s = text();
        return out;
      }
      default:
        return Constant::from_tensor(tensor());
    }
  }
  std::vector<std::optional<Tensor>> slots() {
    std::vector<std::optional<Tensor>> out(number<uint8_t>());
    for (auto& slot : out) {
      if (number<uint8_t>() != 0) slot = tensor();
    }
    return out;
  }

 private:
  std::string data_;
  size_t at_ = 0;
};

std::vector<Case> read_cases() {
  const char* other = std::getenv("DECANT_GOLDENS");  // a larger file, for work on operators
  std::ifstream file(other != nullptr ? other : DECANT_SOURCE_DIR "/testdata/ops/goldens.bin",
                     std::ios::binary);
  Reader reader(std::string(std::istreambuf_iterator<char>(file), {}));
  if (reader.bytes(7) != "DGOLD1\n") return {};
  std::vector<Case> cases(reader.number<uint32_t>());
  for (Case& c : cases) {
    c.name = reader.text();
    c.op = reader.text();
    for (int n = reader.number<uint8_t>(); n > 0; --n) {
      std::string key = reader.text();
      c.attributes[std::move(key)] = reader.attribute();
    }
    c.inputs = reader.slots();
    c.outputs = reader.slots();
  }
  return cases;
}

/// What decant leaves out on purpose, with the reason.
bool is_left_out(const Case& c) {
  return c.op == "Bernoulli";  // random numbers: random_test.cc
}

struct Tolerance {
  double relative, absolute;
};

Tolerance tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {4e-3, 2e-3};
    case DType::kBFloat16:
      return {2e-2, 2e-2};
    case DType::kFloat32:
      return {1e-5, 2e-6};
    case DType::kFloat64:
      return {1e-6, 1e-7};  // some cases round through float32
    default:
      return {0, 0};
  }
}

std::string compare(const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype() || got.dims() != want.dims())
    return describe(got) + ", not " + describe(want);
  const Tolerance t = tolerance(want.dtype());
  for (int64_t i = 0; i < want.elements(); ++i) {
    const bool exact = !is_float(want.dtype());
    const double a = got.double_at(i), b = want.double_at(i);
    const bool same = exact ? got.int_at(i) == want.int_at(i)
                            : a == b || (std::isnan(a) && std::isnan(b)) ||
                                  std::fabs(a - b) <= t.absolute + t.relative * std::fabs(b);
    if (!same)
      return "element " + std::to_string(i) + " is " + std::to_string(a) + ", not " + std::to_string(b);
  }
  return "";
}

/// A one-node graph. `symbolic`: float inputs become graph inputs whose dims over 1 are symbols named by
/// their size.
std::unique_ptr<Graph> build(const Case& c, bool symbolic, bool constants) {
  auto graph = std::make_unique<Graph>();
  std::vector<Value*> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (!c.inputs[i]) {
      inputs.push_back(nullptr);
      continue;
    }
    const Tensor& t = *c.inputs[i];
    const std::string name = "x" + std::to_string(i);
    if (constants || (symbolic && !is_float(t.dtype()))) {
      inputs.push_back(graph->add_constant(name, Constant::from_tensor(t)));
      continue;
    }
    Shape shape;
    for (int64_t d : t.dims())
      shape.push_back(symbolic && d > 1 ? Dim::symbol("n" + std::to_string(d)) : Dim(d));
    inputs.push_back(graph->add_input(name, t.dtype(), shape));
  }
  Node* node = graph->add_node(c.op, inputs, c.outputs.size(), "node");
  node->attributes = c.attributes;
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    if (c.outputs[i])
      graph->add_output(node->output(i));
    else
      graph->drop_node_output(node, i);
  }
  return graph;
}

/// Whether inference agrees with the real outputs; symbols "nK" stand for K, others are free.
std::string check_types(const Case& c, Graph& graph) {
  if (Status s = infer_types(graph); !s.ok()) return s.to_string();
  const Node& node = *graph.nodes()[0];
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    if (!c.outputs[i]) continue;
    const Value& v = *node.output(i);
    const Tensor& want = *c.outputs[i];
    if (v.dtype != want.dtype())
      return "inferred " + std::string(to_string(v.dtype)) + " for " + describe(want);
    const auto lookup = [](const std::string& name) -> std::optional<int64_t> {
      if (name.size() < 2 || name[0] != 'n' || name.find_first_not_of("0123456789", 1) != std::string::npos)
        return {};
      return std::stoll(name.substr(1));
    };
    if (v.shape && v.shape->size() != want.rank())
      return "inferred " + to_string(*v.shape) + " for " + describe(want);
    for (size_t d = 0; v.shape && d < want.rank(); ++d) {
      const auto value = (*v.shape)[d].evaluate(lookup);
      if (value.ok() && *value != want.dims()[d])
        return "inferred " + to_string(*v.shape) + " for " + describe(want);
    }
    if (!v.elements) continue;
    if (static_cast<int64_t>(v.elements->size()) != want.elements())
      return "wrong number of symbolic elements";
    for (int64_t e = 0; e < want.elements(); ++e) {
      const auto value = (*v.elements)[static_cast<size_t>(e)].evaluate(lookup);
      if (value.ok() && *value != want.int_at(e)) return "wrong symbolic element " + std::to_string(e);
    }
  }
  return "";
}

TEST(OpGoldens, TypesAndKernelsAgreeWithOnnx) {
  const std::vector<Case> cases = read_cases();
  ASSERT_GT(cases.size(), 600u);
  std::set<std::string> ops;
  int compared = 0;
  for (const Case& c : cases) {
    if (is_left_out(c)) continue;
    SCOPED_TRACE(c.name);
    ops.insert(c.op);
    ++compared;
    for (int form = 0; form < 3; ++form) {
      auto graph = build(c, form == 1, form == 2);
      const std::string problem = check_types(c, *graph);
      EXPECT_EQ(problem, "") << c.name << " types, form " << form;
    }
    auto graph = build(c, false, false);
    std::vector<const Tensor*> inputs;
    for (const auto& t : c.inputs) inputs.push_back(t ? &*t : nullptr);
    const auto results = evaluate_node(*graph->nodes()[0], inputs);
    if (!results.ok()) {
      ADD_FAILURE() << c.name << ": " << results.status().to_string();
      continue;
    }
    ASSERT_EQ(results->size(), c.outputs.size()) << c.name;
    for (size_t i = 0; i < c.outputs.size(); ++i) {
      if (!c.outputs[i]) continue;
      EXPECT_EQ(compare((*results)[i], *c.outputs[i]), "") << c.name << " output " << i;
    }
  }
  RecordProperty("cases", compared);
  RecordProperty("ops", static_cast<int>(ops.size()));
  std::printf("%d cases of %zu operators compared\n", compared, ops.size());
}

}  // namespace
}  // namespace decant::ir
