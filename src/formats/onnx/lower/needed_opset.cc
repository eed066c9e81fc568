#include "formats/onnx/lower/needed_opset.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace decant::onnx {
namespace {

struct Since {
  std::string_view op;
  int opset;
};

constexpr auto kSince = std::to_array<Since>({
    {"Attention", 23},       {"BitCast", 26},
    {"BitwiseAnd", 18},      {"BitwiseNot", 18},
    {"BitwiseOr", 18},       {"BitwiseXor", 18},
    {"CastLike", 15},        {"CausalConvWithState", 27},
    {"CumProd", 26},         {"Gelu", 20},
    {"HardSwish", 14},       {"LayerNormalization", 17},
    {"LinearAttention", 27}, {"RMSNormalization", 23},
    {"RotaryEmbedding", 23}, {"SwiGLU", 28},
    {"Swish", 24},           {"TensorScatter", 24},
    {"Trilu", 14},
});

/// Beyond every opset: what ONNX has no form for.
constexpr int kNoOpset = 1000;

}  // namespace

int needed_opset(const ir::Node& node) {
  if (node.is("Attention")) {
    if (node.input(7)) return kNoOpset;
    const bool window =
        node.int_attribute("left_window_size", -1) >= 0 || node.int_attribute("right_window_size", -1) >= 0;
    return window ? 25 : node.input(6) ? 24 : 23;
  }
  const std::string_view op = node.op();
  if (op.starts_with("Reduce") && op != "ReduceSum") return node.input(1) ? 18 : 13;
  if (op == "Split") return node.attribute<int64_t>("num_outputs") ? 18 : 13;
  if (op == "Shape") return node.attribute<int64_t>("start") || node.attribute<int64_t>("end") ? 15 : 13;
  if (op == "Reshape") return node.int_attribute("allowzero", 0) ? 14 : 13;
  if (op == "Pad") return node.input(3) ? 18 : 13;
  if (op == "ScatterElements" || op == "ScatterND") {
    const std::string reduction = node.string_attribute("reduction", "none");
    return reduction == "none" ? 13 : reduction == "add" || reduction == "mul" ? 16 : 18;
  }
  const auto it = std::find_if(kSince.begin(), kSince.end(), [&](const Since& s) { return s.op == op; });
  return it == kSince.end() ? 13 : it->opset;
}

}  // namespace decant::onnx
