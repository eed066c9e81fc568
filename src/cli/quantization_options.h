#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/quantization.h"
#include "cli/command.h"

namespace decant::cli {

/// `--block-size`, `--bits-per-weight`, `--accuracy-level`.
void add_quantization_options(CLI::App& app, app::QuantizationOptions& options);

/// A folder of an export.
struct Written {
  std::string architecture;  ///< empty where it is not known
  std::string output;
  std::vector<std::pair<std::string, uint64_t>> files;
  std::vector<app::PackedWeight> weights;
};

/// What became of each weight, then what was written: one JSON object a line, or tables.
void print_written(const Written& written, const Common& common);

}  // namespace decant::cli
