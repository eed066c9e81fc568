#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

/// "past + 1" becomes past + the number of ids.
bool correct_lengths(ir::Graph& graph) {
  const ir::Value* ids = nullptr;
  for (const ir::Value* v : graph.inputs()) {
    if (v->name == "input_ids" && v->shape && v->shape->size() == 2) ids = v;
  }
  if (!ids || (*ids->shape)[1].symbol_name().empty()) return false;
  bool changed = false;
  for (ir::Value* v : graph.inputs()) {
    if (!v->shape) continue;
    for (ir::Dim& d : *v->shape) {
      const ir::Dim past = d - ir::Dim(1);
      if (past.symbol_name().empty()) continue;
      d = past + (*ids->shape)[1];
      changed = true;
    }
  }
  return changed;
}

/// An expression of a symbol that no input's dim gives ("encoder_sequence_length / 2") becomes a symbol
/// itself; equal ones become the same.
bool free_expressions(ir::Graph& graph) {
  std::set<std::string> given;
  for (const ir::Value* v : graph.inputs()) {
    if (!v->shape) continue;
    for (const ir::Dim& d : *v->shape) given.insert(d.symbol_name());
  }
  std::map<std::string, ir::Dim> fresh;
  for (ir::Value* v : graph.inputs()) {
    if (!v->shape) continue;
    for (ir::Dim& d : *v->shape) {
      if (d.is_constant() || !d.symbol_name().empty()) continue;
      const auto symbols = d.symbols();
      if (std::all_of(symbols.begin(), symbols.end(),
                      [&](const std::string& s) { return given.count(s) != 0; }))
        continue;
      auto [it, inserted] = fresh.emplace(d.to_string(), ir::Dim());
      if (inserted) it->second = graph.fresh_symbol(v->name);
      d = it->second;
    }
  }
  return !fresh.empty();
}

/// A run has at least one id: shape arithmetic such as x[-length:] needs to know.
void limit_lengths(ir::Graph& graph) {
  for (const ir::Value* v : graph.inputs()) {
    if ((v->name != "input_ids" && v->name != "decoder_input_ids") || !v->shape) continue;
    for (const ir::Dim& d : *v->shape) {
      if (d.symbol_name().empty()) continue;
      ir::SymbolRange& range = graph.symbol_ranges[d.symbol_name()];
      range.min = std::max<int64_t>(range.min, 1);
    }
  }
}

}  // namespace

Result<bool> correct_labels(ir::Graph& graph) {
  limit_lengths(graph);
  const bool lengths = correct_lengths(graph), expressions = free_expressions(graph);
  return lengths || expressions;
}

}  // namespace decant::passes
