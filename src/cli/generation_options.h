#pragma once

#include <string>
#include <vector>

#include "app/text_model.h"
#include "cli/command.h"

namespace decant::cli {

/// Adds --compute-type, and what its value means.
void add_compute_type(CLI::App& app, std::string& name);
DType compute_type(const std::string& name);

/// Adds --mode, and what its value means for weights of few bits.
void add_mode(CLI::App& app, std::string& name);
kernels::Precision precision(const std::string& mode);

/// Options that `generate` and `chat` share.
struct GenerationOptions {
  std::string model, dtype, mode = "exact", compute_type_name;
  int64_t max_new_tokens = 256, max_cache_len = 0;
  float temperature = 0;
  int64_t top_k = 0;
  float top_p = 1, min_p = 0, repetition_penalty = 1;
  uint64_t seed = 0;
  std::vector<std::string> stop;
  bool ignore_eos = false;

  void add_to(CLI::App& app);
  app::LoadOptions load_options(const Common& common) const;
  app::GenerateOptions generate_options() const;
};

}  // namespace decant::cli
