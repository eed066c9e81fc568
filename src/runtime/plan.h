#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/run_options.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "ir/datum.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "runtime/dim_program.h"
#include "runtime/kernel.h"
#include "runtime/low_bit_store.h"

namespace decant::runtime {

/// The processor side of a run: instruction set and threads. One run at a time.
struct Engine {
  static Result<std::shared_ptr<Engine>> create(int threads, std::string_view isa);  ///< 0 / "": the defaults
  Isa isa;
  ThreadPool pool;
  LowBitStore low_bit;
  Engine(Isa i, int threads) : isa(i), pool(threads) {}
  kernels::Context context() { return {kernels::kernel_table(isa), &pool}; }
};

struct PlanOptions {
  bool reference = false;  ///< run every op on its reference kernel
  bool states_in_place =
      true;  ///< outputs of fixed states share their input's memory, where the graph allows it
  kernels::Precision precision = kernels::Precision::kExact;  ///< of products with weights of few bits
};

/// A graph compiled to a flat list of kernel calls, dim programs for the sizes that vary, and a memory plan.
/// A run with symbol values that the last run had does no shape work; none allocates once its sizes have been
/// seen, but for steps on reference kernels and loops. Branches and bodies of control flow are plans of their
/// own, whose inputs are the sub-graph's and the values that it captures. Holds the graph (whose constants it
/// maps). One thread at a time.
class Plan {
 public:
  static Result<std::unique_ptr<Plan>> compile(std::unique_ptr<ir::Graph> graph,
                                               std::shared_ptr<Engine> engine,
                                               const PlanOptions& options = {});
  ~Plan();

  const ir::Graph& graph() const { return *graph_; }

  /// Inputs by position in graph().inputs(); data stays the caller's and must live until the run ends.
  /// Buffers of states in place are written. Fails, naming the input, when a dtype, rank or dim does not fit.
  Status run(std::span<const Arg> inputs, const RunOptions& options = {});
  /// The same for inputs that may be sequences or optionals.
  Status run_data(std::span<const ir::Datum> inputs, const RunOptions& options = {});

  /// Takes the memory that a run with inputs of these sizes needs. Of the data only that of inputs of one
  /// element is read.
  Status reserve(std::span<const Arg> inputs);

  /// Output i of the last run, valid until the next run. States in place give the input's own memory.
  const Arg& output(size_t i) const;
  /// Whether output i is written in its state's input buffer.
  bool in_place(size_t i) const;
  /// Output i, of any kind, with memory of its own.
  Result<ir::Datum> output_datum(size_t i) const;

  /// Bytes of the activation arena and scratch.
  size_t arena_bytes() const;
  size_t step_count() const { return steps_.size(); }
  /// How many steps run on reference kernels, by op ("Softmax x3"); for inspect.
  std::vector<std::string> reference_steps() const;

  struct Profile {
    std::string op;
    double seconds = 0;
    int64_t calls = 0;
  };
  /// Turning it on forgets what was measured before.
  void set_profiling(bool on);
  std::vector<Profile> profile() const;

 private:
  friend class PlanBuilder;
  enum class Storage : uint8_t { kConstant, kInput, kArena, kAlias, kDynamic };
  struct Slot {
    Storage storage = Storage::kArena;
    int root = -1;               ///< of an alias: the value whose memory it shares
    int buffer = -1;             ///< of an arena value: its slot in the memory plan
    std::vector<int> dim_slots;  ///< where the DimProgram leaves its dims
    size_t dims_at = 0;          ///< where its dims stand in dims_
    ir::Datum datum;             ///< constant or dynamic contents
    bool holds = false;  ///< of a dynamic value: `datum` is its content, else it lies in a branch's plan
  };
  struct Body {
    std::unique_ptr<Plan> plan;
    std::vector<size_t> captures;  ///< its inputs after the sub-graph's own, as inputs of the step
    std::vector<Arg> args;         ///< of a run, kept so that it need not be allocated again
  };
  struct Step {
    const ir::Node* node = nullptr;
    std::unique_ptr<Kernel> kernel;    ///< null: the reference kernel, or bodies
    std::vector<Body> bodies;          ///< of control flow, in the order of subgraphs_of(node)
    std::vector<int> inputs, outputs;  ///< inputs: the node's, then what the bodies capture
    std::vector<Arg> input_args, output_args;
    double seconds = 0;
    int64_t calls = 0;
  };

  Status bind_inputs(std::span<const Arg> inputs, bool* changed);
  Status resize();
  Status run_step(Step& step);
  Status run_reference(Step& step);
  Status run_control_flow(Step& step);
  Status run_branch(Step& step, std::span<const ir::Datum* const> inputs);
  Result<ir::Datum> own_output(size_t i) const;
  bool is_input(int value) const;
  std::map<std::string, int> count_reference_steps() const;
  Result<std::vector<ir::Datum>> run_body(Step& step, Body& body, std::span<const ir::Datum> arguments);
  Status store(const Step& step, size_t output, ir::Datum result);
  Status finish();

  std::shared_ptr<const ir::Graph> graph_;
  std::vector<const ir::Value*> declared_;  ///< the inputs: the graph's, then captured values
  std::shared_ptr<Engine> engine_;
  DimProgram dims_program_;
  std::vector<Slot> values_;
  std::vector<Arg> args_;
  std::vector<int64_t> dims_;
  std::vector<Step> steps_;
  std::vector<int> input_values_, output_values_, aliases_;
  struct SymbolSource {
    int slot;
    int input;
    int axis;
  };  ///< axis -1: the value of a scalar integer input
  std::vector<SymbolSource> symbol_sources_;
  std::vector<int64_t> bound_symbols_;
  const Plan* outer_ = nullptr;  ///< of a body: the plan that runs it
  struct InheritedSymbol {
    int slot;
    int outer_slot;
    int64_t bound;
  };  ///< symbols of a body that get their value from the outer plan
  std::vector<InheritedSymbol> inherited_;
  const RunOptions* options_ = nullptr;  ///< of the current run
  int buffer_count_ = 0;
  std::vector<int64_t> buffer_bytes_;
  std::vector<size_t> buffer_offsets_;
  std::byte* arena_ = nullptr;
  size_t arena_bytes_ = 0, scratch_bytes_ = 0;
  bool profiling_ = false, ready_ = false;
};

}  // namespace decant::runtime
