// run_model MODEL [SIZE]: describes a model, runs it once on ones (symbolic dims get SIZE, 1 unless given),
// and prints each output with the sum of its elements.

#include <decant/model.h>

#include <cstdio>
#include <cstdlib>

namespace {

std::string text(const decant::TensorType& type) {
  std::string out(to_string(type.dtype));
  out += "[";
  if (!type.dims) return out + "...]";
  for (const decant::Dim& d : *type.dims) {
    if (out.back() != '[') out += ", ";
    out += d.size >= 0 ? std::to_string(d.size) : d.symbol;
  }
  return out + "]";
}

decant::Result<decant::Tensor> ones(const decant::TensorType& type, int64_t size) {
  std::vector<int64_t> dims;
  if (type.dims) {
    for (const decant::Dim& d : *type.dims) dims.push_back(d.size >= 0 ? d.size : size);
  }
  auto tensor = decant::Tensor::zeros(type.dtype, dims);
  if (!tensor.ok()) return tensor;
  for (float& x : tensor->mutable_as<float>()) x = 1.0f;
  if (type.dtype == decant::DType::kInt64) {
    for (int64_t& x : tensor->mutable_as<int64_t>()) x = 1;
  }
  return tensor;
}

decant::Status run(const char* path, int64_t size) {
  auto model = decant::Model::load(path);
  if (!model.ok()) return model.status();
  std::printf("%s\n", model->layout().c_str());

  decant::NamedTensors inputs;
  for (const decant::TensorInfo& info : model->inputs()) {
    std::printf("input  %s: %s\n", info.name.c_str(), text(info.type).c_str());
    auto tensor = ones(info.type, size);
    if (!tensor.ok()) return tensor.status();
    inputs.emplace(info.name, *tensor);
  }
  auto outputs = model->run(inputs);
  if (!outputs.ok()) return outputs.status();
  for (const decant::TensorInfo& info : model->outputs()) {
    const decant::Tensor& y = outputs->find(info.name)->second;
    double sum = 0;
    if (y.dtype() == decant::DType::kFloat32) {
      for (float x : y.as<float>()) sum += x;
    }
    std::printf("output %s: %s, %lld elements, sum %.6g\n", info.name.c_str(), text(info.type).c_str(),
                static_cast<long long>(y.elements()), sum);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: run_model MODEL [SIZE]\n"), 2;
  const decant::Status status = run(argv[1], argc > 2 ? std::atoll(argv[2]) : 1);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return status.ok() ? 0 : 1;
}
