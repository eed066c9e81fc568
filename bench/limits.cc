// What this machine can do, measured next to a benchmark run: read bandwidth and fp32 multiply-add peak.
// usage: limits THREADS [MEGABYTES]; prints one JSON object with the medians of seven rounds.
#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <sys/mman.h>

namespace {

constexpr int kRounds = 7;
constexpr int kLanes = 16;
using Vec = float __attribute__((vector_size(kLanes * sizeof(float))));

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Median over the rounds of `work` units done by all threads together, per second.
template <class Body>
double rate(int threads, double work, Body body) {
  std::array<double, kRounds> rates;
  for (double& measured : rates) {
    std::barrier start(threads + 1);
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&, i] {
        start.arrive_and_wait();
        body(i);
      });
    }
    start.arrive_and_wait();
    const double begin = now();
    for (std::thread& worker : workers) worker.join();
    measured = work / (now() - begin);
  }
  std::sort(rates.begin(), rates.end());
  return rates[kRounds / 2];
}

// Sums a range through eight independent accumulators, so that only the loads limit it.
float read_all(const char* begin, size_t bytes) {
  std::array<Vec, 8> sums{};
  for (size_t at = 0; at + 8 * sizeof(Vec) <= bytes; at += 8 * sizeof(Vec)) {
    for (int i = 0; i < 8; ++i) sums[i] += *reinterpret_cast<const Vec*>(begin + at + i * sizeof(Vec));
  }
  float total = 0;
  for (const Vec& sum : sums) total += sum[0] + sum[kLanes - 1];
  return total;
}

// `count` rounds of 12 independent multiply-adds: enough to cover the latency of two units.
float multiply_add(int64_t count) {
  std::array<Vec, 12> sums{};
  Vec a, b;
  for (int i = 0; i < kLanes; ++i) a[i] = 1.0f + 1e-7f * i, b[i] = 1e-9f * i;
  for (int64_t n = 0; n < count; ++n) {
    for (Vec& sum : sums) sum = sum * a + b;
  }
  float total = 0;
  for (const Vec& sum : sums) total += sum[0];
  return total;
}

volatile float sink;

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const size_t bytes = (argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1024) << 20;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (threads < 1 || memory == MAP_FAILED) return 1;
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 1, bytes);
  const char* data = static_cast<const char*>(memory);
  const size_t part = bytes / threads / 4096 * 4096;
  const double bandwidth =
      rate(threads, double(part) * threads, [&](int i) { sink = read_all(data + i * part, part); });
  constexpr int64_t kCount = 40'000'000;
  const double flops =
      rate(threads, 2.0 * kLanes * 12 * kCount * threads, [&](int) { sink = multiply_add(kCount); });
  std::printf("{\"threads\": %d, \"read_gb_per_s\": %.1f, \"fma_gflop_per_s\": %.0f}\n", threads,
              bandwidth / 1e9, flops / 1e9);
}
