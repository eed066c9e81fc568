#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// Shape of a NumPy matmul: vectors get a dim of 1 that is dropped again, leading dims broadcast.
Result<std::optional<Shape>> matmul_shape(InferContext& context, size_t first = 0, size_t second = 1) {
  if (!context.shape(first) || !context.shape(second)) return std::optional<Shape>();
  Shape a = *context.shape(first), b = *context.shape(second);
  if (a.empty() || b.empty()) return context.error("scalars cannot be multiplied as matrices");
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), Dim(1));
  if (column) b.push_back(Dim(1));
  DECANT_ASSIGN([[maybe_unused]] const Dim inner, merge_dims(context, a.back(), b[b.size() - 2]));
  DECANT_ASSIGN(Shape out,
                broadcast_shapes(context, Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2)));
  if (!row) out.push_back(a[a.size() - 2]);
  if (!column) out.push_back(b.back());
  return std::optional<Shape>(std::move(out));
}

/// Operands of one matmul, batch dims aligned.
struct Problem {
  Dims batch, dims;  ///< batch dims; result dims
  int64_t m, k, n;
  Dims a_strides, b_strides;  ///< of the batch dims, in matrices
};

Result<Problem> plan(const Node& node, const Tensor& x, const Tensor& y) {
  Dims a = x.dims(), b = y.dims();
  if (a.empty() || b.empty()) return node_error(node, "scalars cannot be multiplied as matrices");
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  Problem p;
  p.m = a[a.size() - 2];
  p.k = a.back();
  p.n = b.back();
  const Dims a_batch(a.begin(), a.end() - 2), b_batch(b.begin(), b.end() - 2);
  const auto batch = broadcast_dims(a_batch, b_batch);
  if (p.k != b[b.size() - 2] || !batch) {
    return node_error(node, fmt::format("{} and {} cannot be multiplied", describe(x), describe(y)));
  }
  p.batch = p.dims = *batch;
  if (!row) p.dims.push_back(p.m);
  if (!column) p.dims.push_back(p.n);
  p.a_strides = broadcast_strides(a_batch, *batch);
  p.b_strides = broadcast_strides(b_batch, *batch);
  return p;
}

/// C is the accumulator type; a_offset and b_offset are taken off each element (per row of A, per column of
/// B).
template <typename C>
Status multiply(const Problem& p, const Tensor& x, const Tensor& y, const std::vector<C>& a_offset,
                const std::vector<C>& b_offset, Tensor& out) {
  if (out.elements() == 0) return ok_status();
  std::vector<C> b(static_cast<size_t>(p.n)), sums(static_cast<size_t>(p.m * p.n));
  for_each_index<2>(p.batch, {p.a_strides, p.b_strides}, [&](int64_t i, const std::array<int64_t, 2>& at) {
    std::fill(sums.begin(), sums.end(), C(0));
    std::vector<C> left(static_cast<size_t>(p.m * p.k));
    read_range<C>(x, at[0] * p.m * p.k, std::span<C>(left));
    for (int64_t k = 0; k < p.k; ++k) {
      read_range<C>(y, (at[1] * p.k + k) * p.n, std::span<C>(b));
      for (int64_t n = 0; n < p.n; ++n) {
        b[static_cast<size_t>(n)] -= b_offset[b_offset.size() == 1 ? 0 : static_cast<size_t>(n)];
      }
      for (int64_t m = 0; m < p.m; ++m) {
        const C factor = left[static_cast<size_t>(m * p.k + k)] -
                         a_offset[a_offset.size() == 1 ? 0 : static_cast<size_t>(m)];
        C* row = sums.data() + m * p.n;
        for (int64_t n = 0; n < p.n; ++n) row[n] += factor * b[static_cast<size_t>(n)];
      }
    }
    write_range<C>(out, i * p.m * p.n, std::span<const C>(sums));
  });
  return ok_status();
}

EvalResult eval_matmul(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &y = *inputs[1];
  if (x.dtype() != y.dtype() || !is_number(x.dtype()))
    return node_error(node, "needs number tensors of one type");
  DECANT_ASSIGN(const Problem p, plan(node, x, y));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), p.dims));
  if (is_float(x.dtype())) {
    DECANT_RETURN_IF_ERROR(multiply<double>(p, x, y, {0.0}, {0.0}, out));
  } else {
    DECANT_RETURN_IF_ERROR(multiply<uint64_t>(p, x, y, {0}, {0}, out));
  }
  return single(std::move(out));
}

bool is_byte(DType t) { return t == DType::kInt8 || t == DType::kUInt8; }

/// Zero points of one operand: one, or one for each row of A / column of B.
Result<std::vector<int64_t>> zero_points(const Node& node, const Tensor* t, const Tensor& of, int64_t count) {
  if (t == nullptr) return std::vector<int64_t>{0};
  if (t->dtype() != of.dtype() || (t->elements() != 1 && t->elements() != count)) {
    return node_error(node, fmt::format("the zero point {} does not fit {}", describe(*t), describe(of)));
  }
  return t->to_ints();
}

EvalResult eval_matmul_integer(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &y = *inputs[1];
  if (!is_byte(x.dtype()) || !is_byte(y.dtype())) return node_error(node, "needs int8 or uint8 tensors");
  DECANT_ASSIGN(const Problem p, plan(node, x, y));
  DECANT_ASSIGN(const auto a_zero, zero_points(node, optional_input(inputs, 2), x, p.m));
  DECANT_ASSIGN(const auto b_zero, zero_points(node, optional_input(inputs, 3), y, p.n));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(DType::kInt32, p.dims));
  DECANT_RETURN_IF_ERROR(multiply<int64_t>(p, x, y, a_zero, b_zero, out));
  return single(std::move(out));
}

/// Scales of one operand, as many as zero points may be.
Result<std::vector<double>> scales_of(const Node& node, const Tensor& t, int64_t count) {
  if (!is_float(t.dtype()) || (t.elements() != 1 && t.elements() != count)) {
    return node_error(node, fmt::format("the scale {} does not fit {} rows or columns", describe(t), count));
  }
  return read<double>(t);
}

/// saturate(round((a - a_zero) x (b - b_zero) * (a_scale * b_scale / y_scale)) + y_zero), the factor in
/// float32.
EvalResult eval_qlinear_matmul(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &y = *inputs[3], &zero = *inputs[7];
  if (!is_byte(x.dtype()) || !is_byte(y.dtype()) || !is_byte(zero.dtype()))
    return node_error(node, "needs int8 or uint8 tensors");
  DECANT_ASSIGN(const Problem p, plan(node, x, y));
  DECANT_ASSIGN(const auto a_zero, zero_points(node, inputs[2], x, p.m));
  DECANT_ASSIGN(const auto b_zero, zero_points(node, inputs[5], y, p.n));
  DECANT_ASSIGN(const auto a_scale, scales_of(node, *inputs[1], p.m));
  DECANT_ASSIGN(const auto b_scale, scales_of(node, *inputs[4], p.n));
  DECANT_ASSIGN(const auto y_scale, scales_of(node, *inputs[6], p.m));
  if (zero.elements() != 1 && zero.elements() != p.m) return node_error(node, "the zero points do not fit");
  DECANT_ASSIGN(Tensor sums, Tensor::allocate(DType::kInt64, p.dims));
  DECANT_RETURN_IF_ERROR(multiply<int64_t>(p, x, y, a_zero, b_zero, sums));
  const auto pick = [](const auto& list, int64_t i) {
    return list[list.size() == 1 ? 0 : static_cast<size_t>(i)];
  };
  const std::vector<double> offsets = read<double>(zero);
  const IntegerRange range = integer_range(zero.dtype());
  std::vector<int64_t> values(static_cast<size_t>(sums.elements()));
  for (int64_t i = 0; i < sums.elements(); ++i) {
    const int64_t row = i / p.n % p.m, column = i % p.n;
    const float factor = static_cast<float>(pick(a_scale, row)) * static_cast<float>(pick(b_scale, column)) /
                         static_cast<float>(pick(y_scale, row));
    const double scaled = std::nearbyint(static_cast<double>(sums.int_at(i)) * static_cast<double>(factor));
    values[static_cast<size_t>(i)] = static_cast<int64_t>(std::clamp(
        scaled + pick(offsets, row), static_cast<double>(range.min), static_cast<double>(range.max)));
  }
  return single(make_tensor<int64_t>(zero.dtype(), p.dims, values));
}

Status infer_qlinear_matmul(InferContext& context) {
  for (const size_t i : {size_t{0}, size_t{3}, size_t{7}})
    DECANT_RETURN_IF_ERROR(require_dtype(context, i, is_byte, "an int8 or uint8 tensor"));
  DECANT_ASSIGN(auto shape, matmul_shape(context, 0, 3));
  context.set_output(0, context.dtype(7), std::move(shape));
  return ok_status();
}

Status infer_matmul(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, 2));
  DECANT_ASSIGN(auto shape, matmul_shape(context));
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

Status infer_matmul_integer(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_byte, "an int8 or uint8 tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_byte, "an int8 or uint8 tensor"));
  DECANT_ASSIGN(auto shape, matmul_shape(context));
  context.set_output(0, DType::kInt32, std::move(shape));
  return ok_status();
}

Status infer_gemm(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, context.input_count()));
  DECANT_RETURN_IF_ERROR(require_rank(context, 0, 2));
  DECANT_RETURN_IF_ERROR(require_rank(context, 1, 2));
  const size_t ta = context.node().int_attribute("transA", 0) != 0,
               tb = context.node().int_attribute("transB", 0) != 0;
  Shape out = context.fresh_shape(2, "gemm");
  if (context.shape(0)) out[0] = (*context.shape(0))[ta];
  if (context.shape(1)) out[1] = (*context.shape(1))[1 - tb];
  if (context.shape(0) && context.shape(1)) {
    DECANT_ASSIGN([[maybe_unused]] const Dim inner,
                  merge_dims(context, (*context.shape(0))[1 - ta], (*context.shape(1))[tb]));
  }
  context.set_output(0, context.dtype(0), std::move(out));
  return ok_status();
}

/// alpha * A' * B' + beta * C.
EvalResult eval_gemm(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &y = *inputs[1];
  const Tensor* c = optional_input(inputs, 2);
  if (x.rank() != 2 || y.rank() != 2 || x.dtype() != y.dtype() || !is_number(x.dtype()) ||
      (c != nullptr && c->dtype() != x.dtype())) {
    return node_error(node, "needs two matrices and an optional bias of one number type");
  }
  const bool ta = node.int_attribute("transA", 0) != 0, tb = node.int_attribute("transB", 0) != 0;
  const double alpha = node.float_attribute("alpha", 1.0f), beta = node.float_attribute("beta", 1.0f);
  const int64_t m = x.dims()[ta ? 1 : 0], k = x.dims()[ta ? 0 : 1], n = y.dims()[tb ? 0 : 1];
  if (y.dims()[tb ? 1 : 0] != k) {
    return node_error(node, fmt::format("{} and {} cannot be multiplied", describe(x), describe(y)));
  }
  const Dims dims = {m, n};
  if (c != nullptr) {
    const auto fits = broadcast_dims(c->dims(), dims);
    if (!fits || *fits != dims)
      return node_error(node, fmt::format("bias {} does not broadcast", describe(*c)));
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), dims));
  const std::vector<double> a = read<double>(x), b = read<double>(y);
  std::vector<double> values(static_cast<size_t>(out.elements()), 0.0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += a[static_cast<size_t>(ta ? l * m + i : i * k + l)] *
               b[static_cast<size_t>(tb ? j * k + l : l * n + j)];
      }
      values[static_cast<size_t>(i * n + j)] = alpha * sum;
    }
  }
  if (c != nullptr) {
    const std::vector<double> bias = read<double>(*c);
    for_each_index<1>(dims, {broadcast_strides(c->dims(), dims)},
                      [&](int64_t i, const std::array<int64_t, 1>& at) {
                        values[static_cast<size_t>(i)] += beta * bias[static_cast<size_t>(at[0])];
                      });
  }
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

}  // namespace

DECANT_OP(MatMul) {
  return {.name = "MatMul",
          .doc = "Matrix product, leading dims broadcast",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_matmul,
          .eval = eval_matmul};
}

DECANT_OP(QLinearMatMul) {
  return {.name = "QLinearMatMul",
          .doc = "Product of quantized matrices, quantized again",
          .min_inputs = 8,
          .max_inputs = 8,
          .infer = infer_qlinear_matmul,
          .eval = eval_qlinear_matmul};
}

DECANT_OP(MatMulInteger) {
  return {.name = "MatMulInteger",
          .doc = "8-bit matrix product in int32, zero points taken off",
          .min_inputs = 2,
          .max_inputs = 4,
          .infer = infer_matmul_integer,
          .eval = eval_matmul_integer};
}

DECANT_OP(Gemm) {
  return {.name = "Gemm",
          .doc = "alpha * A * B + beta * C; transA, transB",
          .min_inputs = 2,
          .max_inputs = 3,
          .infer = infer_gemm,
          .eval = eval_gemm};
}

}  // namespace decant::ir
