// Prints what the kernels reach: memory-bound ones in GB/s and % of a read loop over the same bytes,
// arithmetic-bound ones in GFLOP/s and % of a loop of multiply-adds in registers, both run beside the kernel
// in the same process. Each figure is the median over rounds that pair the kernel with its loop. Where the
// machine is shared, or its cores are hyper-threads of busy ones, the fastest round of either ("best") is the
// better guess of what an idle machine gives.
//
//   kernels_bench [--threads 1,2] [--rounds 21] [--megabytes 256] [--filter TEXT]

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/half.h"
#include "base/thread_pool.h"
#include "kernels/kernels.h"

namespace {

using namespace decant;
using namespace decant::kernels;

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// CPU seconds of the calling thread: what one thread costs even when the machine is shared.
double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

typedef float Wide __attribute__((vector_size(64)));
typedef float Half __attribute__((vector_size(32)));

volatile float sink;

constexpr size_t kReadAhead = 4096;

/// Reads every byte once, with software prefetch: on some machines that is a third faster than the hardware
/// alone.
float read_bytes(const std::byte* p, size_t n) {
  Wide s[8] = {};
  for (size_t i = 0; i + 512 <= n; i += 512) {
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; ++j) {
      s[j] += *reinterpret_cast<const Wide*>(p + i + 64 * j);
      __builtin_prefetch(p + i + 64 * j + kReadAhead);
    }
  }
  Wide t = {};
  for (const Wide& v : s) t += v;
  return t[0] + t[7];
}

/// 2 * 24 * lanes * n floating-point operations that touch no memory.
template <typename V>
double multiply_adds(int64_t n) {
  constexpr int kSums = sizeof(V) == 64 ? 24 : 12;
  V a[kSums];
  V x, y;
  for (size_t i = 0; i < sizeof(V) / 4; ++i) {
    x[i] = 0.999f;
    y[i] = 0.001f;
  }
#pragma GCC unroll 24
  for (int i = 0; i < kSums; ++i) a[i] = y;
  for (int64_t r = 0; r < n; ++r) {
#pragma GCC unroll 24
    for (int i = 0; i < kSums; ++i) a[i] = a[i] * x + y;
#pragma GCC unroll 24
    for (int i = 0; i < kSums; ++i) __asm__ volatile("" : "+v"(a[i]));
  }
  V t = y;
#pragma GCC unroll 24
  for (int i = 0; i < kSums; ++i) t += a[i];
  sink = t[0];
  return 2.0 * kSums * static_cast<double>(sizeof(V) / 4) * static_cast<double>(n);
}

struct Options {
  std::vector<int> threads{1, 2};
  int rounds = 21;
  size_t megabytes = 256;
  std::string filter;
};

struct Bench {
  Options options;
  Isa isa;
  std::vector<std::byte> storage;
  std::byte* data;  // aligned
  size_t bytes;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void read_all(ThreadPool& pool, const std::byte* p, size_t n) {
  const int64_t chunks = pool.size() * 4;
  pool.parallel_for(chunks, [&](int, int64_t begin, int64_t end) {
    const size_t from = n * static_cast<size_t>(begin) / static_cast<size_t>(chunks) / 512 * 512;
    const size_t to = n * static_cast<size_t>(end) / static_cast<size_t>(chunks) / 512 * 512;
    sink = read_bytes(p + from, to - from);
  });
}

/// Pairs `kernel` with `loop`; both say how much they did. Wall time, or the thread's CPU time with one
/// thread.
template <typename Kernel, typename Loop>
void pair(const Bench& b, int threads, const char* name, const char* unit, Kernel kernel, Loop loop) {
  if (!b.options.filter.empty() && std::strstr(name, b.options.filter.c_str()) == nullptr) return;
  const auto clock = threads == 1 ? thread_seconds : now;
  std::vector<double> shares, rates, loops;
  for (int round = 0; round <= b.options.rounds; ++round) {
    double start = clock();
    const double loop_rate = loop() / (clock() - start);
    start = clock();
    const double rate = kernel() / (clock() - start);
    if (round == 0) continue;  // warms up
    shares.push_back(rate / loop_rate);
    rates.push_back(rate);
    loops.push_back(loop_rate);
  }
  const double best = *std::max_element(rates.begin(), rates.end());
  const double best_loop = *std::max_element(loops.begin(), loops.end());
  std::printf("%-44s %d thread%s %8.1f %s %6.1f %%   best %8.1f %6.1f %%\n", name, threads,
              threads == 1 ? " " : "s", median(rates) * 1e-9, unit, 100 * median(shares), best * 1e-9,
              100 * best / best_loop);
  std::fflush(stdout);
}

const char* short_name(DType t) {
  return t == DType::kFloat32 ? "f32" : t == DType::kFloat16 ? "f16" : "bf16";
}

void fill(std::byte* p, size_t n) {
  // Small finite values in each of the three types.
  auto* const words = reinterpret_cast<uint32_t*>(p);
  uint32_t state = 1;
  for (size_t i = 0; i < n / 4; ++i) {
    state = state * 1664525u + 1013904223u;
    words[i] = (state & 0x80ff80ffu) | 0x3c003c00u;
  }
}

void decode(const Bench& b, ThreadPool& pool, const Context& ctx, int64_t m, int64_t k, int64_t n,
            DType dtype, bool transposed) {
  char name[96];
  std::snprintf(name, sizeof(name), "decode M=%d %dx%d %s %s", static_cast<int>(m), static_cast<int>(k),
                static_cast<int>(n), transposed ? "nk" : "kn", short_name(dtype));
  const size_t size = static_cast<size_t>(k * n) * size_of(dtype);
  const size_t copies = std::max<size_t>(1, b.bytes / size);
  std::vector<float> a(static_cast<size_t>(m * k), 0.01f), c(static_cast<size_t>(m * n));
  std::vector<std::byte> scratch(matmul_scratch_bytes(m, n, k, pool.size()));
  pair(
      b, pool.size(), name, "GB/s  ",
      [&] {
        for (size_t i = 0; i < copies; ++i) {
          MatmulPart p;
          p.b = b.data + i * size;
          p.b_dtype = dtype;
          p.b_transposed = transposed;
          p.ldb = transposed ? k : n;
          p.n = p.ldc = n;
          p.c = c.data();
          matmul(ctx, m, k, a.data(), k, p, scratch);
        }
        return static_cast<double>(copies * size);
      },
      [&] {
        read_all(pool, b.data, copies * size);
        return static_cast<double>(copies * size);
      });
}

double peak(ThreadPool& pool, Isa isa) {
  std::vector<double> done(static_cast<size_t>(pool.size()));
  pool.parallel_for(pool.size(), [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      done[static_cast<size_t>(i)] = isa == Isa::kAvx512 || isa == Isa::kAmx ? multiply_adds<Wide>(500000)
                                                                             : multiply_adds<Half>(1000000);
    }
  });
  double sum = 0;
  for (const double d : done) sum += d;
  return sum;
}

void prompt(const Bench& b, ThreadPool& pool, const Context& ctx, int64_t m, int64_t k, int64_t n,
            DType dtype, bool transposed) {
  char name[96];
  std::snprintf(name, sizeof(name), "prompt M=%d %dx%d %s %s", static_cast<int>(m), static_cast<int>(k),
                static_cast<int>(n), transposed ? "nk" : "kn", short_name(dtype));
  const size_t size = static_cast<size_t>(k * n) * size_of(dtype);
  const size_t copies = std::max<size_t>(1, b.bytes / size);
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(k * n);
  const int repeats = std::max(1, static_cast<int>(4e8 / flops));
  std::vector<float> a(static_cast<size_t>(m * k), 0.01f), c(static_cast<size_t>(m * n));
  std::vector<std::byte> scratch(matmul_scratch_bytes(m, n, k, pool.size()));
  pair(
      b, pool.size(), name, "GFLOPS",
      [&] {
        for (int i = 0; i < repeats; ++i) {
          MatmulPart p;
          p.b = b.data + static_cast<size_t>(i) % copies * size;
          p.b_dtype = dtype;
          p.b_transposed = transposed;
          p.ldb = transposed ? k : n;
          p.n = p.ldc = n;
          p.c = c.data();
          matmul(ctx, m, k, a.data(), k, p, scratch);
        }
        return flops * repeats;
      },
      [&] { return peak(pool, b.isa); });
}

void cache(const Bench& b, ThreadPool& pool, const Context& ctx, int64_t q_heads, int64_t kv_heads,
           int64_t q_len, int64_t length, int64_t dim, DType dtype) {
  char name[96];
  std::snprintf(name, sizeof(name), "attention %d/%d heads x %d, %d after %d, %s", static_cast<int>(q_heads),
                static_cast<int>(kv_heads), static_cast<int>(dim), static_cast<int>(q_len),
                static_cast<int>(length - q_len), short_name(dtype));
  const size_t size = static_cast<size_t>(kv_heads * length * dim) * size_of(dtype);
  const size_t copies = std::max<size_t>(1, b.bytes / (2 * size));
  std::vector<float> q(static_cast<size_t>(q_heads * q_len * dim), 0.01f), out(q.size());
  AttentionArgs g;
  g.batch = 1;
  g.q_heads = q_heads;
  g.kv_heads = kv_heads;
  g.q_len = q_len;
  g.qk_dim = g.v_dim = dim;
  g.q = q.data();
  g.out = out.data();
  g.q_strides = g.out_strides = {q_heads * q_len * dim, q_len * dim, dim};
  g.k_strides = g.v_strides = {kv_heads * length * dim, length * dim, dim};
  g.kv_dtype = dtype;
  g.kv_length = length;
  g.causal = true;
  g.offset = length - q_len;
  g.scale = 0.1f;
  std::vector<std::byte> scratch(attention_scratch_bytes(g, pool.size()));
  const double flops =
      4.0 * static_cast<double>(q_heads * dim) *
      (static_cast<double>(q_len * (length - q_len)) + 0.5 * static_cast<double>(q_len * (q_len + 1)));
  const auto run = [&](size_t i) {
    g.k = b.data + 2 * i * size;
    g.v = b.data + (2 * i + 1) * size;
    attention(ctx, g, scratch);
  };
  if (q_len == 1) {
    pair(
        b, pool.size(), name, "GB/s  ",
        [&] {
          for (size_t i = 0; i < copies; ++i) run(i);
          return static_cast<double>(2 * copies * size);
        },
        [&] {
          read_all(pool, b.data, 2 * copies * size);
          return static_cast<double>(2 * copies * size);
        });
    return;
  }
  const int repeats = std::max(1, static_cast<int>(4e8 / flops));
  pair(
      b, pool.size(), name, "GFLOPS",
      [&] {
        for (int i = 0; i < repeats; ++i) run(static_cast<size_t>(i) % copies);
        return flops * repeats;
      },
      [&] { return peak(pool, b.isa); });
}

void run(const Bench& b) {
  for (const int threads : b.options.threads) {
    ThreadPool pool(threads);
    const Context ctx{kernel_table(b.isa), &pool};
    const struct {
      int64_t k, n;
      bool transposed;
    } shapes[] = {{576, 576, false},   {576, 192, false},   {576, 1536, false},  {1536, 576, false},
                  {576, 576, true},    {576, 1536, true},   {1536, 576, true},   {576, 49152, true},
                  {1024, 1024, false}, {1024, 3072, false}, {3072, 1024, false}, {1024, 3072, true}};
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      for (const auto& s : shapes) decode(b, pool, ctx, 1, s.k, s.n, dtype, s.transposed);
    }
    for (const int64_t m : {4, 8}) {
      decode(b, pool, ctx, m, 576, 1536, DType::kFloat32, false);
      decode(b, pool, ctx, m, 576, 1536, DType::kBFloat16, false);
      decode(b, pool, ctx, m, 576, 1536, DType::kFloat32, true);
      decode(b, pool, ctx, m, 576, 1536, DType::kBFloat16, true);
    }
    for (const int64_t m : {16, 32, 128, 512}) {
      for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
        prompt(b, pool, ctx, m, 576, 576, dtype, false);
        prompt(b, pool, ctx, m, 576, 1536, dtype, false);
        prompt(b, pool, ctx, m, 1536, 576, dtype, false);
        prompt(b, pool, ctx, m, 576, 1536, dtype, true);
        prompt(b, pool, ctx, m, 1024, 3072, dtype, false);
      }
    }
    // Encoders: MiniLM on 32 x 128 tokens, ViT-B on one image.
    for (const int64_t k : {384, 1536}) prompt(b, pool, ctx, 4096, k, 1920 - k, DType::kFloat32, false);
    for (const int64_t k : {768, 3072}) prompt(b, pool, ctx, 197, k, 3840 - k, DType::kFloat32, false);
    for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
      cache(b, pool, ctx, 9, 3, 1, 128, 64, dtype);
      cache(b, pool, ctx, 9, 3, 1, 1024, 64, dtype);
      cache(b, pool, ctx, 16, 8, 1, 2048, 128, dtype);
      cache(b, pool, ctx, 9, 3, 512, 512, 64, dtype);
      cache(b, pool, ctx, 16, 8, 512, 512, 128, dtype);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Bench b;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--threads") {
      b.options.threads.clear();
      for (size_t at = 0; at < value.size(); at = std::min(value.size(), value.find(',', at)) + 1) {
        b.options.threads.push_back(std::max(1, std::atoi(value.c_str() + at)));
      }
    } else if (option == "--rounds") {
      b.options.rounds = std::max(1, std::atoi(value.c_str()));
    } else if (option == "--megabytes") {
      b.options.megabytes = static_cast<size_t>(std::max(1, std::atoi(value.c_str())));
    } else if (option == "--filter") {
      b.options.filter = value;
    }
  }
  auto isa = select_isa();
  if (!isa.ok()) {
    std::fprintf(stderr, "%s\n", isa.status().message().c_str());
    return 2;
  }
  b.isa = *isa;
  b.bytes = b.options.megabytes << 20;
  b.storage.resize(b.bytes + 64);
  b.data = b.storage.data() + (64 - reinterpret_cast<uintptr_t>(b.storage.data()) % 64);
  fill(b.data, b.bytes);
  std::printf("instruction set %s, %zu MB of weights\n", std::string(to_string(b.isa)).c_str(),
              b.options.megabytes);
  run(b);
  return 0;
}
