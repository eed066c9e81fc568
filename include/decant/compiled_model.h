#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "decant/export.h"
#include "decant/model.h"

namespace decant {

class Binding;

/// Plans of one model, made when they are first needed: one for each value of the static inputs. A plan
/// serves inputs of all sizes; a run with sizes seen before does no shape work and allocates nothing. Cheap
/// to copy; copies share the plans. Thread-safe as Model.
class DECANT_EXPORT CompiledModel {
 public:
  /// As Model's, and with the inputs that the options added.
  std::span<const TensorInfo> inputs() const;
  std::span<const TensorInfo> outputs() const;

  /// As Model::run, on the kept plans.
  Result<NamedTensors> run(const NamedTensors& inputs, const RunOptions& options = {}) const;

  /// A place to set inputs and outputs once and run many times.
  Binding bind() const;

  /// How many plans have been made so far.
  int64_t compile_count() const;

 private:
  friend class Model;
  friend class Binding;
  struct Impl;
  explicit CompiledModel(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

/// Inputs and outputs of a compiled model, kept from run to run. Not thread-safe; several bindings of one
/// model may be used from several threads.
///
/// Static caches: when for every cache (past_key_values.N.key with present.N.key, ...) that keeps its shape
/// the output is bound to the very memory of the input, new entries are written into it in place, nothing is
/// copied, and attention reads only up to the last position that the mask leaves open (or that cache_length
/// and nonpad_kv_seqlen count). Otherwise the inputs are left as they are.
///
///   Binding step = compiled.bind();
///   step.set_input("past_key_values.0.key", cache);
///   step.set_output("present.0.key", cache);        // in place
///   step.set_input("input_ids", ids);               // same memory in every step
///   while (...) { ids_data[0] = next; if (Status s = step.run(); !s.ok()) ...; use(step.output("logits")); }
class DECANT_EXPORT Binding {
 public:
  Binding(Binding&&) noexcept;
  Binding& operator=(Binding&&) noexcept;
  ~Binding();

  /// The binding shares the tensor's elements: values written to them later are seen by the next run.
  /// kInvalidArgument for an unknown name.
  Status set_input(std::string_view name, const Tensor& tensor);

  /// The output is written to `tensor`, which must be writable and have exactly the output's dtype and dims
  /// in each run. Outputs without a tensor stay in memory of the plan.
  Status set_output(std::string_view name, const Tensor& tensor);
  /// Takes a tensor back.
  Status clear_output(std::string_view name);

  /// Runs with what is set now. Errors as Model::run.
  Status run(const RunOptions& options = {});

  /// An output of the last run: the bound tensor's memory, or the plan's, valid until any binding of this
  /// compiled model runs again. An empty view (kUndefined) for unknown names and before the first run.
  TensorView output(std::string_view name) const;

  /// Whether the last run updated this state output in place.
  bool in_place(std::string_view name) const;

 private:
  friend class CompiledModel;
  struct Impl;
  explicit Binding(std::unique_ptr<Impl> impl);
  Result<NamedTensors> run_once(const RunOptions& options);
  std::unique_ptr<Impl> impl_;
};

}  // namespace decant
