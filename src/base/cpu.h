#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace decant {

/// Instruction sets that kernels are built for. kBaseline is what every processor of the architecture has
/// (x86-64: SSE2), and always available.
enum class Isa : uint8_t {
  kBaseline,
  kAvx2,    ///< AVX2, FMA, F16C
  kAvx512,  ///< AVX-512 F, BW, DQ, VL besides kAvx2
  kAmx,     ///< AMX-BF16 besides kAvx512
  kNeon,    ///< aarch64 advanced SIMD with FMA
};

/// "baseline", "avx2", "avx512", "amx", "neon": the names DECANT_ISA and --isa take.
std::string_view to_string(Isa isa);

/// What the processor has and the operating system lets us use.
struct CpuFeatures {
  bool avx2 = false;
  bool avx512 = false;
  bool neon = false;
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool amx_int8 = false;
  bool amx_bf16 = false;
};

/// Detected on the first call; thread-safe.
const CpuFeatures& cpu_features();

/// Instruction sets of this machine that kernels exist for, best first; never empty.
std::vector<Isa> available_isas();

/// The instruction set to use: `name` when given, else the environment variable DECANT_ISA when set and not
/// empty, else the best one. Asking for an unknown one, or one this machine lacks, is an error that lists the
/// available ones.
Result<Isa> select_isa(std::optional<std::string_view> name = std::nullopt);

/// Threads to use when the caller names no number: the least of the affinity mask, the cgroup (v1 or v2) CPU
/// quota rounded up and the physical cores in the mask; at least 1.
int default_thread_count();

}  // namespace decant
