// own_cache MODEL ID,ID,... N: greedy decoding step by step with a static cache that this program owns. The
// model has fixed buffers past_key_values.* (present.* come back in them), a mask over the whole buffer, and
// position_ids and cache_length where it wants them. Prints the new ids, and how many plans were compiled.

#include <decant/compiled_model.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace {

using decant::DType;
using decant::Status;
using decant::Tensor;

constexpr int64_t kCapacity = 256;  // for models that leave it open

/// Int64 memory that a step reads, at its final size from the start.
decant::Result<Tensor> indices(std::vector<int64_t> dims) {
  return Tensor::zeros(DType::kInt64, std::move(dims));
}

struct Decoder {
  decant::Binding step;
  Tensor mask, length;
  bool has_mask = false, has_positions = false, has_length = false;
  int64_t capacity = kCapacity, filled = 0;

  explicit Decoder(decant::Binding binding) : step(std::move(binding)) {}

  Status prepare(const decant::CompiledModel& model) {
    for (const decant::TensorInfo& in : model.inputs()) {
      if (!in.name.starts_with("past_key_values.")) continue;
      std::vector<int64_t> dims;
      for (const decant::Dim& d : *in.type.dims) dims.push_back(d.size >= 0 ? d.size : 1);
      if ((*in.type.dims)[2].size < 0) dims[2] = kCapacity;
      capacity = dims[2];
      auto buffer = Tensor::zeros(in.type.dtype, dims);
      if (!buffer.ok()) return buffer.status();
      // The same memory goes in and comes out: updated in place.
      if (Status s = step.set_input(in.name, *buffer); !s.ok()) return s;
      if (Status s = step.set_output("present." + in.name.substr(16), *buffer); !s.ok()) return s;
    }
    for (const decant::TensorInfo& in : model.inputs()) {
      has_mask |= in.name == "attention_mask";
      has_positions |= in.name == "position_ids";
      has_length |= in.name == "cache_length";
    }
    if (auto t = indices({1, capacity}); t.ok()) mask = *t;
    if (auto t = indices({}); t.ok()) length = *t;
    if (has_length) {
      if (Status s = step.set_input("cache_length", length); !s.ok()) return s;
    }
    return has_mask ? step.set_input("attention_mask", mask) : Status();
  }

  /// Runs the ids at the end of what is cached; returns the most probable next one.
  decant::Result<int64_t> next(const std::vector<int64_t>& ids) {
    const auto n = static_cast<int64_t>(ids.size());
    if (filled + n > capacity) return decant::out_of_range("the cache is full");
    std::vector<int64_t> positions;
    length.mutable_as<int64_t>()[0] = filled;
    for (int64_t i = 0; i < n; ++i) {
      positions.push_back(filled);
      mask.mutable_as<int64_t>()[static_cast<size_t>(filled++)] = 1;
    }
    auto id_tensor = Tensor::copy_of(ids, {1, n}), position_tensor = Tensor::copy_of(positions, {1, n});
    if (Status s = step.set_input("input_ids", *id_tensor); !s.ok()) return s;
    if (has_positions) {
      if (Status s = step.set_input("position_ids", *position_tensor); !s.ok()) return s;
    }
    if (Status s = step.run(); !s.ok()) return s;
    const decant::TensorView logits = step.output("logits");
    const auto last = logits.as<float>().last(static_cast<size_t>(logits.dims.back()));
    return std::max_element(last.begin(), last.end()) - last.begin();
  }
};

Status run(const char* path, std::vector<int64_t> ids, int64_t count) {
  auto model = decant::Model::load(path);
  if (!model.ok()) return model.status();
  auto compiled = model->compile();
  if (!compiled.ok()) return compiled.status();
  Decoder decoder(compiled->bind());
  if (Status s = decoder.prepare(*compiled); !s.ok()) return s;
  for (int64_t i = 0; i < count; ++i) {
    auto id = decoder.next(ids);
    if (!id.ok()) return id.status();
    std::printf("%lld%s", static_cast<long long>(*id), i + 1 < count ? "," : "\n");
    ids = {*id};
  }
  std::printf("plans: %lld\n", static_cast<long long>(compiled->compile_count()));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: own_cache MODEL ID,ID,... N\n"), 2;
  std::vector<int64_t> ids;
  std::stringstream list(argv[2]);
  for (std::string part; std::getline(list, part, ',');) ids.push_back(std::atoll(part.c_str()));
  const Status status = run(argv[1], ids, std::atoll(argv[3]));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return status.ok() ? 0 : 1;
}
