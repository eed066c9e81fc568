#include <cmath>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// Inputs: learning rate, update count, then the tensors, the gradients, and `states` lists of states, each
/// with one entry for each tensor. Outputs: the new tensors, then the new states.
size_t tensor_count(size_t inputs, size_t states) { return inputs < 2 ? 0 : (inputs - 2) / (states + 2); }

template <size_t kStates>
Status infer_optimizer(InferContext& context) {
  const size_t n = tensor_count(context.input_count(), kStates);
  if (n == 0 || context.input_count() != 2 + n * (kStates + 2) ||
      context.node().outputs().size() != n * (kStates + 1)) {
    return context.error(
        fmt::format("needs {} inputs and {} outputs for each tensor", kStates + 2, kStates + 1));
  }
  for (size_t i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) return context.error("an input is left out");
    if (i != 1) DECANT_RETURN_IF_ERROR(require_dtype(context, i, is_float, "a float tensor"));
  }
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an integer"));
  for (size_t i = 0; i < n; ++i) {
    context.set_output(i, context.dtype(2 + i), context.shape(2 + i));
    for (size_t s = 0; s < kStates; ++s) {
      const size_t from = 2 + n * (2 + s) + i;
      context.set_output(n * (1 + s) + i, context.dtype(from), context.shape(from));
    }
  }
  return ok_status();
}

/// One element: its value, gradient and states, which `update(rate, count, x, g, states)` changes.
template <size_t kStates, typename F>
EvalResult update_all(const Node& node, EvalInputs inputs, F update) {
  const size_t n = tensor_count(inputs.size(), kStates);
  if (n == 0 || inputs.size() != 2 + n * (kStates + 2)) return node_error(node, "a wrong number of inputs");
  for (const Tensor* t : inputs) {
    if (t == nullptr) return node_error(node, "an input is left out");
  }
  if (inputs[0]->elements() != 1 || inputs[1]->elements() != 1) {
    return node_error(node, "learning rate and update count must be single numbers");
  }
  const double rate = inputs[0]->double_at(0), count = inputs[1]->double_at(0);
  std::vector<Tensor> out(n * (kStates + 1));
  for (size_t i = 0; i < n; ++i) {
    std::array<std::vector<double>, kStates + 2> values;
    for (size_t k = 0; k < values.size(); ++k) {
      const Tensor& t = *inputs[2 + n * k + i];
      if (t.dims() != inputs[2 + i]->dims()) return node_error(node, "shapes of one tensor's inputs differ");
      values[k] = read<double>(t);
    }
    for (size_t e = 0; e < values[0].size(); ++e) {
      std::array<double, kStates> states;
      for (size_t s = 0; s < kStates; ++s) states[s] = values[2 + s][e];
      update(rate, count, values[0][e], values[1][e], states);
      for (size_t s = 0; s < kStates; ++s) values[2 + s][e] = states[s];
    }
    for (size_t k = 0; k <= kStates; ++k) {
      const Tensor& like = *inputs[2 + n * (k == 0 ? 0 : k + 1) + i];
      DECANT_ASSIGN(out[n * k + i],
                    make_tensor<double>(like.dtype(), like.dims(), values[k == 0 ? 0 : k + 1]));
    }
  }
  return out;
}

EvalResult eval_momentum(const Node& node, EvalInputs inputs) {
  const double alpha = node.float_attribute("alpha", 0), beta = node.float_attribute("beta", 0),
               decay = node.float_attribute("norm_coefficient", 0);
  const std::string mode = node.string_attribute("mode", "standard");
  if (mode != "standard" && mode != "nesterov") return node_error(node, "mode must be standard or nesterov");
  const bool nesterov = mode == "nesterov";
  return update_all<1>(node, inputs, [=](double rate, double count, double& x, double g, auto& state) {
    g += decay * x;
    state[0] = alpha * state[0] + (count > 0 ? beta : 1) * g;
    x -= rate * (nesterov ? g + alpha * state[0] : state[0]);
  });
}

EvalResult eval_adagrad(const Node& node, EvalInputs inputs) {
  const double slow = node.float_attribute("decay_factor", 0),
               epsilon = node.float_attribute("epsilon", 1e-6f),
               decay = node.float_attribute("norm_coefficient", 0);
  return update_all<1>(node, inputs, [=](double rate, double count, double& x, double g, auto& state) {
    g += decay * x;
    state[0] += g * g;
    x -= rate / (1 + count * slow) * g / (std::sqrt(state[0]) + epsilon);
  });
}

EvalResult eval_adam(const Node& node, EvalInputs inputs) {
  const double alpha = node.float_attribute("alpha", 0.9f), beta = node.float_attribute("beta", 0.999f),
               epsilon = node.float_attribute("epsilon", 1e-6f),
               decay = node.float_attribute("norm_coefficient", 0),
               decay_after = node.float_attribute("norm_coefficient_post", 0);
  return update_all<2>(node, inputs, [=](double rate, double count, double& x, double g, auto& state) {
    g += decay * x;
    state[0] = alpha * state[0] + (1 - alpha) * g;
    state[1] = beta * state[1] + (1 - beta) * g * g;
    if (count > 0) rate *= std::sqrt(1 - std::pow(beta, count)) / (1 - std::pow(alpha, count));
    x = (1 - decay_after) * (x - rate * state[0] / (std::sqrt(state[1]) + epsilon));
  });
}

OpDef optimizer(std::string_view name, std::string_view doc, Status (*infer)(InferContext&),
                EvalResult (*eval)(const Node&, EvalInputs)) {
  return {.name = name,
          .domain = "ai.onnx.preview.training",
          .doc = doc,
          .min_inputs = 3,
          .max_inputs = -1,
          .max_outputs = -1,
          .infer = infer,
          .eval = eval};
}

}  // namespace

DECANT_OP(Momentum) {
  return optimizer("Momentum", "One step of gradient descent with momentum", infer_optimizer<1>,
                   eval_momentum);
}
DECANT_OP(Adagrad) { return optimizer("Adagrad", "One step of Adagrad", infer_optimizer<1>, eval_adagrad); }
DECANT_OP(Adam) { return optimizer("Adam", "One step of Adam", infer_optimizer<2>, eval_adam); }

}  // namespace decant::ir
