#include "api/bind_input.h"

#include "base/status.h"
#include "ir/tensor.h"

namespace decant::api {

Status bind_input(ir::Graph& graph, const std::string& name, const Tensor& value) {
  for (ir::Value* input : graph.inputs()) {
    if (input->name != name) continue;
    bool fits = input->dtype == value.dtype() && (!input->shape || input->shape->size() == value.rank());
    for (size_t i = 0; fits && input->shape && i < value.rank(); ++i) {
      const auto dim = (*input->shape)[i].as_constant();
      fits = !dim || *dim == value.dims()[i];
    }
    if (!fits) {
      return invalid_argument("input '" + name + "' is " + ir::describe(value.dtype(), value.dims()) +
                              ", expected " + std::string(to_string(input->dtype)) +
                              (input->shape ? ir::to_string(*input->shape) : "[...]"));
    }
    auto owner = std::make_shared<Tensor>(value);
    const ir::Tensor tensor =
        ir::Tensor::view(value.dtype(), {value.dims().begin(), value.dims().end()}, value.data(), owner);
    ir::Value* constant =
        graph.add_constant(graph.unique_name(name + "_value"), ir::Constant::from_tensor(tensor));
    graph.replace_all_uses(input, constant);
    graph.remove_input(input);
    return ok_status();
  }
  return internal_error("no input '" + name + "' to bind");
}

}  // namespace decant::api
