#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/run_options.h"
#include "base/status.h"
#include "ir/datum.h"
#include "ir/graph.h"

namespace decant::ir {

/// Runs a body once: inputs and outputs by position in the sub-graph. The outputs own their memory.
using RunBody = std::function<Result<std::vector<Datum>>(std::span<const Datum> inputs)>;

/// The parts of Loop, Scan and SequenceMap that are not the body: trips, conditions, carried values, slices
/// and stacking, by the ONNX specification. Shared by the interpreter and the runtime. `inputs` are the
/// node's, null where left out; the results are its outputs by position. The deadline is checked before each
/// iteration.
Result<std::vector<Datum>> run_loop(const Node& node, std::span<const Datum* const> inputs,
                                    const RunBody& body, const RunOptions& options);
Result<std::vector<Datum>> run_scan(const Node& node, std::span<const Datum* const> inputs,
                                    const RunBody& body, const RunOptions& options);
Result<std::vector<Datum>> run_sequence_map(const Node& node, std::span<const Datum* const> inputs,
                                            const RunBody& body, const RunOptions& options);

/// The branch of an If that its condition chooses.
Result<Graph*> choose_branch(const Node& node, const Datum& condition);

/// Whether the op runs sub-graphs: If, Loop, Scan, SequenceMap.
bool is_control_flow(const Node& node);

/// The same value with memory of its own; no copy where it has that already.
Result<Datum> owned(Datum datum);

}  // namespace decant::ir
