#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/constant.h"
#include "ir/dim.h"

namespace decant::ir {

class Graph;
class Node;

/// One SSA value. Owned by the graph whose input it is or whose node produces it; sub-graphs refer to values
/// of the graphs around them directly.
struct Value {
  std::string name;
  DType dtype = DType::kUndefined;
  std::optional<Shape> shape;  ///< nothing: the rank is unknown

  Node* producer = nullptr;  ///< null for graph inputs and constants
  ConstantPtr constant;      ///< set for constants (initializers)

  /// Elements of a small integer tensor (rank 0 or 1) as expressions, where shape inference could tell.
  std::optional<std::vector<Dim>> elements;

  const std::vector<Node*>& users() const { return users_; }
  bool is_constant() const { return constant != nullptr; }

 private:
  friend class Node;
  friend class Graph;
  std::vector<Node*> users_;  ///< one entry for each input slot that refers to this value
};

/// Attribute values, with ONNX's kinds. Sub-graphs are owned by the node.
using Attribute = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                               std::vector<std::string>, ConstantPtr, std::shared_ptr<Graph>>;

/// One operator call. `domain` is "" for the ONNX operators (in the graph's one fixed version),
/// "com.microsoft" and others for those not lifted.
class Node {
 public:
  Node(std::string op, std::string domain) : op_(std::move(op)), domain_(std::move(domain)) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const std::string& op() const { return op_; }
  const std::string& domain() const { return domain_; }
  bool is(std::string_view op) const { return domain_.empty() && op_ == op; }

  std::string name;
  std::map<std::string, Attribute, std::less<>> attributes;

  /// Inputs and outputs by position; null where an optional one is left out.
  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  Value* input(size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  Value* output(size_t i) const { return i < outputs_.size() ? outputs_[i] : nullptr; }
  void set_input(size_t i, Value* value);

  /// Typed attribute access; nullptr / the default when absent or of another kind.
  template <typename T>
  const T* attribute(std::string_view key) const {
    auto it = attributes.find(key);
    return it == attributes.end() ? nullptr : std::get_if<T>(&it->second);
  }
  int64_t int_attribute(std::string_view key, int64_t fallback) const;
  float float_attribute(std::string_view key, float fallback) const;
  std::string string_attribute(std::string_view key, std::string fallback) const;

  /// "node 'name' (Op)" for messages.
  std::string describe() const;

 private:
  friend class Graph;
  std::string op_, domain_;
  std::vector<Value*> inputs_, outputs_;
};

/// A tensor that lives from one run to the next: the runtime keeps it in place.
struct State {
  enum class Kind { kKeyValue, kCounter };
  enum class Form {
    kGrowing,  ///< output = concat(input, new) along `axis`
    kFixed,    ///< output has the input's shape; new entries are written at a position
  };
  Value* input = nullptr;
  Value* output = nullptr;
  Kind kind = Kind::kKeyValue;
  Form form = Form::kGrowing;
  int axis = 0;
};

/// Bounds of a symbol, both inclusive.
struct SymbolRange {
  int64_t min = 0;
  int64_t max = INT64_MAX;
};

/// A computation: typed inputs, nodes in an order in which each value is defined before its use, outputs, and
/// the states among them. Not thread-safe; after compile it is only read.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string name;
  std::map<std::string, std::string> metadata;
  std::vector<State> states;
  std::map<std::string, SymbolRange> symbol_ranges;

  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  /// Null where a node was removed during a pass; `compact` drops those.
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }

  Value* add_input(std::string name, DType dtype, std::optional<Shape> shape);
  Value* add_constant(std::string name, ConstantPtr constant);
  void add_output(Value* value) { outputs_.push_back(value); }
  /// Drops an input that nothing uses.
  void remove_input(Value* value);
  void set_output(size_t i, Value* value) { outputs_[i] = value; }

  /// Appends a node with `output_count` fresh, untyped outputs named `<name>`, `<name>_1`, ...; an output
  /// name may be changed afterwards. Null inputs stand for optional ones left out.
  Node* add_node(std::string op, std::vector<Value*> inputs, size_t output_count = 1, std::string name = "",
                 std::string domain = "");
  /// Adds a fresh output to a node.
  Value* add_node_output(Node* node, std::string name);
  /// Marks an output slot as left out. Precondition: its value has no users.
  void drop_node_output(Node* node, size_t i);

  /// Every user of `from`, in this graph and its sub-graphs, and this graph's outputs, refers to `to`
  /// afterwards.
  void replace_all_uses(Value* from, Value* to);
  /// Precondition: no output of the node is used.
  void remove_node(Node* node);
  /// Takes over the nodes and values of `sub`, a sub-graph of one of this graph's nodes: names already taken
  /// here change, references stay. `sub` is empty afterwards; its former outputs are returned. `sort` is due.
  std::vector<Value*> absorb(Graph& sub);
  /// Removes nodes and constants that no output needs; returns how many nodes went.
  size_t remove_dead();
  /// Orders nodes so that definitions come before uses (stable) and drops removed slots. Fails on a cycle,
  /// naming a node on it.
  Status sort();

  /// A name not yet taken in this graph, made from `hint`.
  std::string unique_name(std::string_view hint);
  /// A symbol no dim of this graph uses yet.
  Dim fresh_symbol(std::string_view hint);

  const std::vector<std::unique_ptr<Value>>& values() const { return values_; }
  /// Linear search by name over inputs, outputs and node outputs; null when there is none.
  Value* find_value(std::string_view name) const;
  bool is_output(const Value* value) const;

 private:
  Value* new_value(std::string name);
  std::vector<std::unique_ptr<Value>> values_;
  std::vector<Value*> inputs_, outputs_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::string, int, std::less<>> taken_;
  int64_t next_symbol_ = 0;
};

/// Text form for people and tests: one line per node with types, attributes, and constants' dtype and dims.
std::string dump(const Graph& graph);

/// Names what is wrong: a value used before its definition, a name defined twice, a missing type, an unknown
/// op, a state whose ends do not match.
Status validate(const Graph& graph);

}  // namespace decant::ir
