#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

using Complex = std::complex<double>;

constexpr double kPi = std::numbers::pi;
/// Transforms longer than this come from hostile lengths.
constexpr int64_t kMaxLength = int64_t{1} << 28;

/// Sum over n of x[n] exp(sign 2 pi i k n / N) for every k: halves even lengths, sums odd ones directly.
std::vector<Complex> transform(const std::vector<Complex>& x, double sign) {
  const size_t n = x.size();
  std::vector<Complex> out(n);
  if (n % 2 == 0 && n > 0) {
    std::vector<Complex> even(n / 2), odd(n / 2);
    for (size_t i = 0; i < n / 2; ++i) {
      even[i] = x[2 * i];
      odd[i] = x[2 * i + 1];
    }
    even = transform(even, sign);
    odd = transform(odd, sign);
    for (size_t k = 0; k < n / 2; ++k) {
      const Complex turned =
          odd[k] * std::polar(1.0, sign * 2 * kPi * static_cast<double>(k) / static_cast<double>(n));
      out[k] = even[k] + turned;
      out[k + n / 2] = even[k] - turned;
    }
    return out;
  }
  std::vector<Complex> roots(n);
  for (size_t i = 0; i < n; ++i) {
    roots[i] = std::polar(1.0, sign * 2 * kPi * static_cast<double>(i) / static_cast<double>(n));
  }
  for (size_t k = 0; k < n; ++k) {
    size_t at = 0;
    for (size_t i = 0; i < n; ++i) {
      out[k] += x[i] * roots[at];
      at = (at + k) % n;
    }
  }
  return out;
}

Result<int64_t> read_scalar(const Node& node, const Tensor& t, std::string_view what) {
  if (t.elements() != 1 || !is_index(t.dtype())) {
    return node_error(node, fmt::format("{} must be one integer, not {}", what, describe(t)));
  }
  return t.int_at(0);
}

std::optional<Dim> scalar_dim(InferContext& context, size_t i) {
  const auto elements = context.elements(i);
  if (!elements || elements->size() != 1) return std::nullopt;
  return (*elements)[0];
}

Status infer_dft(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an int32 or int64 tensor"));
  const Node& node = context.node();
  const bool inverse = node.int_attribute("inverse", 0) != 0,
             onesided = node.int_attribute("onesided", 0) != 0;
  std::optional<Shape> shape = context.shape(0);
  if (shape) {
    if (shape->size() < 2) return context.error("needs an input [..., length, ..., 1 or 2]");
    const auto given = context.has_input(2) ? context.constant_ints(2) : std::vector<int64_t>{-2};
    if (!given || given->size() != 1) {
      shape = context.fresh_shape(shape->size(), "dft");
    } else {
      DECANT_ASSIGN(const size_t axis, resolve_axis(node, (*given)[0], shape->size()));
      if (axis + 1 == shape->size()) return context.error("the axis holds the real and imaginary parts");
      Dim& length = (*shape)[axis];
      if (context.has_input(1)) {
        const auto wanted = scalar_dim(context, 1);
        length = wanted ? *wanted : context.fresh_symbol("dft");
      } else if (inverse && onesided) {
        length = (length - Dim(1)) * Dim(2);
      }
      if (onesided && !inverse) length = floor_div(length, Dim(2)) + Dim(1);
    }
    shape->back() = Dim(inverse && onesided ? 1 : 2);
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// A signal cut or padded with zeros to `length`. A one-sided spectrum is completed by its mirror image.
std::vector<Complex> prepare(const std::vector<Complex>& x, int64_t length, bool mirror) {
  std::vector<Complex> out(static_cast<size_t>(length));
  const size_t used = std::min(x.size(), mirror ? static_cast<size_t>(length / 2 + 1) : out.size());
  std::copy_n(x.begin(), std::min(used, out.size()), out.begin());
  if (!mirror || out.empty()) return out;
  out[0] = out[0].real();
  for (size_t k = out.size() / 2 + 1; k < out.size(); ++k) out[k] = std::conj(out[out.size() - k]);
  if (length % 2 == 0) out[out.size() / 2] = out[out.size() / 2].real();
  return out;
}

EvalResult eval_dft(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  const bool inverse = node.int_attribute("inverse", 0) != 0,
             onesided = node.int_attribute("onesided", 0) != 0;
  if (!is_float(x.dtype()) || x.rank() < 2 || (x.dims().back() != 1 && x.dims().back() != 2)) {
    return node_error(node,
                      fmt::format("needs a float tensor [..., length, ..., 1 or 2], not {}", describe(x)));
  }
  int64_t given = -2;
  if (const Tensor* t = optional_input(inputs, 2)) {
    DECANT_ASSIGN(given, read_scalar(node, *t, "the axis"));
  }
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, given, x.rank()));
  if (axis + 1 == x.rank()) return node_error(node, "the axis holds the real and imaginary parts");
  int64_t length = inverse && onesided ? 2 * (x.dims()[axis] - 1) : x.dims()[axis];
  if (const Tensor* t = optional_input(inputs, 1)) {
    DECANT_ASSIGN(length, read_scalar(node, *t, "the DFT length"));
  }
  if (length < 1 || length > kMaxLength) return node_error(node, fmt::format("a DFT length of {}", length));
  const int64_t parts = x.dims().back(), in_length = x.dims()[axis];
  Dims dims = x.dims();
  dims[axis] = onesided && !inverse ? length / 2 + 1 : length;
  dims.back() = inverse && onesided ? 1 : 2;
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), dims));
  const std::vector<double> in = read<double>(x);
  std::vector<double> values(static_cast<size_t>(out.elements()));
  const int64_t outer = product(dims, 0, axis), inner = product(dims, axis + 1, dims.size() - 1);
  const int64_t out_parts = dims.back();
  std::vector<Complex> signal(static_cast<size_t>(in_length));
  for (int64_t o = 0; out.elements() > 0 && o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t n = 0; n < in_length; ++n) {
        const double* at = in.data() + ((o * in_length + n) * inner + i) * parts;
        signal[static_cast<size_t>(n)] = Complex(at[0], parts == 2 ? at[1] : 0.0);
      }
      const auto result = transform(prepare(signal, length, inverse && onesided), inverse ? 1 : -1);
      for (int64_t k = 0; k < dims[axis]; ++k) {
        const Complex v = result[static_cast<size_t>(k)] / (inverse ? static_cast<double>(length) : 1.0);
        double* to = values.data() + ((o * dims[axis] + k) * inner + i) * out_parts;
        to[0] = v.real();
        if (out_parts == 2) to[1] = v.imag();
      }
    }
  }
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

Status infer_stft(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an int32 or int64 tensor"));
  DECANT_RETURN_IF_ERROR(require_rank(context, 0, 3));
  DECANT_RETURN_IF_ERROR(require_rank(context, 2, 1));
  const bool onesided = context.node().int_attribute("onesided", 1) != 0;
  if (!context.has_input(2) && !context.has_input(3))
    return context.error("needs a window or a frame length");
  std::optional<Dim> length = context.has_input(3) ? scalar_dim(context, 3) : std::nullopt;
  if (!length && context.has_input(2) && context.shape(2)) length = (*context.shape(2))[0];
  const std::optional<Dim> step = scalar_dim(context, 1);
  Shape out = context.fresh_shape(4, "stft");
  out[3] = Dim(2);
  if (context.shape(0)) out[0] = (*context.shape(0))[0];
  if (length) out[2] = onesided ? floor_div(*length, Dim(2)) + Dim(1) : *length;
  if (length && step && context.shape(0) && *step != Dim(0)) {
    out[1] = floor_div((*context.shape(0))[1] - *length, *step) + Dim(1);
  }
  context.set_output(0, context.dtype(0), std::move(out));
  return ok_status();
}

EvalResult eval_stft(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  const Tensor* window = optional_input(inputs, 2);
  if (!is_float(x.dtype()) || x.rank() != 3 || (x.dims()[2] != 1 && x.dims()[2] != 2)) {
    return node_error(node, fmt::format("needs a float signal [batch, length, 1 or 2], not {}", describe(x)));
  }
  DECANT_ASSIGN(const int64_t step, read_scalar(node, *inputs[1], "the frame step"));
  int64_t length = window == nullptr ? 0 : window->elements();
  if (const Tensor* t = optional_input(inputs, 3)) {
    DECANT_ASSIGN(length, read_scalar(node, *t, "the frame length"));
  }
  if (window != nullptr &&
      (window->rank() != 1 || window->elements() != length || !is_float(window->dtype()))) {
    return node_error(node,
                      fmt::format("the window {} does not fit frames of {}", describe(*window), length));
  }
  if (step < 1 || length < 1 || length > x.dims()[1]) {
    return node_error(node, fmt::format("frames of {} every {} do not fit {}", length, step, describe(x)));
  }
  const int64_t frames = (x.dims()[1] - length) / step + 1;
  const int64_t bins = node.int_attribute("onesided", 1) != 0 ? length / 2 + 1 : length;
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), {x.dims()[0], frames, bins, 2}));
  const std::vector<double> in = read<double>(x);
  const std::vector<double> weights =
      window == nullptr ? std::vector<double>(static_cast<size_t>(length), 1.0) : read<double>(*window);
  std::vector<double> values;
  std::vector<Complex> frame(static_cast<size_t>(length));
  const int64_t parts = x.dims()[2];
  for (int64_t f = 0; f < x.dims()[0] * frames; ++f) {
    const double* from = in.data() + (f / frames * x.dims()[1] + f % frames * step) * parts;
    for (int64_t n = 0; n < length; ++n) {
      const double w = weights[static_cast<size_t>(n)];
      frame[static_cast<size_t>(n)] =
          Complex(from[n * parts] * w, parts == 2 ? from[n * parts + 1] * w : 0.0);
    }
    const auto spectrum = transform(frame, -1);
    for (int64_t k = 0; k < bins; ++k) {
      values.push_back(spectrum[static_cast<size_t>(k)].real());
      values.push_back(spectrum[static_cast<size_t>(k)].imag());
    }
  }
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

Result<DType> output_type(const Node& node) {
  const DType dtype = dtype_from_onnx_code(node.int_attribute("output_datatype", 1));
  if (!is_number(dtype)) return node_error(node, "output_datatype is no number type");
  return dtype;
}

Status infer_window(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_index, "an int32 or int64 scalar"));
  DECANT_ASSIGN(const DType dtype, output_type(context.node()));
  const auto size = scalar_dim(context, 0);
  context.set_output(0, dtype, Shape{size ? *size : context.fresh_symbol("window")});
  return ok_status();
}

/// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), with N the size, or one less for a symmetric window.
EvalResult eval_window(const Node& node, EvalInputs inputs, double a0, double a1, double a2) {
  DECANT_ASSIGN(const DType dtype, output_type(node));
  DECANT_ASSIGN(const int64_t size, read_scalar(node, *inputs[0], "the size"));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(dtype, {size}));
  const bool periodic = node.int_attribute("periodic", 1) != 0;
  std::vector<double> values;
  for (int64_t n = 0; n < size; ++n) {
    const double turn = 2 * kPi * static_cast<double>(n) / static_cast<double>(periodic ? size : size - 1);
    values.push_back(size == 1 ? 1.0 : a0 - a1 * std::cos(turn) + a2 * std::cos(2 * turn));
  }
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

Status infer_mel(InferContext& context) {
  for (size_t i : {0, 1, 2}) DECANT_RETURN_IF_ERROR(require_dtype(context, i, is_index, "an integer scalar"));
  for (size_t i : {3, 4}) DECANT_RETURN_IF_ERROR(require_dtype(context, i, is_float, "a float scalar"));
  DECANT_ASSIGN(const DType dtype, output_type(context.node()));
  const auto bins = scalar_dim(context, 0), length = scalar_dim(context, 1);
  context.set_output(0, dtype,
                     Shape{length ? floor_div(*length, Dim(2)) + Dim(1) : context.fresh_symbol("spectrum"),
                           bins ? *bins : context.fresh_symbol("mel")});
  return ok_status();
}

/// Triangles of equal width on the mel scale, 2595 log10(1 + f / 700), at whole spectrum bins.
EvalResult eval_mel(const Node& node, EvalInputs inputs) {
  DECANT_ASSIGN(const DType dtype, output_type(node));
  DECANT_ASSIGN(const int64_t bins, read_scalar(node, *inputs[0], "the number of mel bins"));
  DECANT_ASSIGN(const int64_t length, read_scalar(node, *inputs[1], "the DFT length"));
  DECANT_ASSIGN(const int64_t rate, read_scalar(node, *inputs[2], "the sample rate"));
  const Tensor &low_hertz = *inputs[3], &high_hertz = *inputs[4];
  if (low_hertz.elements() != 1 || high_hertz.elements() != 1)
    return node_error(node, "the edges must be scalars");
  if (bins < 0 || length < 1 || length > kMaxLength || rate < 1)
    return node_error(node, "a size is out of range");
  const int64_t spectrum = length / 2 + 1;
  DECANT_ASSIGN(Tensor out, Tensor::allocate(dtype, {spectrum, bins}));
  const auto to_mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  const double low = to_mel(low_hertz.double_at(0)), high = to_mel(high_hertz.double_at(0));
  const double width = (high - low) / static_cast<double>(bins + 2);
  Dims edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (low + static_cast<double>(i) * width) / 2595) - 1);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(bin >= 0 && bin < static_cast<double>(spectrum))) {
      return node_error(node, "the edges lie outside the spectrum");
    }
    edges.push_back(static_cast<int64_t>(bin));
  }
  std::vector<double> values(static_cast<size_t>(out.elements()), 0.0);
  for (int64_t m = 0; m < bins; ++m) {
    const auto at = static_cast<size_t>(m);
    const int64_t left = edges[at], centre = edges[at + 1], right = edges[at + 2];
    for (int64_t k = left; k <= centre; ++k) {
      values[static_cast<size_t>(k * bins + m)] =
          centre == left ? 1.0 : static_cast<double>(k - left) / static_cast<double>(centre - left);
    }
    for (int64_t k = centre; k < right; ++k) {
      values[static_cast<size_t>(k * bins + m)] =
          static_cast<double>(right - k) / static_cast<double>(right - centre);
    }
  }
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

EvalResult eval_hann(const Node& node, EvalInputs inputs) { return eval_window(node, inputs, 0.5, 0.5, 0); }
EvalResult eval_hamming(const Node& node, EvalInputs inputs) {
  return eval_window(node, inputs, 25.0 / 46.0, 21.0 / 46.0, 0);
}
EvalResult eval_blackman(const Node& node, EvalInputs inputs) {
  return eval_window(node, inputs, 0.42, 0.5, 0.08);
}

OpDef window(std::string_view name, std::string_view doc, decltype(OpDef::eval) eval) {
  return {.name = name, .doc = doc, .min_inputs = 1, .max_inputs = 1, .infer = infer_window, .eval = eval};
}

}  // namespace

DECANT_OP(DFT) {
  return {.name = "DFT",
          .doc = "Discrete Fourier transform along an axis; inverse, onesided",
          .min_inputs = 1,
          .max_inputs = 3,
          .infer = infer_dft,
          .eval = eval_dft};
}

DECANT_OP(STFT) {
  return {.name = "STFT",
          .doc = "Fourier transforms of windowed frames",
          .min_inputs = 2,
          .max_inputs = 4,
          .infer = infer_stft,
          .eval = eval_stft};
}

DECANT_OP(MelWeightMatrix) {
  return {.name = "MelWeightMatrix",
          .doc = "Matrix from spectrum bins to mel bins",
          .min_inputs = 5,
          .max_inputs = 5,
          .infer = infer_mel,
          .eval = eval_mel};
}

DECANT_OP(HannWindow) { return window("HannWindow", "Hann window", eval_hann); }
DECANT_OP(HammingWindow) { return window("HammingWindow", "Hamming window", eval_hamming); }
DECANT_OP(BlackmanWindow) { return window("BlackmanWindow", "Blackman window", eval_blackman); }

}  // namespace decant::ir
