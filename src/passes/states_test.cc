#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/op.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Dim;
using ir::Graph;
using ir::Value;

class CacheGraph {
 public:
  CacheGraph() {
    batch = Dim::symbol("batch");
    query = g.add_input("query", DType::kFloat32, ir::Shape{batch, Dim(2), Dim::symbol("sequence"), Dim(8)});
    at = g.add_input("at", DType::kInt64, ir::Shape{batch});
    total = g.add_input("total", DType::kInt64, ir::Shape{});
    total->elements = std::vector<Dim>{Dim::symbol("total")};
  }

  Value* ints(std::vector<int64_t> v) {
    return g.add_constant(g.unique_name("ints"), ir::Constant::from_tensor(ir::Tensor::vector(v)));
  }
  Value* node(std::string op, std::vector<Value*> inputs, Attributes attributes = {},
              std::string domain = "") {
    auto made = add_typed(g, std::move(op), std::move(inputs), std::move(attributes), std::move(domain));
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return *made;
  }
  Value* past(const std::string& kind, const std::string& symbol) {
    return g.add_input("past_key_values.0." + kind, DType::kFloat32,
                       ir::Shape{batch, Dim(2), Dim::symbol(symbol), Dim(8)});
  }
  void finish(Value* keys, Value* values, Value* valid) {
    g.add_output(node("Attention", {query, keys, values, nullptr, nullptr, nullptr, valid},
                      {{"is_causal", int64_t{1}}}));
  }
  void fix() {
    auto found = detect_states(g);
    ASSERT_TRUE(found.ok() && *found);
    ASSERT_EQ(g.states.size(), 2u);
    auto fixed = fix_states(g);
    ASSERT_TRUE(fixed.ok()) << fixed.status().to_string();
    EXPECT_TRUE(*fixed);
    for (const ir::State& s : g.states) {
      EXPECT_EQ(s.form, ir::State::Form::kFixed);
      ASSERT_TRUE(s.output->producer && s.output->producer->is("TensorScatter"));
      EXPECT_EQ(s.output->producer->input(0), s.input);
      EXPECT_EQ((*s.input->shape)[2], Dim::symbol("max_cache_len"));
      EXPECT_EQ(s.output->name.rfind("present.0.", 0), 0u);
    }
  }

  Graph g;
  Dim batch;
  Value *query, *at, *total;
};

TEST(FixStates, CachesThatAreLengthenedWhereTooShort) {
  CacheGraph c;
  std::vector<Value*> present;
  for (const char* kind : {"key", "value"}) {
    Value* past = c.past(kind, "past");
    Value* capacity = c.node("Shape", {past}, {{"start", int64_t{2}}, {"end", int64_t{3}}});
    Value* missing = c.node("Max", {c.node("Sub", {c.total, capacity}), c.ints({0})});
    Value* pads =
        c.node("Concat", {c.ints({0, 0, 0, 0, 0, 0}), missing, c.ints({0})}, {{"axis", int64_t{0}}});
    present.push_back(
        c.node("TensorScatter", {c.node("Pad", {past, pads}), c.query, c.at}, {{"axis", int64_t{2}}}));
    present.back()->name = std::string("present.0.") + kind;
    c.g.add_output(present.back());
  }
  c.finish(present[0], present[1], c.node("Add", {c.at, c.ints({1})}));
  c.fix();
}

TEST(FixStates, SlidingCachesBecomeWhole) {
  CacheGraph c;
  std::vector<Value*> joined;
  Value* resident = nullptr;
  for (const char* kind : {"key", "value"}) {
    Value* past = c.past(kind, "window");
    ir::Node* update = c.g.add_node("SlidingCache", {past, c.query, c.at, c.at}, 3, kind, "decant");
    update->attributes["window"] = int64_t{4};
    ASSERT_TRUE(ir::infer_node(c.g, *update).ok());
    joined.push_back(update->output(1));
    resident = update->output(2);
    update->output(0)->name = std::string("present.0.") + kind;
    c.g.add_output(update->output(0));
  }
  c.finish(joined[0], joined[1], c.node("Add", {resident, c.ints({1})}));
  c.fix();
  for (const auto& n : c.g.nodes()) EXPECT_NE(n->op(), "SlidingCache");
}

TEST(FixStates, ConcatenatedCachesOfCausalAttention) {
  CacheGraph c;
  std::vector<Value*> present;
  for (const char* kind : {"key", "value"}) {
    present.push_back(c.node("Concat", {c.past(kind, "past"), c.query}, {{"axis", int64_t{2}}}));
    present.back()->name = std::string("present.0.") + kind;
    c.g.add_output(present.back());
  }
  Value* length = c.node("Shape", {present[0]}, {{"start", int64_t{2}}, {"end", int64_t{3}}});
  Value* rows = c.node("Shape", {c.query}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
  c.finish(present[0], present[1], c.node("Expand", {length, rows}));
  c.fix();
}

TEST(FixStates, TheShapeOfACacheTellsWhatItHolds) {
  CacheGraph c;
  std::vector<Value*> present, shapes;
  for (const char* kind : {"key", "value"}) {
    Value* past = c.past(kind, "past");
    shapes.push_back(c.node("Shape", {past}, {{"start", int64_t{-2}}}));
    present.push_back(c.node("Concat", {past, c.query}, {{"axis", int64_t{2}}}));
    present.back()->name = std::string("present.0.") + kind;
    c.g.add_output(present.back());
  }
  c.g.add_output(c.node("Attention", {c.query, present[0], present[1]}));
  for (Value* shape : shapes) c.g.add_output(shape);
  c.fix();
  std::vector<ir::Tensor> inputs;
  for (const Value* v : c.g.inputs()) {
    std::vector<int64_t> dims;
    if (v->name == "query") dims = {1, 2, 1, 8};
    if (v->name == "at") dims = {1};
    if (v->name.rfind("past", 0) == 0) dims = {1, 2, 16, 8};
    auto t = ir::Tensor::allocate(v->dtype, dims);
    std::fill_n(t->mutable_data_as<std::byte>(), t->bytes(), std::byte{0});
    if (v->name == kCacheLengthInput) *t->mutable_data_as<int64_t>() = 3;
    inputs.push_back(*t);
  }
  auto out = ir::evaluate_graph(c.g, inputs);
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  ASSERT_EQ(out->size(), 5u);
  for (size_t i = 3; i < 5; ++i) EXPECT_EQ((*out)[i].to_ints(), (std::vector<int64_t>{3, 8}));
}

}  // namespace
}  // namespace decant::passes
