#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

enum class Branch { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual, kMember };

struct TreeNode {
  Branch branch;
  double split;
  std::set<double> members;
  size_t feature, yes, no;
  bool yes_is_leaf, no_is_leaf, missing_is_yes;
};

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<size_t> roots;
  std::vector<double> leaf_weights;
  std::vector<size_t> leaf_targets;
  size_t targets = 0, features = 0;  ///< features: as many as are looked at
};

/// An INTS attribute as indices below `limit`.
Result<std::vector<size_t>> indices(const Node& node, std::string_view key, size_t limit) {
  const auto* values = node.attribute<std::vector<int64_t>>(key);
  if (!values) return node_error(node, fmt::format("attribute '{}' is missing", key));
  std::vector<size_t> out;
  for (int64_t v : *values) {
    if (v < 0 || static_cast<uint64_t>(v) >= limit)
      return node_error(node, fmt::format("'{}' has {}", key, v));
    out.push_back(static_cast<size_t>(v));
  }
  return out;
}

Result<std::vector<double>> numbers(const Node& node, std::string_view key, bool required) {
  const auto* value = node.attribute<ConstantPtr>(key);
  if (value && *value && (*value)->in_memory()) return read<double>((*value)->tensor());
  if (!required) return std::vector<double>();
  return node_error(node, fmt::format("attribute '{}' is missing", key));
}

Result<Forest> forest_of(const Node& node) {
  constexpr size_t kMost = size_t{1} << 24;
  Forest f;
  DECANT_ASSIGN(f.leaf_weights, numbers(node, "leaf_weights", true));
  const int64_t targets = node.int_attribute("n_targets", 1);
  if (targets < 1 || targets > static_cast<int64_t>(kMost))
    return node_error(node, "n_targets is out of range");
  f.targets = static_cast<size_t>(targets);
  DECANT_ASSIGN(f.leaf_targets, indices(node, "leaf_targetids", f.targets));
  DECANT_ASSIGN(const auto modes, numbers(node, "nodes_modes", true));
  DECANT_ASSIGN(const auto splits, numbers(node, "nodes_splits", true));
  DECANT_ASSIGN(const auto members, numbers(node, "membership_values", false));
  DECANT_ASSIGN(const auto features, indices(node, "nodes_featureids", kMost));
  DECANT_ASSIGN(const auto yes, indices(node, "nodes_truenodeids", kMost));
  DECANT_ASSIGN(const auto no, indices(node, "nodes_falsenodeids", kMost));
  DECANT_ASSIGN(const auto yes_leafs, indices(node, "nodes_trueleafs", 2));
  DECANT_ASSIGN(const auto no_leafs, indices(node, "nodes_falseleafs", 2));
  std::vector<size_t> missing;
  if (node.attribute<std::vector<int64_t>>("nodes_missing_value_tracks_true")) {
    DECANT_ASSIGN(missing, indices(node, "nodes_missing_value_tracks_true", 2));
  }
  const size_t n = modes.size();
  if (splits.size() != n || features.size() != n || yes.size() != n || no.size() != n ||
      yes_leafs.size() != n || no_leafs.size() != n || (!missing.empty() && missing.size() != n) ||
      f.leaf_weights.size() != f.leaf_targets.size()) {
    return node_error(node, "attributes of nodes or leaves differ in length");
  }
  DECANT_ASSIGN(f.roots, indices(node, "tree_roots", n));
  size_t member = 0;
  for (size_t i = 0; i < n; ++i) {
    if (!(modes[i] >= 0 && modes[i] <= 6)) return node_error(node, "an unknown mode");
    TreeNode t{static_cast<Branch>(static_cast<int>(modes[i])),
               splits[i],
               {},
               features[i],
               yes[i],
               no[i],
               yes_leafs[i] == 1,
               no_leafs[i] == 1,
               !missing.empty() && missing[i] == 1};
    const size_t leaves = f.leaf_weights.size();
    if (t.yes >= (t.yes_is_leaf ? leaves : n) || t.no >= (t.no_is_leaf ? leaves : n)) {
      return node_error(node, "a branch leads nowhere");
    }
    if (t.branch == Branch::kMember) {
      for (; member < members.size() && !std::isnan(members[member]); ++member)
        t.members.insert(members[member]);
      ++member;
    }
    f.features = std::max(f.features, t.feature + 1);
    f.nodes.push_back(std::move(t));
  }
  return f;
}

bool takes_yes(const TreeNode& t, double x) {
  if (std::isnan(x)) return t.missing_is_yes;
  switch (t.branch) {
    case Branch::kLessEqual:
      return x <= t.split;
    case Branch::kLess:
      return x < t.split;
    case Branch::kGreaterEqual:
      return x >= t.split;
    case Branch::kGreater:
      return x > t.split;
    case Branch::kEqual:
      return x == t.split;
    case Branch::kNotEqual:
      return x != t.split;
    case Branch::kMember:
      return t.members.count(x) != 0;
  }
  return false;
}

Status infer_tree_ensemble(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_rank(context, 0, 2));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  if (context.node().int_attribute("post_transform", 0) != 0) {
    return unsupported(context.node().describe() + ": post_transform is not supported");
  }
  DECANT_ASSIGN(const Forest forest, forest_of(context.node()));
  const Dim rows = context.shape(0) ? (*context.shape(0))[0] : context.fresh_symbol("rows");
  context.set_output(0, context.dtype(0), Shape{rows, Dim(static_cast<int64_t>(forest.targets))});
  return ok_status();
}

EvalResult eval_tree_ensemble(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const Forest forest, forest_of(node));
  if (x.rank() != 2 || !is_float(x.dtype()) || x.dims()[1] < static_cast<int64_t>(forest.features)) {
    return node_error(node, "needs float rows with all features that the trees look at");
  }
  const int64_t aggregate = node.int_attribute("aggregate_function", 1);  // average, sum, min, max
  if (aggregate < 0 || aggregate > 3) return node_error(node, "unknown aggregate_function");
  const auto rows = static_cast<size_t>(x.dims()[0]), columns = static_cast<size_t>(x.dims()[1]);
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), {x.dims()[0], static_cast<int64_t>(forest.targets)}));
  const std::vector<double> values = read<double>(x);
  std::vector<double> totals(rows * forest.targets, 0.0);
  std::vector<bool> given(totals.size(), false);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t at : forest.roots) {
      bool leaf = false;
      for (size_t steps = 0; !leaf; ++steps) {
        if (steps > forest.nodes.size()) return node_error(node, "the branches run in a circle");
        const TreeNode& t = forest.nodes[at];
        const bool yes = takes_yes(t, values[r * columns + t.feature]);
        at = yes ? t.yes : t.no;
        leaf = yes ? t.yes_is_leaf : t.no_is_leaf;
      }
      const size_t slot = r * forest.targets + forest.leaf_targets[at];
      const double weight = forest.leaf_weights[at];
      if (aggregate < 2) {
        totals[slot] += aggregate == 0 ? weight / static_cast<double>(forest.roots.size()) : weight;
      } else if (!given[slot]) {
        totals[slot] = weight;
      } else {
        totals[slot] = aggregate == 2 ? std::min(totals[slot], weight) : std::max(totals[slot], weight);
      }
      given[slot] = true;
    }
  }
  write_range<double>(out, 0, std::span<const double>(totals));
  return single(std::move(out));
}

}  // namespace

DECANT_OP(TreeEnsemble) {
  return {.name = "TreeEnsemble",
          .domain = "ai.onnx.ml",
          .doc = "Decision trees, their leaves' weights added up by target",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_tree_ensemble,
          .eval = eval_tree_ensemble};
}

}  // namespace decant::ir
