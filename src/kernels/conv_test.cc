#include "kernels/conv.h"

#include <cmath>

#include "kernels/testing.h"

namespace decant::kernels {
namespace {

class ConvTest : public KernelTest {
 protected:
  void check(ConvArgs a, bool with_bias = true) {
    const auto size = [](int64_t in, int64_t k, int64_t stride, int64_t dilation, int64_t pads) {
      return (in + pads - (k - 1) * dilation - 1) / stride + 1;
    };
    a.out_height = size(a.height, a.kernel_h, a.stride_h, a.dilation_h, 2 * a.pad_top);
    a.out_width = size(a.width, a.kernel_w, a.stride_w, a.dilation_w, 2 * a.pad_left);
    SCOPED_TRACE(testing::Message() << a.groups << " x " << a.in_channels << " -> " << a.out_channels << ", "
                                    << a.height << "x" << a.width << ", kernel " << a.kernel_h << "x"
                                    << a.kernel_w << " stride " << a.stride_h << "x" << a.stride_w);
    const int64_t filters = a.groups * a.out_channels;
    const auto x = random(a.batch * a.groups * a.in_channels * a.height * a.width);
    const auto w = random(filters * a.in_channels * a.kernel_h * a.kernel_w);
    const auto bias = random(filters);
    a.x = x.data();
    a.weights = w.data();
    a.bias = with_bias ? bias.data() : nullptr;
    std::vector<float> got(static_cast<size_t>(a.batch * filters * a.out_height * a.out_width)), want = got;
    a.y = got.data();
    std::vector<std::byte> scratch(conv_scratch_bytes(a, pool.size()));
    conv(ctx, a, scratch);
    size_t at = 0;
    for (int64_t i = 0; i < a.batch * filters; ++i) {
      for (int64_t p = 0; p < a.out_height * a.out_width; ++p) {
        double sum = with_bias ? bias[static_cast<size_t>(i % filters)] : 0;
        for (int64_t k = 0; k < a.in_channels * a.kernel_h * a.kernel_w; ++k) {
          const int64_t tap = k % (a.kernel_h * a.kernel_w), channel = k / (a.kernel_h * a.kernel_w);
          const int64_t y = p / a.out_width * a.stride_h - a.pad_top + tap / a.kernel_w * a.dilation_h;
          const int64_t c = p % a.out_width * a.stride_w - a.pad_left + tap % a.kernel_w * a.dilation_w;
          if (y < 0 || y >= a.height || c < 0 || c >= a.width) continue;
          const int64_t plane =
              (i / filters * a.groups + i % filters / a.out_channels) * a.in_channels + channel;
          sum += static_cast<double>(x[static_cast<size_t>((plane * a.height + y) * a.width + c)]) *
                 w[static_cast<size_t>(i % filters * a.in_channels * a.kernel_h * a.kernel_w + k)];
        }
        want[at++] = static_cast<float>(sum);
      }
    }
    expect_near(got, want,
                2e-6f * std::sqrt(static_cast<float>(a.in_channels * a.kernel_h * a.kernel_w + 1)));
  }

  static ConvArgs make(int64_t groups, int64_t in, int64_t out, int64_t h, int64_t w, int64_t kh,
                       int64_t kw) {
    ConvArgs a;
    a.batch = 2;
    a.groups = groups;
    a.in_channels = in;
    a.out_channels = out;
    a.height = h;
    a.width = w;
    a.kernel_h = kh;
    a.kernel_w = kw;
    return a;
  }
};

TEST_P(ConvTest, KernelsStridesPadsAndDilations) {
  for (int64_t stride : {1, 2, 3}) {
    for (int64_t pad : {0, 1, 2}) {
      for (int64_t dilation : {1, 2}) {
        ConvArgs a = make(1, 5, 9, 11, 13, 3, 3);
        a.stride_h = a.stride_w = stride;
        a.pad_top = a.pad_left = pad;
        a.dilation_h = a.dilation_w = dilation;
        check(a, pad != 1);
        a.groups = 3;
        check(a);
        a.in_channels = 1;
        a.out_channels = 2;
        check(a);
      }
    }
  }
}

TEST_P(ConvTest, PointsAndPatches) {
  check(make(1, 70, 65, 7, 9, 1, 1));
  ConvArgs patches = make(1, 3, 40, 32, 32, 8, 8);
  patches.stride_h = patches.stride_w = 8;
  check(patches);
}

TEST_P(ConvTest, OneAxis) {
  ConvArgs a = make(1, 80, 33, 1, 101, 1, 3);
  a.pad_left = 1;
  check(a);
  a.stride_w = 2;
  check(a);
  ConvArgs wide = make(4, 6, 6, 1, 50, 1, 16);
  wide.pad_left = 8;
  check(wide);
}

TEST_P(ConvTest, KernelLargerThanTheImage) {
  ConvArgs a = make(1, 2, 3, 2, 3, 5, 5);
  a.pad_top = a.pad_left = 4;
  check(a);
}

TEST_P(ConvTest, Pools) {
  PoolArgs a;
  a.planes = 3;
  a.height = 7;
  a.width = 9;
  a.kernel_h = a.kernel_w = 3;
  a.stride_h = a.stride_w = 2;
  a.pad_top = a.pad_left = a.pad_bottom = a.pad_right = 1;
  a.out_height = 4;
  a.out_width = 5;
  const auto x = random(a.planes * a.height * a.width);
  std::vector<float> y(static_cast<size_t>(a.planes * a.out_height * a.out_width));
  a.x = x.data();
  a.y = y.data();
  for (int mode = 0; mode < 3; ++mode) {
    a.count_padding = mode == 2;
    if (mode == 0) max_pool(ctx, a);
    if (mode > 0) average_pool(ctx, a);
    for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
      const int64_t plane = i / 20, oy = i % 20 / 5, ox = i % 5;
      float best = -1e30f, sum = 0, count = 0;
      for (int64_t r = oy * 2 - 1; r < oy * 2 + 2; ++r) {
        for (int64_t c = ox * 2 - 1; c < ox * 2 + 2; ++c) {
          if (r < 0 || r >= a.height || c < 0 || c >= a.width) continue;
          const float v = x[static_cast<size_t>((plane * a.height + r) * a.width + c)];
          best = std::max(best, v);
          sum += v;
          ++count;
        }
      }
      const float want = mode == 0 ? best : sum / (mode == 1 ? count : 9);
      ASSERT_NEAR(y[static_cast<size_t>(i)], want, 1e-5f) << "mode " << mode << " at " << i;
    }
  }
}

DECANT_EACH_ISA(ConvTest);

}  // namespace
}  // namespace decant::kernels
