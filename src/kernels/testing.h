#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/half.h"
#include "base/thread_pool.h"
#include "kernels/kernels.h"

namespace decant::kernels {

/// Runs a test body on every instruction set of this machine, with one thread and with three.
class KernelTest : public testing::TestWithParam<std::tuple<Isa, int>> {
 protected:
  KernelTest() : pool(std::get<1>(GetParam())), ctx{kernel_table(std::get<0>(GetParam())), &pool} {}

  /// Normally distributed, from a generator that is the same on every machine.
  std::vector<float> random(int64_t n, float scale = 1) {
    std::vector<float> v(static_cast<size_t>(n));
    for (float& x : v) {
      float sum = 0;
      for (int i = 0; i < 4; ++i) sum += static_cast<float>(engine() >> 8) * 0x1p-24f - 0.5f;
      x = sum * 1.7f * scale;
    }
    return v;
  }

  /// The bytes of `v` in another element type.
  static std::vector<std::byte> as(DType dtype, const std::vector<float>& v) {
    std::vector<std::byte> bytes(v.size() * size_of(dtype));
    for (size_t i = 0; i < v.size(); ++i) {
      if (dtype == DType::kFloat32) {
        std::memcpy(bytes.data() + 4 * i, &v[i], 4);
      } else {
        const uint16_t h = dtype == DType::kFloat16 ? float_to_f16(v[i]) : float_to_bf16(v[i]);
        std::memcpy(bytes.data() + 2 * i, &h, 2);
      }
    }
    return bytes;
  }

  static void expect_near(const std::vector<float>& got, const std::vector<float>& want, float tolerance) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(want[i]) && std::isnan(got[i])) continue;
      ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << "at " << i;
    }
  }

  std::mt19937 engine{12345};
  ThreadPool pool;
  Context ctx;
};

inline std::string kernel_test_name(const testing::TestParamInfo<std::tuple<Isa, int>>& info) {
  return std::string(to_string(std::get<0>(info.param))) + "_" + std::to_string(std::get<1>(info.param));
}

#define DECANT_EACH_ISA(Suite)                                                                           \
  INSTANTIATE_TEST_SUITE_P(, Suite,                                                                      \
                           testing::Combine(testing::ValuesIn(available_isas()), testing::Values(1, 3)), \
                           kernel_test_name)

}  // namespace decant::kernels
