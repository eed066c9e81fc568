#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// Sizes of the output and samples of one bin stay below this.
constexpr int64_t kMaxPooled = int64_t{1} << 20;

struct RoiAlignOptions {
  int64_t height, width, sampling;
  bool max, half_pixel;
};

Result<RoiAlignOptions> read_options(const Node& node) {
  RoiAlignOptions o;
  o.height = node.int_attribute("output_height", 1);
  o.width = node.int_attribute("output_width", 1);
  o.sampling = node.int_attribute("sampling_ratio", 0);
  if (o.height < 1 || o.width < 1 || o.height > kMaxPooled || o.width > kMaxPooled || o.sampling < 0 ||
      o.sampling > kMaxPooled) {
    return node_error(node, "output_height, output_width or sampling_ratio is out of range");
  }
  const std::string mode = node.string_attribute("mode", "avg");
  const std::string coordinates = node.string_attribute("coordinate_transformation_mode", "half_pixel");
  if (mode != "avg" && mode != "max") return node_error(node, fmt::format("mode '{}'", mode));
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel") {
    return node_error(node, fmt::format("coordinate_transformation_mode '{}'", coordinates));
  }
  o.max = mode == "max";
  o.half_pixel = coordinates == "half_pixel";
  return o;
}

Status infer_roi_align(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, 2));
  DECANT_RETURN_IF_ERROR(require_rank(context, 0, 4));
  DECANT_RETURN_IF_ERROR(require_rank(context, 1, 2));
  DECANT_RETURN_IF_ERROR(require_rank(context, 2, 1));
  DECANT_ASSIGN(const RoiAlignOptions o, read_options(context.node()));
  std::optional<Shape> shape;
  if (context.shape(0) && (context.shape(1) || context.shape(2))) {
    const Dim rois = context.shape(1) ? (*context.shape(1))[0] : (*context.shape(2))[0];
    shape = Shape{rois, (*context.shape(0))[1], Dim(o.height), Dim(o.width)};
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// The four neighbours of a sampled point and their weights; all weights are 0 for points outside.
struct Point {
  int64_t at[4] = {0, 0, 0, 0};
  double weight[4] = {0, 0, 0, 0};
};

Point point_at(double y, double x, int64_t height, int64_t width) {
  Point p;
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  if (!(y >= -1 && y <= h && x >= -1 && x <= w)) return p;
  y = std::min(std::max(y, 0.0), h - 1);
  x = std::min(std::max(x, 0.0), w - 1);
  const auto y0 = static_cast<int64_t>(y), x0 = static_cast<int64_t>(x);
  const int64_t y1 = std::min(y0 + 1, height - 1), x1 = std::min(x0 + 1, width - 1);
  const double ly = y - static_cast<double>(y0), lx = x - static_cast<double>(x0);
  const int64_t at[4] = {y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1};
  const double weight[4] = {(1 - ly) * (1 - lx), (1 - ly) * lx, ly * (1 - lx), ly * lx};
  std::copy(at, at + 4, p.at);
  std::copy(weight, weight + 4, p.weight);
  return p;
}

double pool(const std::vector<Point>& points, const double* plane, bool max) {
  double sum = 0, best = -std::numeric_limits<double>::infinity();
  for (const Point& p : points) {
    for (int i = 0; i < 4; ++i) {
      const double part = p.weight[i] == 0 ? 0 : p.weight[i] * plane[p.at[i]];
      sum += part;
      best = std::max(best, part);
    }
  }
  if (points.empty()) return 0;
  return max ? best : sum / static_cast<double>(points.size());
}

/// He et al. 2017 (Mask R-CNN): each bin is the mean, or the maximum, of bilinear samples; nothing is
/// rounded.
EvalResult eval_roi_align(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &rois = *inputs[1], &batch = *inputs[2];
  DECANT_ASSIGN(const RoiAlignOptions o, read_options(node));
  if (!is_float(x.dtype()) || rois.dtype() != x.dtype() || x.rank() != 4 || rois.rank() != 2 ||
      rois.dims()[1] != 4 || !is_index(batch.dtype()) || batch.dims() != Dims{rois.dims()[0]}) {
    return node_error(node,
                      fmt::format("{}, {} and {} do not fit", describe(x), describe(rois), describe(batch)));
  }
  const int64_t count = rois.dims()[0], channels = x.dims()[1], height = x.dims()[2], width = x.dims()[3];
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), {count, channels, o.height, o.width}));
  if (out.elements() == 0) return single(std::move(out));
  if (x.elements() == 0) return node_error(node, "the input has no elements");
  const std::vector<double> in = read<double>(x);
  std::vector<double> values(static_cast<size_t>(out.elements()));
  const double scale = node.float_attribute("spatial_scale", 1.0f), offset = o.half_pixel ? 0.5 : 0.0;
  std::vector<Point> points;
  for (int64_t r = 0; r < count; ++r) {
    const int64_t image = batch.int_at(r);
    if (image < 0 || image >= x.dims()[0]) return node_error(node, fmt::format("batch index {}", image));
    const double left = rois.double_at(r * 4) * scale - offset,
                 top = rois.double_at(r * 4 + 1) * scale - offset;
    double roi_width = rois.double_at(r * 4 + 2) * scale - offset - left;
    double roi_height = rois.double_at(r * 4 + 3) * scale - offset - top;
    if (!o.half_pixel) {
      roi_width = std::max(roi_width, 1.0);
      roi_height = std::max(roi_height, 1.0);
    }
    const double bin_h = roi_height / static_cast<double>(o.height),
                 bin_w = roi_width / static_cast<double>(o.width);
    const double grid_h = o.sampling > 0 ? static_cast<double>(o.sampling) : std::ceil(bin_h);
    const double grid_w = o.sampling > 0 ? static_cast<double>(o.sampling) : std::ceil(bin_w);
    if (!(grid_h < static_cast<double>(kMaxPooled) && grid_w < static_cast<double>(kMaxPooled))) {
      return node_error(node, fmt::format("region {} is too large", r));
    }
    for (int64_t bin = 0; bin < o.height * o.width; ++bin) {
      points.clear();
      const double y0 = top + static_cast<double>(bin / o.width) * bin_h;
      const double x0 = left + static_cast<double>(bin % o.width) * bin_w;
      for (double iy = 0; iy < grid_h; ++iy) {
        for (double ix = 0; ix < grid_w; ++ix) {
          points.push_back(
              point_at(y0 + (iy + 0.5) * bin_h / grid_h, x0 + (ix + 0.5) * bin_w / grid_w, height, width));
        }
      }
      for (int64_t c = 0; c < channels; ++c) {
        values[static_cast<size_t>((r * channels + c) * o.height * o.width + bin)] =
            pool(points, in.data() + (image * channels + c) * height * width, o.max);
      }
    }
  }
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

Result<Dims> pooled_shape(const Node& node) {
  const auto* list = node.attribute<std::vector<int64_t>>("pooled_shape");
  if (list == nullptr || list->size() != 2) return node_error(node, "'pooled_shape' needs two sizes");
  for (int64_t v : *list) {
    if (v < 1 || v > kMaxPooled) return node_error(node, fmt::format("a pooled size of {}", v));
  }
  return *list;
}

Status infer_max_roi_pool(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, 2));
  DECANT_RETURN_IF_ERROR(require_rank(context, 0, 4));
  DECANT_RETURN_IF_ERROR(require_rank(context, 1, 2));
  DECANT_ASSIGN(const Dims pooled, pooled_shape(context.node()));
  std::optional<Shape> shape;
  if (context.shape(0) && context.shape(1)) {
    shape = Shape{(*context.shape(1))[0], (*context.shape(0))[1], Dim(pooled[0]), Dim(pooled[1])};
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// Positions [begin, end) of one bin along an axis.
struct Range {
  int64_t begin, end;
};

Range bin_range(int64_t bin, int64_t bins, int64_t first, int64_t last, int64_t length) {
  const auto size = static_cast<double>(std::max<int64_t>(last - first + 1, 1)) / static_cast<double>(bins);
  const auto cut = [&](double v) { return std::clamp<int64_t>(static_cast<int64_t>(v) + first, 0, length); };
  return {cut(std::floor(static_cast<double>(bin) * size)),
          cut(std::ceil(static_cast<double>(bin + 1) * size))};
}

/// Girshick 2015 (Fast R-CNN): region corners are rounded to pixels, a bin without pixels is 0.
EvalResult eval_max_roi_pool(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &rois = *inputs[1];
  DECANT_ASSIGN(const Dims pooled, pooled_shape(node));
  if (!is_float(x.dtype()) || rois.dtype() != x.dtype() || x.rank() != 4 || rois.rank() != 2 ||
      rois.dims()[1] != 5) {
    return node_error(node, fmt::format("{} and {} do not fit", describe(x), describe(rois)));
  }
  const double scale = node.float_attribute("spatial_scale", 1.0f);
  const int64_t channels = x.dims()[1], height = x.dims()[2], width = x.dims()[3];
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), {rois.dims()[0], channels, pooled[0], pooled[1]}));
  const std::vector<double> in = read<double>(x);
  std::vector<double> values;
  for (int64_t r = 0; r < rois.dims()[0]; ++r) {
    int64_t corner[5];
    for (int64_t i = 0; i < 5; ++i) {
      const double v = rois.double_at(r * 5 + i) * (i == 0 ? 1 : scale);
      if (!(std::fabs(v) < 0x1p40)) return node_error(node, fmt::format("region {} is out of range", r));
      corner[i] = static_cast<int64_t>(std::round(v));
    }
    if (corner[0] < 0 || corner[0] >= x.dims()[0])
      return node_error(node, fmt::format("batch index {}", corner[0]));
    for (int64_t i = 0; i < channels * pooled[0] * pooled[1]; ++i) {
      const Range rows = bin_range(i / pooled[1] % pooled[0], pooled[0], corner[2], corner[4], height);
      const Range columns = bin_range(i % pooled[1], pooled[1], corner[1], corner[3], width);
      const double* plane = in.data() + (corner[0] * channels + i / (pooled[0] * pooled[1])) * height * width;
      const bool empty = rows.begin >= rows.end || columns.begin >= columns.end;
      double best = empty ? 0 : -std::numeric_limits<double>::infinity();
      for (int64_t y = rows.begin; y < rows.end; ++y) {
        for (int64_t at = columns.begin; at < columns.end; ++at) best = std::max(best, plane[y * width + at]);
      }
      values.push_back(best);
    }
  }
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

}  // namespace

DECANT_OP(RoiAlign) {
  return {.name = "RoiAlign",
          .doc = "Pools bilinear samples of regions; modes avg and max",
          .min_inputs = 3,
          .max_inputs = 3,
          .infer = infer_roi_align,
          .eval = eval_roi_align};
}

DECANT_OP(MaxRoiPool) {
  return {.name = "MaxRoiPool",
          .doc = "Largest value of each bin of each region",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_max_roi_pool,
          .eval = eval_max_roi_pool};
}

}  // namespace decant::ir
