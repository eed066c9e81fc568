#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decant/custom_op.h"
#include "ir/graph.h"

namespace decant::api {

/// The dims of a shape as the public interface shows them.
std::vector<Dim> dims_of(const ir::Shape& shape);

/// The custom operators of one load, ready to be attached to the nodes that they stand for.
class CustomOps {
 public:
  /// invalid_argument for a name given twice, or a missing name or function.
  static Result<CustomOps> create(const std::vector<CustomOp>& ops);
  /// To the graph's nodes and those of its sub-graphs.
  void attach(ir::Graph& graph) const;

 private:
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const ir::CustomOp>> ops_;
};

}  // namespace decant::api
