#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decant/custom_op.h"
#include "decant/export.h"
#include "decant/run_options.h"
#include "decant/status.h"
#include "decant/tensor.h"
#include "decant/types.h"

namespace decant {

class CompiledModel;

/// A model on the Hugging Face Hub, as "hf://repository@revision/file" names it too.
struct HubModel {
  std::string repository;  ///< "owner/name"
  std::string revision;    ///< a branch, tag or commit; empty: "main"
  std::string file;        ///< a file inside the repository; empty: found by layout
};

struct LoadOptions {
  int threads = 0;        ///< 0: the machine's physical cores, within the process's limits
  std::string isa;        ///< instruction set, as the environment variable DECANT_ISA; empty: the best
  std::string component;  ///< which graph of an export of several; empty: the only one, or the decoder
  std::string dtype;  ///< which variant of a repository that has several ("fp16", "q4"); empty: the default
  int64_t max_cache_len = 0;  ///< for text: positions of the cache; 0: the model's own limit, at most 4096
  std::vector<CustomOp> custom_ops;

  /// Called while files are downloaded from the hub, from any thread but one at a time.
  std::function<void(int64_t done_bytes, int64_t total_bytes)> on_download;
};

struct CompileOptions {
  /// Inputs whose values are known when a plan is made, such as "use_cache_branch": what depends on them
  /// alone is computed once, and branches on them disappear. A run still gives them; a plan is made for each
  /// of their values.
  std::vector<std::string> static_inputs;

  /// Dims of typical inputs, by name: memory for runs of these sizes is taken when a plan is made. Other
  /// sizes run too.
  std::map<std::string, std::vector<int64_t>> example_shapes;

  /// Growing caches (present = past, then new) become buffers of any capacity C that the caller owns: the
  /// inputs past_key_values.* take [batch, heads, C, channels], and a new int64 scalar input "cache_length"
  /// says how many positions are filled. Unsupported for graphs whose caches are used in other ways.
  bool fixed_caches = false;

  /// Plans kept; the least recently used goes first.
  size_t max_plans = 16;
};

using NamedTensors = std::map<std::string, Tensor, std::less<>>;

/// A model file with its graph: one component of an export. Weights stay mapped from their files, which must
/// not be changed meanwhile. Cheap to copy; copies share everything. All members may be called from several
/// threads at once; runs of one model and of what was compiled from it take turns, since they share its
/// threads.
class DECANT_EXPORT Model {
 public:
  /// `path`: a folder, an .onnx or .gguf file, or "hf://owner/name[@revision][/file]", which is looked up in
  /// the hub's cache (HF_HOME, HF_HUB_CACHE) and downloaded into it when it is not there (unless
  /// HF_HUB_OFFLINE is set).
  ///
  /// Errors name the file and, where there is one, the node. kNotFound: no such model or component.
  /// kUnsupported: valid, but something is missing in decant; missing operators are listed all at once with
  /// their nodes. kInvalidModel: the file breaks its format's rules.
  static Result<Model> load(const std::string& path, const LoadOptions& options = {});
  static Result<Model> load(const HubModel& model, const LoadOptions& options = {});

  /// Inputs and outputs in the graph's order.
  std::span<const TensorInfo> inputs() const;
  std::span<const TensorInfo> outputs() const;
  /// What the path turned out to be, for people: "single onnx file".
  const std::string& layout() const;

  /// Runs once. Inputs by name; inputs and results do not share memory. kInvalidArgument, with all names, for
  /// missing or unknown inputs and for a dtype, rank or dim that does not fit.
  Result<NamedTensors> run(const NamedTensors& inputs, const RunOptions& options = {}) const;

  /// A form for many runs: see CompiledModel. Fails for unknown names in the options.
  Result<CompiledModel> compile(const CompileOptions& options = {}) const;

 private:
  friend class CompiledModel;
  struct Impl;
  explicit Model(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace decant
