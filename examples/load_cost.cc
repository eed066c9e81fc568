// load_cost MODEL: what loading and compiling a model costs before its first run, as one line of JSON:
// milliseconds, and private memory in bytes (mapped weights are shared until something writes to them, and
// read when first used).

#include <decant/compiled_model.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

namespace {

long long private_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  long long total = 0, kilobytes = 0;
  for (std::string word; file >> word;) {
    if ((word == "Private_Clean:" || word == "Private_Dirty:") && file >> kilobytes)
      total += kilobytes * 1024;
  }
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: load_cost MODEL\n"), 2;
  using Clock = std::chrono::steady_clock;
  const auto milliseconds = [](Clock::duration d) {
    return std::chrono::duration<double, std::milli>(d).count();
  };
  const auto begin = Clock::now();
  auto model = decant::Model::load(argv[1]);
  if (!model.ok()) return std::fprintf(stderr, "%s\n", model.status().to_string().c_str()), 1;
  const auto loaded = Clock::now();
  auto compiled = model->compile();
  if (!compiled.ok()) return std::fprintf(stderr, "%s\n", compiled.status().to_string().c_str()), 1;
  std::printf("{\"load_ms\": %.2f, \"compile_ms\": %.2f, \"private_bytes\": %lld}\n",
              milliseconds(loaded - begin), milliseconds(Clock::now() - loaded), private_bytes());
  return 0;
}
