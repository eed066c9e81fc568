#include "cli/generation_options.h"

#include <CLI/CLI.hpp>

namespace decant::cli {

void add_compute_type(CLI::App& app, std::string& name) {
  app.add_option(
         "--compute-type", name,
         "hold the weights of products as f16 or bf16 (default and f32: as stored); sums, norms, softmax "
         "and attention scores are f32 always")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
}

DType compute_type(const std::string& name) {
  if (name == "f16") return DType::kFloat16;
  if (name == "bf16") return DType::kBFloat16;
  return name.empty() ? DType::kUndefined : DType::kFloat32;
}

void add_mode(CLI::App& app, std::string& name) {
  app.add_option(
         "--mode", name,
         "exact: what the graph says, accumulated in f32; fast: activations that meet weights of few bits "
         "are rounded to 8 bits in blocks of 32 (the same as exact for other weights)")
      ->check(CLI::IsMember({"exact", "fast"}));
}

kernels::Precision precision(const std::string& mode) {
  return mode == "fast" ? kernels::Precision::kFast : kernels::Precision::kExact;
}

void GenerationOptions::add_to(CLI::App& app) {
  app.add_option("MODEL", model, "an export's folder, an .onnx or .gguf file, or a checkpoint's folder")
      ->required();
  app.add_option("--dtype", dtype,
                 "which of a repository's files: fp32, fp16, q8, int8, uint8, q4, q4f16, bnb4, ...");
  app.add_option("--max-new-tokens", max_new_tokens, "stop after so many tokens")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31));
  app.add_option("--max-cache-len", max_cache_len, "positions of the key-value cache")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31));
  add_mode(app, mode);
  add_compute_type(app, compute_type_name);
  app.add_option("--temperature", temperature, "0: the most probable token")->check(CLI::Range(0.0f, 100.0f));
  app.add_option("--top-k", top_k, "keep the k most probable tokens; 0: all")->check(CLI::NonNegativeNumber);
  app.add_option("--top-p", top_p, "keep the tokens that make up this probability")
      ->check(CLI::Range(0.0f, 1.0f));
  app.add_option("--min-p", min_p, "drop tokens below this share of the most probable one")
      ->check(CLI::Range(0.0f, 1.0f));
  app.add_option("--repetition-penalty", repetition_penalty,
                 "above 1: tokens seen before become less probable");
  app.add_option("--seed", seed, "of the random numbers");
  app.add_option("--stop", stop, "text that ends the generation; repeatable")->allow_extra_args(false);
  app.add_flag("--ignore-eos", ignore_eos, "go on after an end token");
}

app::LoadOptions GenerationOptions::load_options(const Common& common) const {
  app::LoadOptions options;
  options.threads = common.threads;
  options.isa = common.isa;
  options.max_cache_len = max_cache_len;
  options.dtype = dtype;
  options.compute_type = compute_type(compute_type_name);
  options.precision = precision(mode);
  return options;
}

app::GenerateOptions GenerationOptions::generate_options() const {
  app::GenerateOptions options;
  options.max_new_tokens = max_new_tokens;
  options.ignore_eos = ignore_eos;
  options.stop_strings = stop;
  if (temperature > 0) options.sampling.temperature = temperature;
  options.sampling.top_k = top_k;
  options.sampling.top_p = top_p;
  options.sampling.min_p = min_p;
  options.sampling.repetition_penalty = repetition_penalty;
  options.sampling.seed = seed;
  return options;
}

}  // namespace decant::cli
