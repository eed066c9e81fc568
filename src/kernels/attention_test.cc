#include <cmath>
#include <limits>

#include "kernels/reference/reference.h"
#include "kernels/testing.h"

namespace decant::kernels {
namespace {

class AttentionTest : public KernelTest {
 protected:
  /// Compares with the reference on random data. Positions past `kv_length` hold NaN: reading one shows.
  void check(AttentionArgs g, bool position_major = false) {
    const int64_t capacity = g.kv_length + 7;
    const auto strides = [&](int64_t heads, int64_t positions, int64_t dim) {
      return position_major ? AttentionStrides{heads * positions * dim, dim, heads * dim}
                            : AttentionStrides{heads * positions * dim, positions * dim, dim};
    };
    g.q_strides = strides(g.q_heads, g.q_len, g.qk_dim);
    g.k_strides = strides(g.kv_heads, capacity, g.qk_dim);
    g.v_strides = strides(g.kv_heads, capacity, g.v_dim);
    g.out_strides = strides(g.q_heads, g.q_len, g.v_dim);
    const auto q = random(g.batch * g.q_heads * g.q_len * g.qk_dim, 1.5f);
    auto k = random(g.batch * g.kv_heads * capacity * g.qk_dim);
    auto v = random(g.batch * g.kv_heads * capacity * g.v_dim);
    for (int64_t b = 0; b < g.batch; ++b) {
      for (int64_t h = 0; h < g.kv_heads; ++h) {
        for (int64_t j = g.kv_lengths ? g.kv_lengths[b] : g.kv_length; j < capacity; ++j) {
          float* const key = &k[static_cast<size_t>(b * g.k_strides.batch + h * g.k_strides.head +
                                                    j * g.k_strides.position)];
          float* const value = &v[static_cast<size_t>(b * g.v_strides.batch + h * g.v_strides.head +
                                                      j * g.v_strides.position)];
          std::fill(key, key + g.qk_dim, std::numeric_limits<float>::quiet_NaN());
          std::fill(value, value + g.v_dim, std::numeric_limits<float>::quiet_NaN());
        }
      }
    }
    const auto k_bytes = as(g.kv_dtype, k), v_bytes = as(g.kv_dtype, v);
    std::vector<float> got(static_cast<size_t>(g.batch * g.q_heads * g.q_len * g.v_dim), 77.0f), want = got;
    g.q = q.data();
    g.k = k_bytes.data();
    g.v = v_bytes.data();
    g.out = want.data();
    reference::attention(g);
    g.out = got.data();
    std::vector<std::byte> scratch(attention_scratch_bytes(g, pool.size()));
    attention(ctx, g, scratch);
    SCOPED_TRACE(testing::Message() << "q_len " << g.q_len << " kv " << g.kv_length << " heads " << g.q_heads
                                    << "/" << g.kv_heads << " dims " << g.qk_dim << "/" << g.v_dim);
    expect_near(got, want, 1e-5f);
  }

  static AttentionArgs shape(int64_t batch, int64_t q_heads, int64_t kv_heads, int64_t q_len,
                             int64_t kv_length, int64_t dim) {
    AttentionArgs g;
    g.batch = batch;
    g.q_heads = q_heads;
    g.kv_heads = kv_heads;
    g.q_len = q_len;
    g.kv_length = kv_length;
    g.qk_dim = g.v_dim = dim;
    g.scale = 1.0f / std::sqrt(static_cast<float>(dim));
    g.causal = true;
    g.offset = kv_length - q_len;
    return g;
  }
};

TEST_P(AttentionTest, DecodeInEveryCacheType) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const int64_t length : {1, 15, 64, 65, 300}) {
      auto g = shape(2, 6, 2, 1, length, 64);
      g.kv_dtype = dtype;
      check(g);
      check(g, true);
    }
  }
}

TEST_P(AttentionTest, PromptInEveryCacheType) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const int64_t length : {16, 37, 150}) {
      auto g = shape(1, 6, 2, length, length, 64);
      g.kv_dtype = dtype;
      check(g);
      check(g, true);
    }
  }
}

TEST_P(AttentionTest, QueryLengthsAfterAPast) {
  for (const int64_t q_len : {1, 2, 3, 7, 8, 9, 20, 130}) check(shape(1, 4, 2, q_len, q_len + 70, 32));
}

TEST_P(AttentionTest, HeadDimensionsWithTails) {
  for (const int64_t dim : {1, 8, 20, 33, 80, 160}) {
    auto g = shape(1, 2, 1, 1, 90, dim);
    g.v_dim = dim + 3;
    check(g);
    g.q_len = 20;
    g.offset = 70;
    check(g);
  }
}

TEST_P(AttentionTest, WindowSoftcapAndNoCausality) {
  for (const int64_t q_len : {1, 5, 40}) {
    for (const int64_t window : {0, 3, 50, 1000}) {
      auto g = shape(1, 4, 1, q_len, 200, 16);
      g.window_left = window;
      check(g);
      g.softcap = 2.5f;
      check(g);
      g.causal = false;
      g.window_left = -1;
      check(g);
    }
  }
}

TEST_P(AttentionTest, MasksAndFullyMaskedRows) {
  for (const int64_t q_len : {1, 4, 24}) {
    auto g = shape(2, 4, 2, q_len, 90, 16);
    // Batch 0 is padded on the left; in batch 1 query 0 attends nothing.
    std::vector<uint8_t> mask(static_cast<size_t>(2 * q_len * 90), 1);
    for (int64_t i = 0; i < q_len; ++i) {
      for (int64_t j = 0; j < 70; ++j) mask[static_cast<size_t>(i * 90 + j)] = 0;
    }
    for (int64_t j = 0; j < 90; ++j) mask[static_cast<size_t>(q_len * 90 + j)] = 0;
    g.mask = mask.data();
    g.mask_dtype = DType::kBool;
    g.mask_batch_stride = q_len * 90;
    g.mask_query_stride = 90;
    check(g);

    auto added = random(2 * 4 * q_len * 90);
    for (size_t i = 0; i < added.size(); i += 3) added[i] = -INFINITY;
    g.mask = added.data();
    g.mask_dtype = DType::kFloat32;
    g.mask_batch_stride = 4 * q_len * 90;
    g.mask_head_stride = q_len * 90;
    check(g);
    g.mask_query_stride = 0;
    g.mask_head_stride = 90;
    check(g);
  }
}

TEST_P(AttentionTest, LengthsAndOffsetsOfEachBatch) {
  const int64_t lengths[] = {50, 1, 0}, offsets[] = {40, 0, -1};
  for (const int64_t q_len : {1, 10}) {
    auto g = shape(3, 4, 2, q_len, 50, 16);
    g.kv_lengths = lengths;
    g.offsets = offsets;
    check(g);
  }
}

DECANT_EACH_ISA(AttentionTest);

}  // namespace
}  // namespace decant::kernels
