#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace decant::app {

struct ComponentInfo {
  std::string name, file;
  std::string role;  ///< "model", "decoder", ...: what it does when text is generated
  std::vector<std::pair<std::string, std::string>> inputs, outputs;  ///< name, "float32[batch, 3]"
  std::vector<std::string> states;     ///< "past_key_values.0.key -> present.0.key (growing, axis 2)"
  std::map<std::string, int64_t> ops;  ///< as the file has them
  std::map<std::string, int64_t> compiled_ops;   ///< after the passes
  std::map<std::string, int64_t> lifted;         ///< operators that the passes found in decomposed form
  std::map<std::string, int64_t> reference_ops;  ///< of the compiled ones, run on reference kernels
  std::map<std::string, int64_t> weights;        ///< bytes by dtype
  int64_t bytes_on_disk = 0;
  int64_t cache_bytes_per_token = 0;
};

struct Inspection {
  std::string layout;
  std::string dtype;                ///< of the files, where a repository has several
  std::vector<std::string> dtypes;  ///< all there are
  std::string missing;              ///< what text generation lacks; empty when nothing
  std::vector<ComponentInfo> components;
  std::vector<std::pair<int32_t, std::string>> stop_tokens;  ///< id, where it comes from
};

/// What MODEL is made of. Weights are not read.
Result<Inspection> inspect(const std::string& path, const std::string& dtype = "");

}  // namespace decant::app
