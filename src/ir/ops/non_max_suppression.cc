#include <algorithm>
#include <numeric>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_non_max_suppression(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_rank(context, 0, 3));
  DECANT_RETURN_IF_ERROR(require_rank(context, 1, 3));
  for (size_t i : {size_t{0}, size_t{1}, size_t{3}, size_t{4}}) {
    DECANT_RETURN_IF_ERROR(require_dtype(context, i, is_float, "a float tensor"));
  }
  DECANT_RETURN_IF_ERROR(require_dtype(context, 2, is_index, "an integer"));
  context.set_output(0, DType::kInt64, Shape{context.fresh_symbol("selected"), Dim(3)});
  return ok_status();
}

struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};

Box box_of(const double* b, bool center) {
  if (center) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top),
               width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  const double both = height * width, all = a.area() + b.area() - both;
  return all > 0 ? both / all : 0;
}

/// Boxes kept of one class, best score first.
std::vector<int64_t> select(const std::vector<Box>& boxes, const double* scores, int64_t limit, double iou,
                            const double* threshold) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (threshold == nullptr || scores[i] > *threshold) order.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  std::vector<int64_t> kept;
  for (int64_t candidate : order) {
    if (static_cast<int64_t>(kept.size()) >= limit) break;
    const Box& box = boxes[static_cast<size_t>(candidate)];
    const bool free = std::none_of(kept.begin(), kept.end(), [&](int64_t k) {
      return overlap(boxes[static_cast<size_t>(k)], box) > iou;
    });
    if (free) kept.push_back(candidate);
  }
  return kept;
}

EvalResult eval_non_max_suppression(const Node& node, EvalInputs inputs) {
  const Tensor &boxes = *inputs[0], &scores = *inputs[1];
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.dims()[2] != 4 ||
      boxes.dims()[0] != scores.dims()[0] || boxes.dims()[1] != scores.dims()[2]) {
    return node_error(node, "needs boxes [batch, boxes, 4] and scores [batch, classes, boxes]");
  }
  for (size_t i = 2; i < 5; ++i) {
    const Tensor* t = optional_input(inputs, i);
    if (t && t->elements() != 1) return node_error(node, "limits and thresholds must be single numbers");
  }
  const Tensor* limit_tensor = optional_input(inputs, 2);
  const int64_t limit = limit_tensor ? limit_tensor->int_at(0) : 0;
  const double iou = optional_input(inputs, 3) ? inputs[3]->double_at(0) : 0;
  const double threshold = optional_input(inputs, 4) ? inputs[4]->double_at(0) : 0;
  const bool center = node.int_attribute("center_point_box", 0) != 0;
  const int64_t batch = boxes.dims()[0], count = boxes.dims()[1], classes = scores.dims()[1];
  const std::vector<double> corners = read<double>(boxes), values = read<double>(scores);
  Dims found;
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<Box> list;
    for (int64_t i = 0; i < count; ++i) list.push_back(box_of(corners.data() + (b * count + i) * 4, center));
    for (int64_t c = 0; c < classes; ++c) {
      const double* row = values.data() + (b * classes + c) * count;
      for (int64_t k : select(list, row, limit, iou, optional_input(inputs, 4) ? &threshold : nullptr)) {
        found.insert(found.end(), {b, c, k});
      }
    }
  }
  return single(make_tensor<int64_t>(DType::kInt64, {static_cast<int64_t>(found.size()) / 3, 3}, found));
}

}  // namespace

DECANT_OP(NonMaxSuppression) {
  return {.name = "NonMaxSuppression",
          .doc = "Indices [batch, class, box] of boxes that overlap no better one by more than a threshold",
          .min_inputs = 2,
          .max_inputs = 5,
          .infer = infer_non_max_suppression,
          .eval = eval_non_max_suppression};
}

}  // namespace decant::ir
