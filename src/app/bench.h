#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/low_bit.h"

namespace decant::app {

struct BenchOptions {
  std::string model;
  std::vector<int64_t> prompt_tokens = {128, 512};
  int64_t new_tokens = 64;
  int64_t context = 128;
  int repeat = 5;
  bool profile = false;
  int threads = 0;
  std::string isa;
  std::string dtype;  ///< which of a repository's files; see find_layout
  kernels::Precision precision = kernels::Precision::kExact;  ///< of products with weights of few bits
};

struct BenchCase {
  std::string name;  ///< "prefill" or "decode"
  int64_t tokens = 0;
  std::vector<double> tokens_per_second;  ///< one for each sample
  int64_t bytes_per_token = 0;  ///< weights and cache that a step reads; of a prompt, spread over its tokens
  std::vector<double>
      read_bandwidths;  ///< for each sample: bytes/s of a read loop over as many bytes, just before
  std::string isa;
  int threads = 0;
  std::string model_sha256;

  double median() const;
  double read_bandwidth() const;   ///< median
  double bandwidth_share() const;  ///< median of each sample's bytes/s over the read loop's
};

/// Measures prompts and decoding of a text model with random ids. Reports each case as it is done.
Status bench(const BenchOptions& options, const std::function<void(const BenchCase&)>& report);

}  // namespace decant::app
