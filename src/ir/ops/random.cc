#include <atomic>
#include <bit>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014). Started from the bits of the `seed` attribute, so that equal seeds
/// give equal tensors in each evaluation. Without the attribute every evaluation takes the next number of a
/// sequence that starts at the same value in each process.
class Generator {
 public:
  explicit Generator(const Node& node) {
    static std::atomic<uint64_t> unseeded{0};
    const float* seed = node.attribute<float>("seed");
    state_ = seed ? std::bit_cast<uint32_t>(*seed) : (++unseeded << 32);
  }

  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  /// In [0, 1), a multiple of 2^-53.
  double uniform() { return std::ldexp(static_cast<double>(next() >> 11), -53); }

  /// Standard normal, by Box and Muller; one number of each pair is used.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint64_t state_;
};

struct Range {
  double a, b;  ///< low and high, or mean and scale
};

Range range_of(const Node& node, bool normal) {
  return normal ? Range{node.float_attribute("mean", 0.0f), node.float_attribute("scale", 1.0f)}
                : Range{node.float_attribute("low", 0.0f), node.float_attribute("high", 1.0f)};
}

/// The attribute `dtype`, or `fallback`; unsupported unless it is a type that `allowed` takes.
Result<DType> dtype_of(const Node& node, DType fallback, bool (*allowed)(DType)) {
  const int64_t* code = node.attribute<int64_t>("dtype");
  const DType dtype = code ? dtype_from_onnx_code(*code) : fallback;
  if (allowed(dtype)) return dtype;
  return unsupported(fmt::format("{}: elements of this dtype are not supported", node.describe()));
}

template <bool kNormal>
Result<Tensor> random_tensor(const Node& node, DType dtype, const Dims& dims) {
  DECANT_ASSIGN(Tensor out, Tensor::allocate(dtype, dims));
  const Range range = range_of(node, kNormal);
  Generator generator(node);
  std::vector<double> values(static_cast<size_t>(out.elements()));
  for (double& v : values) {
    v = kNormal ? range.a + range.b * generator.normal()
                : range.a + (range.b - range.a) * generator.uniform();
  }
  write_range<double>(out, 0, std::span<const double>(values));
  return out;
}

Status infer_random(InferContext& context) {
  DECANT_ASSIGN(const DType dtype, dtype_of(context.node(), DType::kFloat32, is_float));
  const auto* shape = context.node().attribute<std::vector<int64_t>>("shape");
  if (!shape) return context.error("the shape is missing");
  for (int64_t d : *shape) {
    if (d < 0) return context.error("a dim is negative");
  }
  context.set_output(0, dtype, Shape(shape->begin(), shape->end()));
  return ok_status();
}

template <bool kNormal>
EvalResult eval_random(const Node& node, EvalInputs) {
  DECANT_ASSIGN(const DType dtype, dtype_of(node, DType::kFloat32, is_float));
  const auto* shape = node.attribute<std::vector<int64_t>>("shape");
  if (!shape) return node_error(node, "the shape is missing");
  return single(random_tensor<kNormal>(node, dtype, *shape));
}

Status infer_random_like(InferContext& context) {
  DECANT_ASSIGN(const DType dtype, dtype_of(context.node(), context.dtype(0), is_float));
  context.set_output(0, dtype, context.shape(0));
  return ok_status();
}

template <bool kNormal>
EvalResult eval_random_like(const Node& node, EvalInputs inputs) {
  DECANT_ASSIGN(const DType dtype, dtype_of(node, inputs[0]->dtype(), is_float));
  return single(random_tensor<kNormal>(node, dtype, inputs[0]->dims()));
}

bool is_number_or_bool(DType t) { return is_number(t) || t == DType::kBool; }

Status infer_bernoulli(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_ASSIGN(const DType dtype, dtype_of(context.node(), context.dtype(0), is_number_or_bool));
  context.set_output(0, dtype, context.shape(0));
  return ok_status();
}

EvalResult eval_bernoulli(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (!is_float(x.dtype())) return node_error(node, "needs float probabilities");
  DECANT_ASSIGN(const DType dtype, dtype_of(node, x.dtype(), is_number_or_bool));
  Generator generator(node);
  std::vector<double> values = read<double>(x);
  for (double& v : values) v = generator.uniform() < v ? 1 : 0;
  return single(make_tensor<double>(dtype, x.dims(), values));
}

Status infer_multinomial(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_rank(context, 0, 2));
  DECANT_ASSIGN(const DType dtype, dtype_of(context.node(), DType::kInt32, is_index));
  const int64_t samples = context.node().int_attribute("sample_size", 1);
  if (samples < 0) return context.error("sample_size is negative");
  const Dim rows = context.shape(0) ? (*context.shape(0))[0] : context.fresh_symbol("batch");
  context.set_output(0, dtype, Shape{rows, Dim(samples)});
  return ok_status();
}

/// Draws classes from unnormalized log probabilities [batch, classes].
EvalResult eval_multinomial(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (!is_float(x.dtype()) || x.rank() != 2 || (x.dims()[0] > 0 && x.dims()[1] == 0)) {
    return node_error(node, "needs float log probabilities [batch, classes]");
  }
  DECANT_ASSIGN(const DType dtype, dtype_of(node, DType::kInt32, is_index));
  const int64_t rows = x.dims()[0], classes = x.dims()[1], samples = node.int_attribute("sample_size", 1);
  DECANT_ASSIGN(Tensor out, Tensor::allocate(dtype, {rows, samples}));
  const std::vector<double> values = read<double>(x);
  Generator generator(node);
  std::vector<int64_t> drawn;
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = values.data() + r * classes;
    double largest = row[0];
    for (int64_t c = 1; c < classes; ++c) largest = std::fmax(largest, row[c]);
    std::vector<double> sums;
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sums.push_back(sum += std::exp(row[c] - largest));
    for (int64_t s = 0; s < samples; ++s) {
      const double at = generator.uniform() * sum;
      int64_t c = 0;
      while (c + 1 < classes && !(at < sums[static_cast<size_t>(c)])) ++c;
      drawn.push_back(c);
    }
  }
  write_range<int64_t>(out, 0, std::span<const int64_t>(drawn));
  return single(std::move(out));
}

OpDef random_op(std::string_view name, std::string_view doc, int inputs, Status (*infer)(InferContext&),
                EvalResult (*eval)(const Node&, EvalInputs)) {
  return {.name = name,
          .doc = doc,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .infer = infer,
          .eval = eval,
          .random = true};
}

}  // namespace

DECANT_OP(RandomNormal) {
  return random_op("RandomNormal", "Normal numbers of mean and scale", 0, infer_random, eval_random<true>);
}
DECANT_OP(RandomUniform) {
  return random_op("RandomUniform", "Uniform numbers in [low, high)", 0, infer_random, eval_random<false>);
}
DECANT_OP(RandomNormalLike) {
  return random_op("RandomNormalLike", "RandomNormal in the input's shape", 1, infer_random_like,
                   eval_random_like<true>);
}
DECANT_OP(RandomUniformLike) {
  return random_op("RandomUniformLike", "RandomUniform in the input's shape", 1, infer_random_like,
                   eval_random_like<false>);
}
DECANT_OP(Bernoulli) {
  return random_op("Bernoulli", "1 with the input's probability, else 0", 1, infer_bernoulli, eval_bernoulli);
}
DECANT_OP(Multinomial) {
  return random_op("Multinomial", "Classes drawn from unnormalized log probabilities", 1, infer_multinomial,
                   eval_multinomial);
}

}  // namespace decant::ir
