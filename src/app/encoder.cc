#include "app/encoder.h"

#include <algorithm>

#include "app/load_graph.h"
#include "formats/safetensors/safetensors_file.h"
#include "passes/passes.h"
#include "runtime/convert.h"

namespace decant::app {
namespace {

const ir::Tensor* find(const NamedTensors& tensors, std::string_view name) {
  for (const auto& [key, tensor] : tensors) {
    if (key == name) return &tensor;
  }
  return nullptr;
}

/// The decoder's name for an encoder's output.
std::string constant_name(const std::string& output) {
  return output == "last_hidden_state" ? "encoder_hidden_states" : output;
}

}  // namespace

Result<NamedTensors> read_tensors(const std::string& path) {
  DECANT_ASSIGN(const auto file, safetensors::SafetensorsFile::open(path));
  NamedTensors tensors;
  for (const safetensors::Tensor& t : file->tensors())
    tensors.emplace_back(t.name, ir::Tensor::view(t.dtype, t.dims, t.bytes.data(), t.file));
  return tensors;
}

Result<ir::Tensor> ids_tensor(std::span<const int32_t> ids) {
  DECANT_ASSIGN(ir::Tensor t,
                ir::Tensor::allocate(DType::kInt64, {int64_t{1}, static_cast<int64_t>(ids.size())}));
  std::copy(ids.begin(), ids.end(), t.mutable_data_as<int64_t>());
  return t;
}

Result<ir::Tensor> mask_tensor(int64_t length) {
  DECANT_ASSIGN(ir::Tensor t, ir::Tensor::allocate(DType::kInt64, {int64_t{1}, length}));
  std::fill_n(t.mutable_data_as<int64_t>(), length, int64_t{1});
  return t;
}

Result<std::unique_ptr<Encoder>> Encoder::load(const Layout& layout, const Component& component,
                                               const std::shared_ptr<runtime::Engine>& engine,
                                               kernels::Precision precision) {
  DECANT_ASSIGN(auto graph, load_for_generation(layout, component, true));
  DECANT_RETURN_IF_ERROR(passes::optimize_for_forward(*graph).with_context(component.path));
  auto encoder = std::make_unique<Encoder>();
  runtime::PlanOptions options;
  options.precision = precision;
  auto plan = runtime::Plan::compile(std::move(graph), engine, options);
  if (!plan.ok()) return std::move(plan).status().with_context(component.path);
  encoder->plan_ = *std::move(plan);
  return encoder;
}

bool Encoder::takes(std::string_view name) const {
  const auto& inputs = plan_->graph().inputs();
  return std::any_of(inputs.begin(), inputs.end(), [&](const ir::Value* v) { return v->name == name; });
}

Status Encoder::run(std::span<const int32_t> ids, const NamedTensors& inputs, runtime::Session& session) {
  NamedTensors given = inputs;
  if (!ids.empty() && !find(given, "input_ids")) {
    DECANT_ASSIGN(ir::Tensor t, ids_tensor(ids));
    given.emplace_back("input_ids", std::move(t));
  }
  const ir::Tensor* tokens = find(given, "input_ids");
  if (tokens && tokens->rank() == 2 && !find(given, "attention_mask")) {
    DECANT_ASSIGN(ir::Tensor t, mask_tensor(tokens->dims()[1]));
    given.emplace_back("attention_mask", std::move(t));
  }
  std::vector<ir::Tensor> held;
  std::string missing;
  for (const ir::Value* v : plan_->graph().inputs()) {
    const ir::Tensor* t = find(given, v->name);
    if (!t) {
      missing += (missing.empty() ? "'" : ", '") + v->name + "'";
      continue;
    }
    auto own = runtime::convert(*t, v->dtype);
    if (!own.ok()) return std::move(own).status().with_context("the encoder's input '" + v->name + "'");
    held.push_back(*std::move(own));
  }
  if (!missing.empty())
    return invalid_argument("the encoder's inputs " + missing + " are missing (--inputs gives them)");
  std::vector<runtime::Arg> args;
  for (const ir::Tensor& t : held) {
    args.push_back({t.dtype(), const_cast<void*>(t.data()), t.dims().data(), static_cast<int32_t>(t.rank()),
                    t.elements()});
  }
  DECANT_RETURN_IF_ERROR(plan_->run(args));
  int64_t length = tokens && tokens->rank() == 2 ? tokens->dims()[1] : -1;
  const auto& outputs = plan_->graph().outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const runtime::Arg& out = plan_->output(i);
    const std::string name = constant_name(outputs[i]->name);
    if (name == "encoder_hidden_states" && length < 0 && out.rank == 3) length = out.dims[1];
    if (!session.has_constant(name)) continue;
    DECANT_RETURN_IF_ERROR(
        session.bind(name, ir::Tensor::view(out.dtype, {out.dims, out.dims + out.rank}, out.data, nullptr)));
  }
  if (session.has_constant("encoder_attention_mask") && !find(given, "encoder_attention_mask")) {
    if (const ir::Tensor* mask = find(given, "attention_mask")) {
      DECANT_RETURN_IF_ERROR(session.bind("encoder_attention_mask", *mask));
    } else if (length >= 0) {
      DECANT_ASSIGN(const ir::Tensor ones, mask_tensor(length));
      DECANT_RETURN_IF_ERROR(session.bind("encoder_attention_mask", ones));
    }
  }
  for (const auto& [name, tensor] : given) {
    if (session.has_constant(name)) DECANT_RETURN_IF_ERROR(session.bind(name, tensor));
  }
  return ok_status();
}

}  // namespace decant::app
