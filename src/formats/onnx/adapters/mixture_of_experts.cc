#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/onnx/adapters/adapters.h"
#include "ir/packed_constant.h"

namespace decant::onnx {
namespace {

/// One stack of expert matrices [experts, n, k], packed along k, as a constant.
Result<ir::Value*> packed_experts(Adaptation& a, size_t weights, size_t scales, size_t zeros, int64_t bits) {
  ir::PackedConstant packed;
  DECANT_ASSIGN(packed.codes, a.constant_input(weights, "experts_weights"));
  DECANT_ASSIGN(packed.scales, a.constant_input(scales, "scales"));
  const auto& dims = packed.codes->dims();
  if (packed.codes->dtype() != DType::kUInt8 || dims.size() != 3 || dims[2] > INT32_MAX) {
    return a.unsupported_form(fmt::format("weights of {}", ir::describe(packed.codes->dtype(), dims)));
  }
  if (dims[2] * 8 % bits != 0) return a.unsupported_form("rows that are no whole number of codes");
  const int64_t columns = dims[2] * 8 / bits, block = a.node.int_attribute("block_size", 0);
  PackedLayout& l = packed.layout;
  l.rows = dims[0] * dims[1];
  l.columns = columns;
  l.bits = static_cast<int>(bits);
  l.row_bits = dims[2] * 8;
  l.block_columns = block > 0 ? block : std::max<int64_t>(1, columns);
  l.scale_dtype = packed.scales->dtype();
  l.zero_point = 1 << (bits - 1);
  if (a.node.input(zeros)) {
    DECANT_ASSIGN(packed.zeros, a.constant_input(zeros, "zero_points"));
    if (packed.zeros->dtype() != DType::kUInt8) return a.unsupported_form("zero points that are not uint8");
    // Without blocks the rows' zero points follow each other; with blocks each row begins at a byte.
    l.zero = PackedLayout::Zero::kCodes;
    l.zero_row_bits = block > 0 ? (l.scale_columns() * bits + 7) / 8 * 8 : bits;
    if (block <= 0 && dims[1] * bits % 8 != 0)
      return a.unsupported_form("zero points of experts that share bytes");
  }
  const std::vector<int64_t> decoded = {dims[0], dims[1], columns};
  auto constant = ir::packed_constant(DType::kFloat32, decoded, std::move(packed));
  if (!constant.ok()) return std::move(constant).status().with_context(a.node.describe());
  return a.graph.add_constant(a.graph.unique_name(a.node.name + "_experts"), *std::move(constant));
}

Status finish(Adaptation& a, std::array<ir::Value*, 9> inputs) {
  if (a.node.int_attribute("use_sparse_mixer", 0) != 0) return a.unsupported_form("use_sparse_mixer");
  if (a.node.int_attribute("swiglu_limit_after_activation", 0) != 0)
    return a.unsupported_form("swiglu_limit_after_activation");
  const std::string kind = a.node.string_attribute("activation_type", "relu");
  constexpr std::array<std::string_view, 5> kKinds = {"relu", "gelu", "silu", "swiglu", "identity"};
  if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end())
    return a.unsupported_form(fmt::format("activation '{}'", kind));
  Adaptation::Attributes attributes = {{"activation_type", kind}, {"k", a.node.int_attribute("k", 1)}};
  for (const char* key : {"normalize_routing_weights", "swiglu_fusion"})
    attributes.emplace_back(key, a.node.int_attribute(key, 0));
  for (const char* key : {"activation_alpha", "activation_beta", "swiglu_limit"}) {
    if (const auto* value = a.node.attribute<float>(key)) attributes.emplace_back(key, *value);
  }
  std::vector<ir::Value*> list(inputs.begin(), inputs.end());
  while (!list.back()) list.pop_back();
  a.replace_output(0, a.emit("MixtureOfExperts", list, attributes, "decant"));
  a.remove();
  return ok_status();
}

}  // namespace

/// QMoE(input, router_probs, fc1, scales, bias, fc2, scales, bias, fc3, scales, bias, zero points of the
/// three, router_weights) of quant_type 'int' in the portable layout.
Status adapt_qmoe(Adaptation& a) {
  for (const size_t i : {0u, 1u, 2u, 3u, 5u, 6u}) {
    if (!a.node.input(i)) return a.bad_form(fmt::format("input {} is left out", i));
  }
  if (a.node.string_attribute("quant_type", "int") != "int")
    return a.unsupported_form("a quant_type other than int");
  if (const auto* packed = a.node.attribute<int64_t>("weights_prepacked"); packed && *packed > 0)
    return a.unsupported_form("weights_prepacked (a GPU's own layout)");
  const int64_t bits = a.node.int_attribute("expert_weight_bits", 4);
  const auto width = [&](const char* key) { return a.node.int_attribute(key, bits); };
  for (const char* key : {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"}) {
    if (const int64_t b = width(key); b != 2 && b != 4 && b != 8)
      return a.unsupported_form(fmt::format("a width of {} bits", b));
  }
  std::array<ir::Value*, 9> inputs = {};
  inputs[0] = a.node.input(0);
  inputs[1] = a.node.input(1);
  DECANT_ASSIGN(inputs[2], packed_experts(a, 2, 3, 11, width("fc1_expert_weight_bits")));
  inputs[3] = a.node.input(4);
  DECANT_ASSIGN(inputs[4], packed_experts(a, 5, 6, 12, width("fc2_expert_weight_bits")));
  inputs[5] = a.node.input(7);
  if (a.node.input(8)) {
    DECANT_ASSIGN(inputs[6], packed_experts(a, 8, 9, 13, width("fc3_expert_weight_bits")));
    inputs[7] = a.node.input(10);
  }
  inputs[8] = a.node.input(14);
  return finish(a, inputs);
}

/// MoE(input, router_probs, fc1, bias, fc2, bias, fc3, bias).
Status adapt_moe(Adaptation& a) {
  for (const size_t i : {0u, 1u, 2u, 4u}) {
    if (!a.node.input(i)) return a.bad_form(fmt::format("input {} is left out", i));
  }
  std::array<ir::Value*, 9> inputs = {};
  for (size_t i = 0; i < 8; ++i) inputs[i] = a.node.input(i);
  return finish(a, inputs);
}

}  // namespace decant::onnx
