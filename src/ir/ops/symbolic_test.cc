// Shape arithmetic as exporters write it, folded to expressions by type inference.

#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "ir/op.h"
#include "ir/ops/common.h"

namespace decant::ir {
namespace {

class Symbolic : public testing::Test {
 protected:
  Value* input(Shape shape, DType dtype = DType::kFloat32) {
    return graph_.add_input(graph_.unique_name("x"), dtype, std::move(shape));
  }
  Value* ints(std::vector<int64_t> values) {
    return graph_.add_constant(graph_.unique_name("c"), Constant::from_tensor(Tensor::vector(values)));
  }
  Value* scalar(int64_t value) {
    return graph_.add_constant(graph_.unique_name("c"), Constant::from_tensor(Tensor::scalar(value)));
  }
  /// Adds a node, types it, and returns its first output.
  Value* op(std::string name, std::vector<Value*> inputs,
            std::map<std::string, Attribute, std::less<>> attributes = {}, size_t outputs = 1) {
    Node* node = graph_.add_node(std::move(name), std::move(inputs), outputs);
    node->attributes = std::move(attributes);
    const Status status = infer_node(graph_, *node);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return node->output(0);
  }
  Status failure(std::string name, std::vector<Value*> inputs,
                 std::map<std::string, Attribute, std::less<>> attributes = {}) {
    Node* node = graph_.add_node(std::move(name), std::move(inputs), 1);
    node->attributes = std::move(attributes);
    return infer_node(graph_, *node);
  }
  /// Dim `axis` of x as a scalar: Shape, then Gather.
  Value* dim(Value* x, int64_t axis) { return op("Gather", {op("Shape", {x}), scalar(axis)}); }
  Value* unsqueeze(Value* x) { return op("Unsqueeze", {x, ints({0})}); }

  static std::string text(const Value* v) { return v->shape ? to_string(*v->shape) : "?"; }

  Graph graph_;
  const Dim b_ = Dim::symbol("b"), s_ = Dim::symbol("s"), p_ = Dim::symbol("p");
};

TEST_F(Symbolic, ReshapeToHeads) {
  Value* x = input({b_, s_, 576});
  Value* shape = op("Concat", {unsqueeze(dim(x, 0)), unsqueeze(dim(x, 1)), ints({-1}), ints({64})},
                    {{"axis", int64_t{0}}});
  Value* heads = op("Reshape", {x, shape});
  EXPECT_EQ(*heads->shape, (Shape{b_, s_, 9, 64}));
  Value* turned = op("Transpose",
                     {
                         heads,
                     },
                     {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  EXPECT_EQ(*turned->shape, (Shape{b_, 9, s_, 64}));
  Value* back = op(
      "Reshape", {op("Transpose", {turned}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}), ints({0, 0, -1})});
  EXPECT_EQ(*back->shape, (Shape{b_, s_, 576}));
}

TEST_F(Symbolic, FlattenedBatchComesBack) {
  Value* x = input({b_, s_, 64});
  Value* rows = op("Reshape", {x, ints({-1, 64})});
  EXPECT_EQ(*rows->shape, (Shape{b_ * s_, 64}));
  Value* shape =
      op("Concat", {unsqueeze(dim(x, 0)), unsqueeze(dim(x, 1)), ints({-1})}, {{"axis", int64_t{0}}});
  EXPECT_EQ(*op("Reshape", {rows, shape})->shape, (Shape{b_, s_, 64}));
}

TEST_F(Symbolic, PositionsFromCacheLength) {
  Value* past = input({b_, 3, p_, 64});
  Value* ids = input({b_, s_}, DType::kInt64);
  Value* begin = dim(past, 2);
  Value* end = op("Add", {begin, dim(ids, 1)});
  Value* positions = op("Range", {begin, end, scalar(1)});
  EXPECT_EQ(*positions->shape, (Shape{s_}));
  Value* grid = op("Unsqueeze", {positions, ints({0})});
  EXPECT_EQ(*grid->shape, (Shape{1, s_}));
  Value* all = op("Range", {scalar(0), end, scalar(1)});
  EXPECT_EQ(*all->shape, (Shape{p_ + s_}));
  Value* fresh = input({b_, 3, s_, 64});
  EXPECT_EQ(*op("Concat", {past, fresh}, {{"axis", int64_t{-2}}})->shape, (Shape{b_, 3, p_ + s_, 64}));
}

TEST_F(Symbolic, ShortRangesHaveElements) {
  Value* range = op("Range", {dim(input({s_}), 0), op("Add", {dim(input({s_}), 0), scalar(3)}), scalar(1)});
  EXPECT_EQ(*range->shape, (Shape{3}));
  EXPECT_EQ(*range->elements, (std::vector<Dim>{s_, s_ + Dim(1), s_ + Dim(2)}));
}

TEST_F(Symbolic, ExpandThroughWhereEqual) {
  // torch.onnx writes Expand's target as Where(shape == -1, ones, shape).
  Value* x = input({b_, 1, 1, s_});
  Value* shape = op("Concat", {unsqueeze(dim(x, 0)), ints({1}), unsqueeze(dim(x, 3)), ints({-1})},
                    {{"axis", int64_t{0}}});
  Value* minus = op("Mul", {op("ConstantOfShape", {ints({4})},
                               {{"value", Constant::from_tensor(Tensor::vector(std::vector<int64_t>{1}))}}),
                            scalar(-1)});
  Value* ones = op("ConstantOfShape", {op("Shape", {shape})},
                   {{"value", Constant::from_tensor(Tensor::vector(std::vector<int64_t>{1}))}});
  Value* target = op("Where", {op("Equal", {shape, minus}), ones, shape});
  ASSERT_TRUE(target->elements);
  EXPECT_EQ(*target->elements, (std::vector<Dim>{b_, 1, s_, 1}));
  EXPECT_EQ(*op("Expand", {x, target})->shape, (Shape{b_, 1, s_, s_}));
}

TEST_F(Symbolic, Slices) {
  Value* x = input({b_, s_ + p_, 8});
  const auto slice = [&](Value* start, Value* end, int64_t axis, int64_t step = 1) {
    return op("Slice", {x, start, end, ints({axis}), ints({step})})->shape.value()[static_cast<size_t>(axis)];
  };
  Value* past = unsqueeze(dim(input({p_}), 0));
  EXPECT_EQ(slice(ints({0}), ints({INT64_MAX}), 1), s_ + p_);
  EXPECT_EQ(slice(past, ints({INT64_MAX}), 1), s_);
  EXPECT_EQ(slice(ints({0}), past, 1), p_);
  EXPECT_EQ(slice(ints({4}), ints({INT64_MAX}), 2), Dim(4));
  EXPECT_EQ(slice(ints({0}), ints({INT64_MAX}), 2, 2), Dim(4));
  EXPECT_EQ(slice(ints({-1}), ints({INT64_MIN}), 2, -1), Dim(8));
  EXPECT_EQ(slice(ints({-3}), ints({-1}), 2), Dim(2));
  // A table of 2048 rows cut to the sequence: exact whichever is shorter.
  Value* table = input({2048, 64});
  Value* cut = op("Slice", {table, ints({0}), unsqueeze(dim(input({s_}), 0)), ints({0})});
  EXPECT_EQ(*cut->shape, (Shape{min(s_, Dim(2048)), 64}));
  // What adds to a dim of the sequence must be as long.
  EXPECT_EQ(*op("Add", {cut, input({s_, 64})})->shape, (Shape{s_, 64}));
  // The last row; its length is 1 unless the axis is empty.
  graph_.symbol_ranges["s"] = {1, 4096};
  EXPECT_EQ(slice(ints({-1}), ints({INT64_MAX}), 1), Dim(1));
}

TEST_F(Symbolic, ShapeElementsThroughSliceAndSplit) {
  Value* shape = op("Shape", {input({b_, s_, 9, 64})});
  Value* head = op("Slice", {shape, ints({0}), ints({-2}), ints({0})});
  EXPECT_EQ(*head->elements, (std::vector<Dim>{b_, s_}));
  EXPECT_EQ(*op("Slice", {shape, ints({-1}), ints({INT64_MIN}), ints({0}), ints({-1})})->elements,
            (std::vector<Dim>{64, 9, s_, b_}));
  Node* split = op("Split", {shape}, {}, 2)->producer;
  EXPECT_EQ(*split->output(1)->elements, (std::vector<Dim>{9, 64}));
  EXPECT_EQ(*op("ReduceProd", {shape})->elements, (std::vector<Dim>{b_ * s_ * Dim(576)}));
  EXPECT_EQ(*op("Size", {input({b_, s_})})->elements, (std::vector<Dim>{b_ * s_}));
  EXPECT_EQ(*op("Shape", {input({b_, s_, 9})}, {{"start", int64_t{1}}, {"end", int64_t{-1}}})->elements,
            (std::vector<Dim>{s_}));
}

TEST_F(Symbolic, Arithmetic) {
  Value* s = dim(input({s_ * Dim(4)}), 0);
  EXPECT_EQ((*op("Div", {s, scalar(4)})->elements)[0], s_);
  EXPECT_EQ((*op("Mod", {s, scalar(2)})->elements)[0], Dim(0));
  EXPECT_EQ((*op("Div", {scalar(7), scalar(-2)})->elements)[0], Dim(-3));
  EXPECT_EQ((*op("Sub", {s, scalar(1)})->elements)[0], s_ * Dim(4) - Dim(1));
  EXPECT_EQ((*op("Neg", {s})->elements)[0], Dim(-4) * s_);
  EXPECT_EQ((*op("Max", {s, scalar(0)})->elements)[0], s_ * Dim(4));
  EXPECT_EQ((*op("Min", {s, scalar(-1)})->elements)[0], Dim(-1));
  EXPECT_EQ((*op("Less", {s, scalar(0)})->elements)[0], Dim(0));
  EXPECT_FALSE(op("Less", {s, scalar(5)})->elements);
  EXPECT_EQ((*op("Cast", {s}, {{"to", int64_t{6}}})->elements)[0], s_ * Dim(4));
  EXPECT_FALSE(op("Cast", {s}, {{"to", int64_t{1}}})->elements);
}

TEST_F(Symbolic, Broadcast) {
  EXPECT_EQ(*op("Add", {input({b_, 1, s_}), input({1, 7, s_})})->shape, (Shape{b_, 7, s_}));
  EXPECT_EQ(*op("Add", {input({b_}), input({5})})->shape, (Shape{5}));
  const Shape open = *op("Add", {input({b_}), input({s_})})->shape;
  EXPECT_FALSE(open[0].is_constant());
  EXPECT_NE(open[0], b_);
  EXPECT_NE(open[0], s_);
  EXPECT_FALSE(failure("Add", {input({3}), input({4})}).ok());
  EXPECT_FALSE(failure("Add", {input({3}), input({3}, DType::kInt64)}).ok());
}

TEST_F(Symbolic, Attention) {
  Node* node = op("Attention",
                  {input({b_, s_, 576}), input({b_, s_, 192}), input({b_, s_, 192}), nullptr,
                   input({b_, 3, p_, 64}), input({b_, 3, p_, 64})},
                  {{"q_num_heads", int64_t{9}}, {"kv_num_heads", int64_t{3}}}, 3)
                   ->producer;
  EXPECT_EQ(*node->output(0)->shape, (Shape{b_, s_, 576}));
  EXPECT_EQ(*node->output(1)->shape, (Shape{b_, 3, p_ + s_, 64}));
  EXPECT_EQ(*node->output(2)->shape, (Shape{b_, 3, p_ + s_, 64}));
}

TEST_F(Symbolic, UnknownShapesStayOpen) {
  Value* x = graph_.add_input("rankless", DType::kFloat32, std::nullopt);
  Value* list = input({3}, DType::kInt64);
  EXPECT_EQ(op("Reshape", {x, list})->shape->size(), 3u);
  EXPECT_EQ(text(op("Transpose", {x})), "?");
  EXPECT_EQ(text(op("Softmax", {x})), "?");
  EXPECT_EQ(text(op("Concat", {x, x}, {{"axis", int64_t{1}}})), "?");
  EXPECT_EQ(op("Shape", {x})->shape->size(), 1u);
  EXPECT_EQ(op("Expand", {input({b_, 1}), list})->shape->size(), 3u);
  EXPECT_EQ(op("NonZero", {input({b_, 4})})->shape->at(0), Dim(2));
}

TEST_F(Symbolic, WrongGraphsAreErrors) {
  EXPECT_FALSE(failure("Reshape", {input({4, 6}), ints({5, -1})}).ok());
  EXPECT_FALSE(failure("Reshape", {input({4, 6}), ints({-1, -1})}).ok());
  EXPECT_FALSE(failure("Transpose", {input({4, 6})}, {{"perm", std::vector<int64_t>{0, 0}}}).ok());
  EXPECT_FALSE(failure("Gather", {input({4}), ints({0})}, {{"axis", int64_t{3}}}).ok());
  EXPECT_FALSE(failure("MatMul", {input({4, 6}), input({5, 4})}).ok());
  EXPECT_FALSE(failure("Slice", {input({4}), ints({0}), ints({4}), ints({0}), ints({0})}).ok());
  EXPECT_FALSE(failure("Range", {scalar(0), scalar(4), scalar(0)}).ok());
  EXPECT_FALSE(failure("Cast", {input({4})}, {{"to", int64_t{77}}}).ok());
  EXPECT_FALSE(failure("ConstantOfShape", {ints({-4})}).ok());
}

/// Kernels on hostile values: an error, never a read outside.
class Hostile : public testing::Test {
 protected:
  static bool fails(std::string name, std::vector<Tensor> inputs,
                    std::map<std::string, Attribute, std::less<>> attributes = {}) {
    Graph graph;
    std::vector<Value*> values;
    std::vector<const Tensor*> pointers;
    for (const Tensor& t : inputs) {
      values.push_back(
          graph.add_input(graph.unique_name("x"), t.dtype(), Shape(t.dims().begin(), t.dims().end())));
      pointers.push_back(&t);
    }
    Node* node = graph.add_node(std::move(name), values, 1);
    node->attributes = std::move(attributes);
    return !evaluate_node(*node, pointers).ok();
  }
  static Tensor floats(std::vector<int64_t> dims) {
    Tensor t = *Tensor::allocate(DType::kFloat32, dims);
    for (int64_t i = 0; i < t.elements(); ++i) t.mutable_data_as<float>()[i] = static_cast<float>(i);
    return t;
  }
  static Tensor ints(std::vector<int64_t> values) { return Tensor::vector(values); }
};

TEST_F(Hostile, IndicesOutside) {
  EXPECT_TRUE(fails("Gather", {floats({4}), ints({4})}));
  EXPECT_TRUE(fails("Gather", {floats({4}), ints({INT64_MIN})}));
  EXPECT_FALSE(fails("Gather", {floats({4}), ints({-4})}));
  EXPECT_TRUE(fails("GatherElements", {floats({4}), ints({0, -5})}));
  EXPECT_TRUE(fails("GatherND", {floats({4}), ints({9})}));
  EXPECT_TRUE(fails("ScatterElements", {floats({4}), ints({7}), floats({1})}));
  EXPECT_TRUE(fails("ScatterND", {floats({4}), ints({-9}), floats({})}));
  EXPECT_TRUE(fails("TopK", {floats({4}), ints({5})}));
  EXPECT_TRUE(fails("Split", {floats({4}), ints({9})}));
  EXPECT_TRUE(fails("TensorScatter", {floats({1, 4, 2}), floats({1, 2, 2}), ints({3})}));
  EXPECT_TRUE(fails("TensorScatter", {floats({1, 4, 2}), floats({1, 2, 2}), ints({-1})}));
}

TEST_F(Hostile, EnormousResults) {
  constexpr int64_t kHuge = int64_t{1} << 50;
  EXPECT_TRUE(fails("Expand", {floats({1}), ints({kHuge})}));
  EXPECT_TRUE(fails("Tile", {floats({4}), ints({INT64_MAX})}));
  EXPECT_TRUE(fails("ConstantOfShape", {ints({kHuge, kHuge})}));
  EXPECT_TRUE(
      fails("Range", {Tensor::scalar(INT64_MIN), Tensor::scalar(INT64_MAX), Tensor::scalar(int64_t{1})}));
  EXPECT_TRUE(fails("Pad", {floats({1}), ints({INT64_MAX, INT64_MAX})}));
  EXPECT_TRUE(fails("OneHot", {ints({1}), Tensor::scalar(kHuge), floats({2})}));
  EXPECT_TRUE(fails("Reshape", {floats({4}), ints({INT64_MAX, INT64_MAX, -1})}));
}

TEST_F(Hostile, ExtremeNumbers) {
  EXPECT_FALSE(
      fails("Slice", {floats({4}), ints({INT64_MAX}), ints({INT64_MIN}), ints({0}), ints({INT64_MIN})}));
  EXPECT_FALSE(
      fails("Slice", {floats({4}), ints({INT64_MIN}), ints({INT64_MAX}), ints({0}), ints({INT64_MAX})}));
  EXPECT_TRUE(fails("Div", {ints({4}), ints({0})}));
  EXPECT_TRUE(fails("Mod", {ints({4}), ints({0})}));
  EXPECT_FALSE(fails("Div", {ints({INT64_MIN}), ints({-1})}));
  EXPECT_FALSE(fails("Mod", {ints({INT64_MIN}), ints({-1})}));
  EXPECT_FALSE(fails("Abs", {ints({INT64_MIN})}));
  EXPECT_FALSE(fails("Trilu", {floats({2, 2}), Tensor::scalar(INT64_MIN)}));
  EXPECT_FALSE(fails("Trilu", {floats({2, 2}), Tensor::scalar(INT64_MAX)}));
}

TEST_F(Hostile, RanksAreChecked) {
  EXPECT_TRUE(fails("MatMul", {floats({}), floats({2})}));
  EXPECT_TRUE(fails("Gemm", {floats({2}), floats({2})}));
  EXPECT_TRUE(fails("Trilu", {floats({2})}));
  EXPECT_TRUE(fails("Transpose", {floats({2, 2})}, {{"perm", std::vector<int64_t>{0}}}));
  EXPECT_TRUE(fails("Attention", {floats({2, 2}), floats({2, 2}), floats({2, 2})}));
  EXPECT_TRUE(fails("RotaryEmbedding", {floats({1, 2, 8}), floats({1, 2, 2}), floats({1, 2, 2})}));
  EXPECT_TRUE(fails("Softmax", {floats({})}));
  EXPECT_TRUE(fails("Squeeze", {floats({2})}, {}) || !fails("Squeeze", {floats({1})}));
}

TEST(OpElements, HalfTypesRoundOnce) {
  // 1 + 2^-11 + 2^-40 lies just over the middle of two halves: rounding through float32 first would lose
  // that.
  const Tensor t = *make_tensor<double>(DType::kFloat16, {1}, {1.0 + 0x1p-11 + 0x1p-40});
  EXPECT_EQ(t.double_at(0), 1.0 + 0x1p-10);
  const Tensor b = *make_tensor<double>(DType::kBFloat16, {1}, {1.0 + 0x1p-8 + 0x1p-40});
  EXPECT_EQ(b.double_at(0), 1.0 + 0x1p-7);
  EXPECT_EQ((*make_tensor<double>(DType::kInt8, {2}, {300.0, NAN})).to_ints(), (std::vector<int64_t>{44, 0}));
}

}  // namespace
}  // namespace decant::ir
