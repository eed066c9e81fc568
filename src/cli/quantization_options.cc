#include "cli/quantization_options.h"

#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace decant::cli {
namespace {

std::string form_of(const app::PackedWeight& w) {
  return std::to_string(w.bits) + " bits, blocks of " + std::to_string(w.block) +
         (w.zero_points ? ", zero points" : "") + (w.kept ? ", as stored" : "");
}

void print_json(const std::vector<app::PackedWeight>& weights) {
  for (const app::PackedWeight& w : weights) {
    nlohmann::ordered_json line{{"weight", w.name},
                                {"shape", {w.rows, w.columns}},
                                {"bits", w.bits},
                                {"block", w.block},
                                {"zero_points", w.zero_points},
                                {"kept", w.kept},
                                {"shared", w.shared},
                                {"bytes_before", w.bytes_before},
                                {"bytes_after", w.bytes_after},
                                {"relative_error", w.relative_error}};
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  }
}

/// All weights together.
nlohmann::ordered_json summary_of(const app::PackingTotals& totals) {
  nlohmann::ordered_json out{{"bytes_before", totals.bytes_before},
                             {"bytes_after", totals.bytes_after},
                             {"bits_per_weight", totals.bits_per_weight},
                             {"relative_error", totals.relative_error},
                             {"worst", nlohmann::ordered_json::array()}};
  for (const app::PackedWeight* w : totals.worst) out["worst"].push_back(w->name);
  return out;
}

void print_table(const std::vector<app::PackedWeight>& weights, const app::PackingTotals& totals) {
  for (const app::PackedWeight& w : weights) {
    std::printf("%14lld  %8.5f  %s  (%s%s)\n", static_cast<long long>(w.bytes_after), w.relative_error,
                w.name.c_str(), form_of(w).c_str(), w.shared ? ", table and head" : "");
  }
  std::printf("%zu weights: %lld -> %lld bytes, %.3f bits a weight, relative error %.5f\n", weights.size(),
              static_cast<long long>(totals.bytes_before), static_cast<long long>(totals.bytes_after),
              totals.bits_per_weight, totals.relative_error);
  for (const app::PackedWeight* w : totals.worst)
    std::printf("  worst: %.5f  %s\n", w->relative_error, w->name.c_str());
}

}  // namespace

void add_quantization_options(CLI::App& app, app::QuantizationOptions& options) {
  app.add_option("--block-size", options.block_size, "weights that share a scale: 16, 32, 64, 128 or 256")
      ->check(CLI::IsMember({16, 32, 64, 128, 256}));
  app.add_option("--bits-per-weight", options.bits_per_weight,
                 "4 or 8 bits for each tensor, scales included within this budget")
      ->check(CLI::Range(4.0, 12.0));
  app.add_option("--accuracy-level", options.accuracy_level,
                 "of MatMulNBits: 4 lets runtimes round activations to 8 bits")
      ->check(CLI::Range(0, 4));
}

void print_written(const Written& written, const Common& common) {
  const app::PackingTotals totals = app::totals_of(written.weights);
  if (common.json) {
    print_json(written.weights);
    nlohmann::ordered_json line;
    if (!written.architecture.empty()) line["architecture"] = written.architecture;
    line["output"] = written.output;
    for (const auto& [name, bytes] : written.files) line["files"][name] = bytes;
    if (!written.weights.empty()) line["weights"] = summary_of(totals);
    std::printf("%s\n", line.dump().c_str());
  } else if (!common.quiet) {
    if (!written.weights.empty()) print_table(written.weights, totals);
    std::printf("%s%s%s\n", written.architecture.c_str(), written.architecture.empty() ? "" : " -> ",
                written.output.c_str());
    for (const auto& [name, bytes] : written.files)
      std::printf("%14llu  %s\n", static_cast<unsigned long long>(bytes), name.c_str());
  }
}

}  // namespace decant::cli
