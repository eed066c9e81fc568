#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "decant/compiled_model.h"
#include "decant/model.h"
#include "ir/graph.h"
#include "runtime/plan.h"

namespace decant {
namespace api {

/// What a model and everything compiled from it share.
struct Core {
  std::string path, layout;
  std::unique_ptr<ir::Graph> graph;  ///< typed, as read; plans are made from clones
  std::shared_ptr<runtime::Engine> engine;
  std::mutex running;  ///< held while a plan is made or run
  std::vector<TensorInfo> inputs, outputs;
};

std::vector<TensorInfo> infos(const std::vector<ir::Value*>& values);

}  // namespace api

struct CompiledModel::Impl {
  /// One plan, for one set of values of the static inputs.
  struct Entry {
    std::vector<Tensor> key;  ///< own copies, in the order of static_inputs
    std::unique_ptr<runtime::Plan> plan;
    std::vector<size_t> sources;   ///< of each plan input: its position among our inputs
    std::vector<int> state_input;  ///< of each output: the plan input it is written into, or -1
  };

  std::shared_ptr<api::Core> core;
  CompileOptions options;
  std::vector<TensorInfo> inputs, outputs;
  std::vector<size_t> static_inputs;  ///< positions among inputs
  std::list<Entry> entries;           ///< most recently used first
  int64_t compile_count = 0;

  static Result<std::shared_ptr<Impl>> create(std::shared_ptr<api::Core> core, const CompileOptions& options);

  /// The plan for the static inputs' values in `tensors` (by position among inputs). The lock is held.
  /// Allocates only when it makes a plan.
  Result<Entry*> find_or_compile(std::span<const Tensor> tensors);

 private:
  Result<Entry*> compile(std::vector<Tensor> key);
  Status reserve(Entry& entry) const;
};

struct Model::Impl {
  std::shared_ptr<api::Core> core;
  std::mutex lock;
  std::shared_ptr<CompiledModel::Impl> whole;  ///< what Model::run uses; made by the first run
};

}  // namespace decant
