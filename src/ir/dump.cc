#include <fmt/format.h>

#include "ir/graph.h"

namespace decant::ir {
namespace {

void append_type(const Value& v, std::string& out) {
  if (v.kind != ValueKind::kTensor) out += std::string(to_string(v.kind)) + " of ";
  out += to_string(v.dtype);
  out += v.shape ? to_string(*v.shape) : "[...]";
}

struct AttributePrinter {
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(float v) const { return fmt::format("{}f", v); }
  std::string operator()(const std::string& v) const { return "\"" + v + "\""; }
  std::string operator()(const std::vector<int64_t>& v) const { return list(v); }
  std::string operator()(const std::vector<float>& v) const { return list(v); }
  std::string operator()(const std::vector<std::string>& v) const { return list(v); }
  std::string operator()(const ConstantPtr& c) const { return c ? describe(c->dtype(), c->dims()) : "null"; }
  std::string operator()(const std::shared_ptr<Graph>& g) const {
    std::string text = "{\n";
    if (g) text += dump(*g);
    return text + "}";
  }

  std::string operator()(const TypeAttribute& t) const {
    return std::string(to_string(t.kind)) + " of " + std::string(to_string(t.dtype));
  }

  template <typename T>
  static std::string list(const std::vector<T>& values) {
    std::string out = "[";
    for (size_t i = 0; i < values.size(); ++i) {
      if (i) out += ", ";
      out += fmt::format("{}", values[i]);
    }
    return out + "]";
  }
};

}  // namespace

std::string dump(const Graph& graph) {
  std::string out = "graph " + graph.name + "\n";
  for (const Value* v : graph.inputs()) {
    out += "  input " + v->name + ": ";
    append_type(*v, out);
    out += '\n';
  }
  for (const auto& v : graph.values()) {
    if (!v->constant) continue;
    out += "  constant " + v->name + ": " + describe(v->constant->dtype(), v->constant->dims()) + "\n";
  }
  for (const auto& node : graph.nodes()) {
    if (!node) continue;
    out += "  ";
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      const Value* v = node->outputs()[i];
      if (i) out += ", ";
      if (!v) {
        out += "_";
        continue;
      }
      out += v->name + ": ";
      append_type(*v, out);
    }
    out += " = " + (node->domain().empty() ? "" : node->domain() + "::") + node->op() + "(";
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      if (i) out += ", ";
      out += node->inputs()[i] ? node->inputs()[i]->name : "_";
    }
    out += ")";
    for (const auto& [key, attribute] : node->attributes)
      out += " " + key + "=" + std::visit(AttributePrinter{}, attribute);
    out += '\n';
  }
  for (const State& s : graph.states) {
    out += fmt::format("  state {} -> {} {} axis={}\n", s.input->name, s.output->name,
                       s.form == State::Form::kGrowing ? "growing" : "fixed", s.axis);
  }
  for (const Value* v : graph.outputs()) {
    out += "  output " + v->name + ": ";
    append_type(*v, out);
    out += '\n';
  }
  return out;
}

}  // namespace decant::ir
