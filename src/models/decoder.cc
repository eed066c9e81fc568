#include "models/decoder.h"

#include <string>

namespace decant::models {

using ir::Dim;
using ir::Value;

Decoder::Decoder(Builder& b, const Shape& shape, CacheForm form, std::optional<int64_t> max_cache_len)
    : b_(b), shape_(shape), form_(form) {
  make_inputs(max_cache_len);
  make_mask();
  present_.resize(static_cast<size_t>(shape_.layers) * 2);
}

void Decoder::make_inputs(std::optional<int64_t> max_cache_len) {
  ir::Graph& graph = b_.graph();
  const Dim batch = Dim::symbol("batch_size"), sequence = Dim::symbol("sequence_length");
  Dim past = Dim::symbol("past_sequence_length"), total = past + sequence;
  if (form_ == CacheForm::kNone) total = sequence;
  if (form_ == CacheForm::kStatic)
    total = past = max_cache_len ? Dim(*max_cache_len) : Dim::symbol("max_cache_len");
  graph.symbol_ranges["batch_size"] = {.min = 1};
  graph.symbol_ranges["sequence_length"] = {.min = 1};

  input_ids_ = graph.add_input("input_ids", DType::kInt64, ir::Shape{batch, sequence});
  attention_mask_ = graph.add_input("attention_mask", DType::kInt64, ir::Shape{batch, total});
  position_ids_ = graph.add_input("position_ids", DType::kInt64, ir::Shape{batch, sequence});
  if (form_ == CacheForm::kNone) return;
  if (form_ == CacheForm::kStatic)
    cache_length_ = graph.add_input("cache_length", DType::kInt64, ir::Shape{});
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    for (const char* part : {".key", ".value"}) {
      past_.push_back(graph.add_input("past_key_values." + std::to_string(layer) + part, b_.dtype(),
                                      ir::Shape{batch, shape_.kv_heads, past, shape_.head_dim}));
    }
  }
}

void Decoder::make_mask() {
  Value* queries = b_.size(input_ids_, 1);
  Value* keys = b_.size(attention_mask_, 1);
  Value* first = nullptr;  // buffer position of the first query
  if (form_ == CacheForm::kDynamic) first = b_.op("Sub", {keys, queries}, {}, "mask");
  if (form_ == CacheForm::kStatic) first = cache_length_;

  auto count_to = [&](Value* end) {
    return b_.op("Range", {b_.int_scalar(0), end, b_.int_scalar(1)}, {}, "mask");
  };
  Value* row = count_to(queries);
  if (first) row = b_.op("Add", {row, first}, {}, "mask");
  row = b_.op("Unsqueeze", {row, b_.ints({1})}, {}, "mask");                       // [queries, 1]
  Value* column = b_.op("Unsqueeze", {count_to(keys), b_.ints({0})}, {}, "mask");  // [1, keys]
  Value* visible = b_.op("LessOrEqual", {column, row}, {}, "mask");
  if (shape_.window) {
    Value* oldest = b_.op("Sub", {row, b_.int_scalar(*shape_.window)}, {}, "mask");
    visible = b_.op("And", {visible, b_.op("Greater", {column, oldest}, {}, "mask")}, {}, "mask");
  }
  Value* text = b_.op("Unsqueeze", {b_.cast(attention_mask_, DType::kBool), b_.ints({1, 2})}, {}, "mask");
  mask_ = b_.op("And", {visible, text}, {}, "mask");

  if (form_ == CacheForm::kStatic) {
    Value* batch = b_.op("Unsqueeze", {b_.size(input_ids_, 0), b_.ints({0})}, {}, "cache");
    write_positions_ = b_.op("Expand", {cache_length_, batch}, {}, "cache");
  }
}

Value* Decoder::extend(Value* past, Value* update) {
  constexpr int64_t kPositionAxis = 2;
  if (form_ == CacheForm::kDynamic)
    return b_.op("Concat", {past, update}, {{"axis", kPositionAxis}}, "cache");
  return b_.op("TensorScatter", {past, update, write_positions_},
               {{"axis", kPositionAxis}, {"mode", std::string("linear")}}, "cache");
}

std::pair<Value*, Value*> Decoder::cache(int64_t layer, Value* key, Value* value) {
  if (form_ == CacheForm::kNone) return {key, value};
  const size_t i = static_cast<size_t>(layer) * 2;
  present_[i] = extend(past_[i], key);
  present_[i + 1] = extend(past_[i + 1], value);
  present_[i]->name = "present." + std::to_string(layer) + ".key";
  present_[i + 1]->name = "present." + std::to_string(layer) + ".value";
  return {present_[i], present_[i + 1]};
}

void Decoder::finish(Value* logits) {
  ir::Graph& graph = b_.graph();
  logits->name = "logits";
  graph.add_output(logits);
  for (size_t i = 0; i < past_.size(); ++i) {
    graph.add_output(present_[i]);
    graph.states.push_back(
        {.input = past_[i],
         .output = present_[i],
         .kind = ir::State::Kind::kKeyValue,
         .form = form_ == CacheForm::kStatic ? ir::State::Form::kFixed : ir::State::Form::kGrowing,
         .axis = 2});
  }
}

}  // namespace decant::models
