// static_input MODEL ID,ID,... N: greedy decoding with a merged decoder, one file for prompt and steps that
// branches on the bool input use_cache_branch. Given as a static input, each of its two values gets a plan
// without the branch. Caches grow: each step's present.* are the next one's past_key_values.*.

#include <decant/compiled_model.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace {

using decant::DType;
using decant::Status;
using decant::Tensor;

Status run(const char* path, std::vector<int64_t> ids, int64_t count) {
  auto model = decant::Model::load(path);
  if (!model.ok()) return model.status();
  decant::CompileOptions options;
  options.static_inputs = {"use_cache_branch"};
  auto compiled = model->compile(options);
  if (!compiled.ok()) return compiled.status();

  decant::NamedTensors inputs;
  for (const decant::TensorInfo& in : model->inputs()) {
    if (!in.name.starts_with("past_key_values.")) continue;
    std::vector<int64_t> dims;  // a batch of one, and nothing cached
    for (const decant::Dim& d : *in.type.dims) dims.push_back(d.size >= 0 ? d.size : dims.empty() ? 1 : 0);
    auto dummy = Tensor::zeros(in.type.dtype, dims);
    if (!dummy.ok()) return dummy.status();
    inputs.insert_or_assign(in.name, *dummy);
  }
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto n = static_cast<int64_t>(ids.size());
    std::vector<int64_t> positions;
    for (int64_t p = total; p < total + n; ++p) positions.push_back(p);
    total += n;
    const bool cached = i > 0;
    const std::vector<int64_t> ones(static_cast<size_t>(total), 1);
    inputs.insert_or_assign("use_cache_branch", *Tensor::copy_of(std::span<const bool>(&cached, 1), {1}));
    inputs.insert_or_assign("input_ids", *Tensor::copy_of(ids, {1, n}));
    for (const decant::TensorInfo& in : model->inputs()) {
      if (in.name == "attention_mask") inputs.insert_or_assign(in.name, *Tensor::copy_of(ones, {1, total}));
      if (in.name == "position_ids") inputs.insert_or_assign(in.name, *Tensor::copy_of(positions, {1, n}));
    }
    auto outputs = compiled->run(inputs);
    if (!outputs.ok()) return outputs.status();
    const Tensor& logits = outputs->find("logits")->second;
    const auto last = logits.as<float>().last(static_cast<size_t>(logits.dims().back()));
    const int64_t id = std::max_element(last.begin(), last.end()) - last.begin();
    for (auto& [name, tensor] : *outputs) {
      if (name.starts_with("present.")) inputs.insert_or_assign("past_key_values." + name.substr(8), tensor);
    }
    std::printf("%lld%s", static_cast<long long>(id), i + 1 < count ? "," : "\n");
    ids = {id};
  }
  std::printf("plans: %lld\n", static_cast<long long>(compiled->compile_count()));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: static_input MODEL ID,ID,... N\n"), 2;
  std::vector<int64_t> ids;
  std::stringstream list(argv[2]);
  for (std::string part; std::getline(list, part, ',');) ids.push_back(std::atoll(part.c_str()));
  const Status status = run(argv[1], ids, std::atoll(argv[3]));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return status.ok() ? 0 : 1;
}
