#include "base/cpu.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#endif

namespace decant {
namespace {

#if defined(__x86_64__)
bool amx_permitted() {
#if defined(__linux__)
  // Tile data is off until the process asks for it: ARCH_REQ_XCOMP_PERM (0x1023) of feature 18.
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
  return false;
#endif
}

CpuFeatures detect() {
  CpuFeatures f;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return f;
  const bool osxsave = c & bit_OSXSAVE, avx = c & bit_AVX, fma = c & bit_FMA, f16c = c & bit_F16C;
  if (!osxsave || !avx) return f;
  unsigned xcr0 = 0, xcr0_high = 0;
  __asm__ volatile("xgetbv" : "=a"(xcr0), "=d"(xcr0_high) : "c"(0));
  const bool ymm = (xcr0 & 0x6) == 0x6, zmm = (xcr0 & 0xe6) == 0xe6, tiles = (xcr0 & 0x60000) == 0x60000;
  if (!ymm || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return f;
  const unsigned subleaves = a;
  f.avx2 = (b & bit_AVX2) && fma && f16c;
  const unsigned wide = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  f.avx512 = f.avx2 && zmm && (b & wide) == wide;
  f.avx512_vnni = f.avx512 && (c & (1u << 11));
  const bool amx_tile = tiles && (d & (1u << 24));
  const bool has_amx_bf16 = d & (1u << 22), has_amx_int8 = d & (1u << 25);
  if (amx_tile && (has_amx_bf16 || has_amx_int8) && amx_permitted()) {
    f.amx_bf16 = has_amx_bf16;
    f.amx_int8 = has_amx_int8;
  }
  if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) f.avx512_bf16 = f.avx512 && (a & (1u << 5));
  return f;
}
#elif defined(__aarch64__)
CpuFeatures detect() {
  CpuFeatures f;
  f.neon = true;  // part of the base architecture
  return f;
}
#else
CpuFeatures detect() { return {}; }
#endif

std::string read_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// CPUs that a "quota period" pair allows, rounded up; 0 when unlimited.
int quota_cpus(const std::string& quota, const std::string& period) {
  double q = 0, p = 0;
  if (std::from_chars(quota.data(), quota.data() + quota.size(), q).ec != std::errc()) return 0;
  if (std::from_chars(period.data(), period.data() + period.size(), p).ec != std::errc()) return 0;
  if (q <= 0 || p <= 0) return 0;
  const double cpus = q / p;
  return cpus > 65536 ? 0 : std::max(1, static_cast<int>(cpus + 0.999));
}

int smaller_limit(int a, int b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

/// The tightest quota of this process's control group and its parents; 0 when there is none.
int cgroup_cpus() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  int limit = 0;
  while (std::getline(groups, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    const bool v2 = controllers.empty();
    if (!v2 && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    for (int depth = 0; depth < 64; ++depth) {
      if (v2) {
        const std::string text = read_line(root + path + "/cpu.max");
        const size_t space = text.find(' ');
        if (space != std::string::npos) {
          limit = smaller_limit(limit, quota_cpus(text.substr(0, space), text.substr(space + 1)));
        }
      } else {
        limit = smaller_limit(limit, quota_cpus(read_line(root + path + "/cpu.cfs_quota_us"),
                                                read_line(root + path + "/cpu.cfs_period_us")));
      }
      if (path.empty() || path == "/") break;
      path.erase(path.rfind('/'));
    }
  }
  return limit;
}

/// Distinct physical cores among the CPUs this process may run on.
int cores_in_mask() {
#if defined(__linux__)
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    std::set<std::string> cores;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &mask)) continue;
      const std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
      const std::string core = read_line(topology + "core_id");
      cores.insert(core.empty() ? "cpu" + std::to_string(cpu)
                                : read_line(topology + "physical_package_id") + ":" + core);
    }
    if (!cores.empty()) return static_cast<int>(cores.size());
  }
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return "baseline";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAmx:
      return "amx";
    case Isa::kNeon:
      return "neon";
  }
  return "unknown";
}

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  const CpuFeatures& f = cpu_features();
  if (f.avx512 && f.amx_bf16) isas.push_back(Isa::kAmx);
  if (f.avx512) isas.push_back(Isa::kAvx512);
  if (f.avx2) isas.push_back(Isa::kAvx2);
  if (f.neon) isas.push_back(Isa::kNeon);
  isas.push_back(Isa::kBaseline);
  return isas;
}

Result<Isa> select_isa(std::optional<std::string_view> name) {
  const std::vector<Isa> isas = available_isas();
  std::string_view source = "instruction set";
  if (!name || name->empty()) {
    const char* from_environment = std::getenv("DECANT_ISA");
    if (from_environment == nullptr || *from_environment == '\0') return isas.front();
    name = from_environment;
    source = "DECANT_ISA";
  }
  std::string available;
  for (const Isa isa : isas) {
    if (to_string(isa) == *name) return isa;
    available += (available.empty() ? "" : ", ") + std::string(to_string(isa));
  }
  return invalid_argument(std::string(source) + ": '" + std::string(*name) +
                          "' is not available on this machine; available: " + available);
}

int default_thread_count() {
  const int quota = cgroup_cpus();
  const int cores = cores_in_mask();
  return std::max(1, quota > 0 ? std::min(quota, cores) : cores);
}

}  // namespace decant
