#include <array>
#include <cstring>
#include <string>
#include <unordered_map>

#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

/// Constants up to this size are compared by their bytes.
constexpr size_t kSmallBytes = 256;

void append(std::string& key, const void* pointer) {
  key += std::to_string(reinterpret_cast<uintptr_t>(pointer));
  key += ';';
}

struct AttributeKey {
  std::string& key;
  bool comparable = true;
  void operator()(int64_t v) { key += std::to_string(v); }
  void operator()(float v) {
    std::array<char, sizeof(float)> bytes;
    std::memcpy(bytes.data(), &v, sizeof(float));
    key.append(bytes.data(), bytes.size());
  }
  void operator()(const std::string& v) { key += std::to_string(v.size()) + ':' + v; }
  template <typename T>
  void operator()(const std::vector<T>& v) {
    key += std::to_string(v.size()) + '[';
    for (const T& x : v) {
      (*this)(x);
      key += ',';
    }
  }
  void operator()(const ir::ConstantPtr& v) { append(key, v.get()); }
  void operator()(const std::shared_ptr<Graph>&) { comparable = false; }
  void operator()(const ir::TypeAttribute&) { comparable = false; }
};

/// Equal for nodes that compute the same; empty for nodes that are left alone.
std::string key_of(const Node& node) {
  const ir::OpDef* op = ir::find_op(node.domain(), node.op());
  if (!op || op->random || node.custom) return "";
  std::string key = node.domain() + "::" + node.op() + '(';
  for (const Value* v : node.inputs()) append(key, v);
  AttributeKey visitor{key};
  for (const auto& [name, attribute] : node.attributes) {
    key += name + '=' + std::to_string(attribute.index()) + ':';
    std::visit(visitor, attribute);
    key += ';';
  }
  for (const Value* v : node.outputs()) key += v ? 'o' : '-';
  return visitor.comparable ? key : "";
}

bool merge_constants(Graph& graph) {
  std::unordered_map<std::string, Value*> seen;
  bool changed = false;
  for (const auto& v : graph.values()) {
    if (!v->constant || v->users().empty() || !v->constant->in_memory() || graph.is_output(v.get()) ||
        size_of(v->constant->dtype()) == 0 || v->constant->bytes() > kSmallBytes)
      continue;
    std::string key = std::to_string(static_cast<int>(v->constant->dtype())) + ':';
    for (const int64_t d : v->constant->dims()) key += std::to_string(d) + ',';
    const ir::Tensor t = v->constant->tensor();
    key.append(static_cast<const char*>(t.data()), v->constant->bytes());
    const auto [at, fresh] = seen.emplace(std::move(key), v.get());
    if (fresh) continue;
    graph.replace_all_uses(v.get(), at->second);
    changed = true;
  }
  return changed;
}

}  // namespace

Result<bool> merge_equal(Graph& graph) {
  bool changed = merge_constants(graph);
  std::unordered_map<std::string, Node*> seen;
  for (const auto& node : graph.nodes()) {
    if (!node || node->outputs().empty()) continue;
    std::string key = key_of(*node);
    if (key.empty()) continue;
    const auto [at, fresh] = seen.emplace(std::move(key), node.get());
    if (fresh) continue;
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      Value *from = node->output(i), *to = at->second->output(i);
      if (!from || from->users().empty()) continue;
      // Outputs of the graph keep their own producer; other users may share.
      if (graph.is_output(from)) {
        const std::vector<Node*> users = from->users();
        for (Node* user : users) {
          for (size_t n = 0; n < user->inputs().size(); ++n) {
            if (user->input(n) == from) user->set_input(n, to);
          }
        }
      } else {
        graph.replace_all_uses(from, to);
      }
      changed = true;
    }
  }
  return changed;
}

}  // namespace decant::passes
