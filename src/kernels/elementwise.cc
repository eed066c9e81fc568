#include <cmath>

#include "kernels/parallel.h"

namespace decant::kernels {
namespace {

constexpr int64_t kStep = 64;  // parts start at multiples of a cache line

// About how many bytes of copying one element costs.
double unary_cost(UnaryOp op) {
  switch (op) {
    case UnaryOp::kRelu:
    case UnaryOp::kNeg:
    case UnaryOp::kAbs:
    case UnaryOp::kSquare:
      return 8;
    case UnaryOp::kSin:
    case UnaryOp::kCos:
    case UnaryOp::kLog:
      return 100;
    default:
      return 16;
  }
}

bool has_vector_form(UnaryOp op) { return static_cast<int>(op) < kTableUnaryOps; }

float scalar_unary(UnaryOp op, float x) {
  return op == UnaryOp::kSin ? std::sin(x) : op == UnaryOp::kCos ? std::cos(x) : std::log(x);
}

}  // namespace

static_assert(static_cast<int>(UnaryOp::kSin) == kTableUnaryOps);
static_assert(kBinaryOps == kTableBinaryOps);

void unary(const Context& ctx, UnaryOp op, const float* x, float* y, int64_t n) {
  for_range(ctx, n, unary_cost(op), kStep, [&](int, int64_t begin, int64_t end) {
    if (has_vector_form(op)) {
      ctx.table->unary[static_cast<int>(op)](x + begin, y + begin, end - begin);
    } else {
      for (int64_t i = begin; i < end; ++i) y[i] = scalar_unary(op, x[i]);
    }
  });
}

void binary(const Context& ctx, BinaryOp op, const float* a, const float* b, float* out, int64_t n) {
  for_range(ctx, n, 12, kStep, [&](int, int64_t begin, int64_t end) {
    ctx.table->binary[static_cast<int>(op)](a + begin, b + begin, out + begin, end - begin);
  });
}

void binary_row(const Context& ctx, BinaryOp op, const float* a, const float* b, float* out, int64_t rows,
                int64_t cols) {
  for_range(ctx, rows, 8.0 * static_cast<double>(cols), 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      ctx.table->binary[static_cast<int>(op)](a + r * cols, b, out + r * cols, cols);
    }
  });
}

void binary_scalar(const Context& ctx, BinaryOp op, const float* a, float b, float* out, int64_t n,
                   bool swapped) {
  for_range(ctx, n, 8, kStep, [&](int, int64_t begin, int64_t end) {
    if (swapped) {
      ctx.table->scalar_binary[static_cast<int>(op)](b, a + begin, out + begin, end - begin);
    } else {
      ctx.table->binary_scalar[static_cast<int>(op)](a + begin, b, out + begin, end - begin);
    }
  });
}

void gated(const Context& ctx, UnaryOp act, int64_t rows, int64_t cols, const float* gate, int64_t ld_gate,
           const float* up, int64_t ld_up, float* out, int64_t ld_out) {
  const double cost = unary_cost(act) + 8;
  const auto row = [&](int64_t r, int64_t begin, int64_t end) {
    const float* const g = gate + r * ld_gate;
    const float* const u = up + r * ld_up;
    float* const y = out + r * ld_out;
    if (has_vector_form(act)) {
      ctx.table->gated[static_cast<int>(act)](g + begin, u + begin, y + begin, end - begin);
    } else {
      for (int64_t i = begin; i < end; ++i) y[i] = scalar_unary(act, g[i]) * u[i];
    }
  };
  if (rows == 1) {
    for_range(ctx, cols, cost, kStep, [&](int, int64_t begin, int64_t end) { row(0, begin, end); });
    return;
  }
  for_range(ctx, rows, cost * static_cast<double>(cols), 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) row(r, 0, cols);
  });
}

int64_t argmax(const Context& ctx, const float* x, int64_t n) {
  // The largest of each block first; then only the first block that holds the largest of all is searched.
  constexpr int64_t kBlock = 4096;
  float top = -INFINITY;
  int64_t best = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    const float largest = ctx.table->max_value(x + i, std::min(kBlock, n - i));
    if (largest > top) {
      top = largest;
      best = i;
    } else if (!(largest <= top)) {  // a NaN got through: look at each value
      for (int64_t j = i; j < std::min(n, i + kBlock); ++j) {
        if (x[j] > top) {
          top = x[j];
          best = i;
        }
      }
    }
  }
  for (int64_t j = best; j < n; ++j) {
    if (x[j] == top) return j;
  }
  return 0;
}

void convert_to_f32(const Context& ctx, DType from, const void* x, float* y, int64_t n) {
  const ElementType type = element_type(from);
  for_range(ctx, n, 8, kStep, [&](int, int64_t begin, int64_t end) {
    ctx.table->to_f32[type](element_at(x, from, begin), y + begin, end - begin);
  });
}

void convert_from_f32(const Context& ctx, DType to, const float* x, void* y, int64_t n) {
  const ElementType type = element_type(to);
  for_range(ctx, n, 8, kStep, [&](int, int64_t begin, int64_t end) {
    ctx.table->from_f32[type](x + begin, const_cast<void*>(element_at(y, to, begin)), end - begin);
  });
}

}  // namespace decant::kernels
