// custom_operator MODEL: runs a model with the operator acme::Clamp01 (float32 x -> y of the same shape,
// limited to [0, attribute "top"]), which this program brings along. The model's input "x" gets -1, 0, 1, ...

#include <decant/model.h>

#include <algorithm>
#include <cstdio>

namespace {

decant::CustomOp clamp01() {
  decant::CustomOp op;
  op.domain = "acme";
  op.name = "Clamp01";
  op.infer = [](const decant::OpTypes& types) -> decant::Status {
    if (types.inputs.size() != 1 || types.inputs[0].dtype != decant::DType::kFloat32)
      return decant::invalid_model("Clamp01 takes one float32 tensor");
    types.outputs[0] = types.inputs[0];
    return {};
  };
  op.compute = [](const decant::OpCall& call) -> decant::Status {
    const float top = call.attributes.number("top", 1.0f);
    const auto x = call.inputs[0].as<float>();
    const auto y = call.outputs[0].as<float>();
    for (size_t i = 0; i < x.size(); ++i) y[i] = std::clamp(x[i], 0.0f, top);
    return {};
  };
  return op;
}

decant::Status run(const char* path) {
  decant::LoadOptions options;
  options.custom_ops = {clamp01()};
  auto model = decant::Model::load(path, options);
  if (!model.ok()) return model.status();
  auto x = decant::Tensor::copy_of(std::vector<float>{-1, 0, 1, 2, 3, 4}, {2, 3});
  if (!x.ok()) return x.status();
  auto outputs = model->run({{"x", *x}});
  if (!outputs.ok()) return outputs.status();
  for (const auto& [name, y] : *outputs) {
    std::printf("%s:", name.c_str());
    for (float value : y.as<float>()) std::printf(" %g", static_cast<double>(value));
    std::printf("\n");
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: custom_operator MODEL\n"), 2;
  const decant::Status status = run(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return status.ok() ? 0 : 1;
}
