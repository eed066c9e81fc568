#include <gtest/gtest.h>

#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

TEST(DropOpenMasks, OnlyWhereNothingIsHidden) {
  for (const int form : {0, 1, 2, 3}) {
    const bool open = form % 2 == 0;
    ir::Graph g;
    const ir::Dim b = ir::Dim::symbol("b");
    ir::Value* x = g.add_input("x", DType::kFloat32, ir::Shape{b, 2, 3, 4});
    ir::Tensor mask = *ir::Tensor::allocate(DType::kBool, {1, 1, 3, 3});
    for (int i = 0; i < 9; ++i) mask.mutable_data_as<bool>()[i] = open || i != 5;
    ir::Value* shape = g.add_constant(
        "shape", ir::Constant::from_tensor(ir::Tensor::vector(std::vector<int64_t>{2, 1, 3, 3})));
    ir::Value* wide = *add_typed(g, "Expand", {g.add_constant("m", ir::Constant::from_tensor(mask)), shape});
    if (form > 1) {
      const auto number = [&](float v) {
        return g.add_constant(g.unique_name("n"), ir::Constant::from_tensor(ir::Tensor::scalar(v)));
      };
      wide = *add_typed(g, "Where", {wide, number(0), number(-1e30f)});
    }
    g.add_output(*add_typed(g, "Attention", {x, x, x, wide}));
    const auto changed = drop_open_masks(g);
    ASSERT_TRUE(changed.ok());
    EXPECT_EQ(*changed, open);
  }
}

}  // namespace
}  // namespace decant::passes
