#include "runtime/session.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "passes/passes.h"
#include "runtime/convert.h"

namespace decant::runtime {
namespace {

using ir::State;
using ir::Value;

/// Prompts longer than this go through in pieces, which bounds the memory of activations.
constexpr size_t kPromptPiece = 512;

/// Capacities up to this get their whole mask buffer at once, so that decoding never grows it.
constexpr int64_t kReservedPositions = int64_t{1} << 20;

bool starts_with(const std::string& s, std::string_view prefix) {
  return s.compare(0, prefix.size(), prefix) == 0;
}

bool is_index(DType t) { return t == DType::kInt64 || t == DType::kInt32; }

void store_index(DType dtype, std::byte* data, int64_t i, int64_t value) {
  if (dtype == DType::kInt32) {
    reinterpret_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
  } else {
    reinterpret_cast<int64_t*>(data)[i] = value;
  }
}

}  // namespace

Session::Buffer::~Buffer() {
  if (data) munmap(data, bytes);
}

Status Session::Buffer::reserve(size_t size) {
  if (size <= bytes) return ok_status();
  size = std::max(size, 2 * bytes);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return resource_error("no memory for " + std::to_string(size) + " bytes of state; lower --max-cache-len");
  // A cache is mostly empty, and each head's part of it starts far from the next: huge pages would make all of it
  // resident after a few positions.
  madvise(memory, size, MADV_NOHUGEPAGE);
  if (data) munmap(data, bytes);
  data = static_cast<std::byte*>(memory);
  bytes = size;
  return ok_status();
}

Result<std::unique_ptr<Session>> Session::create(std::unique_ptr<Plan> plan, int64_t capacity,
                                                 int64_t default_capacity, std::unique_ptr<Plan> first,
                                                 bool single_ids) {
  auto session = std::unique_ptr<Session>(new Session());
  session->step_.plan = std::move(plan);
  DECANT_RETURN_IF_ERROR(classify(session->step_));
  DECANT_RETURN_IF_ERROR(session->choose_capacity(capacity, default_capacity));
  if (single_ids && session->has_states_) session->piece_ = 1;
  DECANT_RETURN_IF_ERROR(session->allocate(session->step_));
  if (first) {
    session->first_ = std::make_unique<Runner>();
    session->first_->plan = std::move(first);
    DECANT_RETURN_IF_ERROR(classify(*session->first_));
    DECANT_RETURN_IF_ERROR(session->allocate(*session->first_));
  }
  return session;
}

Status Session::classify(Runner& runner) {
  const ir::Graph& graph = runner.plan->graph();
  runner.inputs = std::vector<Input>(graph.inputs().size());
  runner.args.resize(runner.inputs.size());
  const auto named = [&](std::string_view name) {
    return std::any_of(graph.inputs().begin(), graph.inputs().end(),
                       [&](const Value* v) { return v->name == name; });
  };
  // A graph that holds the encoder too calls the decoder's part "decoder_...": input_ids are the encoder's
  // then.
  const bool crossed = named("decoder_input_ids");
  const std::string ids = crossed ? "decoder_input_ids" : "input_ids";
  const std::string mask = crossed ? "decoder_attention_mask" : "attention_mask";
  bool has_ids = false;
  for (size_t i = 0; i < runner.inputs.size(); ++i) {
    const Value& v = *graph.inputs()[i];
    Input& input = runner.inputs[i];
    const size_t rank = v.shape->size();
    auto state =
        std::find_if(graph.states.begin(), graph.states.end(), [&](const State& s) { return s.input == &v; });
    if (state != graph.states.end()) {
      input.role = Role::kState;
      input.state = static_cast<size_t>(state - graph.states.begin());
      const auto& outputs = graph.outputs();
      input.output =
          static_cast<size_t>(std::find(outputs.begin(), outputs.end(), state->output) - outputs.begin());
    } else if (v.name == ids && rank == 2 && is_index(v.dtype)) {
      input.role = Role::kIds;
      has_ids = true;
    } else if ((v.name == "position_ids" || v.name == "decoder_position_ids") && rank == 2 &&
               is_index(v.dtype)) {
      input.role = Role::kPositions;
    } else if (starts_with(v.name, mask) && rank == 2 && is_index(v.dtype)) {
      input.role = Role::kMask;
    } else if (starts_with(v.name, mask) && rank == 4 && v.dtype == DType::kBool) {
      input.role = Role::kBoolMask;
    } else if (starts_with(v.name, mask) && rank == 4 && v.dtype == DType::kFloat32) {
      input.role = Role::kAddedMask;
    } else if (v.name == "cache_length" && rank == 0 && is_index(v.dtype)) {
      input.role = Role::kLength;
    } else if (v.name == "cache_position" && rank == 1 && is_index(v.dtype)) {
      input.role = Role::kPositionList;
    } else if ((v.name == "num_logits_to_keep" || v.name == "logits_to_keep") && rank == 0 &&
               is_index(v.dtype)) {
      input.role = Role::kKeptLogits;
    } else if (v.name == "token_type_ids" && rank == 2 && is_index(v.dtype)) {
      input.role = Role::kSegments;
    } else {
      input.role = Role::kConstant;
    }
  }
  if (!has_ids)
    return unsupported("the graph has no input '" + ids + "' of token ids; text generation needs one");
  const auto& outputs = graph.outputs();
  auto logits =
      std::find_if(outputs.begin(), outputs.end(), [](const Value* v) { return v->name == "logits"; });
  if (logits == outputs.end())
    return unsupported("the graph has no output named 'logits'; text generation needs one");
  runner.logits_output = static_cast<size_t>(logits - outputs.begin());
  return ok_status();
}

Status Session::choose_capacity(int64_t capacity, int64_t default_capacity) {
  const ir::Graph& graph = step_.plan->graph();
  int64_t fixed_capacity = 0;
  piece_ = SIZE_MAX;
  for (size_t i = 0; i < step_.inputs.size(); ++i) {
    const Value& v = *graph.inputs()[i];
    if (step_.inputs[i].role == Role::kIds) {
      // Exports of one step take one id at a time.
      const auto width = (*v.shape)[1].as_constant();
      if (width && *width > 0) piece_ = static_cast<size_t>(*width);
    }
    if (step_.inputs[i].role != Role::kState) continue;
    has_states_ = true;
    const State& state = graph.states[step_.inputs[i].state];
    if (state.kind != State::Kind::kKeyValue) continue;
    if (state.form == State::Form::kGrowing) {
      fixed_ = false;
      continue;
    }
    const ir::Dim& dim = (*v.shape)[static_cast<size_t>(state.axis)];
    capacity_dim_ = dim;
    if (dim.is_constant()) fixed_capacity = dim.constant();
  }
  if (piece_ != SIZE_MAX && (piece_ != 1 || !has_states_)) {
    return unsupported(
        "the graph takes exactly " + std::to_string(piece_) +
        " token ids at a time; text generation needs a length that varies, or one id and a past");
  }
  if (has_states_ && fixed_) {
    piece_ = std::min(piece_, kPromptPiece);
    if (fixed_capacity > 0 && capacity > 0 && capacity != fixed_capacity) {
      return invalid_argument("the export fixes its cache at " + std::to_string(fixed_capacity) +
                              " positions, " + std::to_string(capacity) +
                              " were asked for; export again with --max-cache-len " +
                              std::to_string(capacity));
    }
    capacity_ = fixed_capacity > 0 ? fixed_capacity : capacity > 0 ? capacity : default_capacity;
  } else if (capacity > 0) {
    capacity_ = capacity;
  }
  history_.reserve(static_cast<size_t>(std::clamp(capacity_, int64_t{0}, kReservedPositions)));
  return ok_status();
}

Status Session::allocate(Runner& runner) {
  const ir::Graph& graph = runner.plan->graph();
  for (size_t i = 0; i < runner.inputs.size(); ++i) {
    Input& input = runner.inputs[i];
    const Value& v = *graph.inputs()[i];
    input.dims.assign(v.shape->size(), 1);
    if (input.role == Role::kState) {
      const State& s = graph.states[input.state];
      size_t bytes = size_of(v.dtype);
      for (size_t axis = 0; axis < v.shape->size(); ++axis) {
        const ir::Dim& d = (*v.shape)[axis];
        const bool along = s.kind == State::Kind::kKeyValue && static_cast<int>(axis) == s.axis;
        if (d.is_constant()) {
          input.dims[axis] = d.constant();
        } else if (along) {
          input.dims[axis] = s.form == State::Form::kFixed ? capacity_ : 0;
        } else {
          input.dims[axis] = 1;  // the batch
        }
        if (input.dims[axis] < 0 ||
            __builtin_mul_overflow(bytes, static_cast<size_t>(input.dims[axis]), &bytes)) {
          return resource_error("a cache of " + std::to_string(capacity_) +
                                " positions is impossible; lower --max-cache-len");
        }
      }
      DECANT_RETURN_IF_ERROR(input.buffer.reserve(std::max<size_t>(bytes, 64)));
    }
    Arg& arg = runner.args[i];
    arg.dtype = v.dtype;
    arg.dims = input.dims.data();
    arg.rank = static_cast<int32_t>(input.dims.size());
  }
  return ok_status();
}

int64_t Session::mask_length(const ir::Dim& dim, int64_t total) const {
  if (dim.is_constant()) return dim.constant();
  return has_states_ && fixed_ && dim == capacity_dim_ ? capacity_ : total;
}

/// Query i attends the first visible + i positions.
template <typename T>
void Session::fill_mask(Input& input, int64_t queries, int64_t width, int64_t visible, T attend, T hide) {
  T* const mask = reinterpret_cast<T*>(input.buffer.data);
  MaskRow& last = input.mask;
  int64_t from = 0, to = width;
  if (queries == 1 && last.data == mask) {
    from = std::min(last.visible, visible);
    if (width <= last.width) to = std::min(width, std::max(last.visible, visible));
  }
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = from; j < to; ++j) mask[i * width + j] = j < visible + i ? attend : hide;
  }
  last = {queries == 1 ? mask : nullptr, width, visible};
}

Status Session::fill(Input& input, const Value& value, std::span<const int64_t> ids) {
  const auto n = static_cast<int64_t>(ids.size()), total = length_ + n;
  const auto shape_of = [&](std::initializer_list<int64_t> dims) {
    std::copy(dims.begin(), dims.end(), input.dims.begin());
    int64_t elements = 1;
    for (int64_t d : input.dims) elements *= d;
    return input.buffer.reserve(static_cast<size_t>(elements) * size_of(value.dtype) + 4096);
  };
  switch (input.role) {
    case Role::kState:
    case Role::kConstant:
      break;
    case Role::kKeptLogits:
      DECANT_RETURN_IF_ERROR(input.buffer.reserve(64));
      store_index(value.dtype, input.buffer.data, 0, 1);
      break;
    case Role::kSegments:
      DECANT_RETURN_IF_ERROR(shape_of({1, n}));
      for (int64_t i = 0; i < n; ++i) store_index(value.dtype, input.buffer.data, i, 0);
      break;
    case Role::kIds:
      DECANT_RETURN_IF_ERROR(shape_of({1, n}));
      for (int64_t i = 0; i < n; ++i)
        store_index(value.dtype, input.buffer.data, i, ids[static_cast<size_t>(i)]);
      break;
    case Role::kPositions:
      DECANT_RETURN_IF_ERROR(shape_of({1, n}));
      for (int64_t i = 0; i < n; ++i) store_index(value.dtype, input.buffer.data, i, length_ + i);
      break;
    case Role::kPositionList:
      DECANT_RETURN_IF_ERROR(shape_of({n}));
      for (int64_t i = 0; i < n; ++i) store_index(value.dtype, input.buffer.data, i, length_ + i);
      break;
    case Role::kLength:
      DECANT_RETURN_IF_ERROR(input.buffer.reserve(64));
      store_index(value.dtype, input.buffer.data, 0, length_);
      break;
    case Role::kMask: {
      const int64_t width = mask_length((*value.shape)[1], total);
      if (fixed_ && capacity_ < kReservedPositions)
        DECANT_RETURN_IF_ERROR(input.buffer.reserve(static_cast<size_t>(capacity_) * 8));
      DECANT_RETURN_IF_ERROR(shape_of({1, width}));
      if (value.dtype == DType::kInt32) {
        fill_mask<int32_t>(input, 1, width, total, 1, 0);
      } else {
        fill_mask<int64_t>(input, 1, width, total, 1, 0);
      }
      break;
    }
    case Role::kAddedMask: {  // 0 where a query may attend, the lowest float elsewhere: added to the scores
      const int64_t width = mask_length((*value.shape)[3], total);
      DECANT_RETURN_IF_ERROR(shape_of({1, 1, n, width}));
      fill_mask(input, n, width, length_ + 1, 0.0f, std::numeric_limits<float>::lowest());
      break;
    }
    case Role::kBoolMask: {
      const int64_t width = mask_length((*value.shape)[3], total);
      DECANT_RETURN_IF_ERROR(shape_of({1, 1, n, width}));
      fill_mask(input, n, width, length_ + 1, uint8_t{1}, uint8_t{0});
      break;
    }
  }
  return ok_status();
}

Status Session::append(std::span<const int64_t> ids, const RunOptions& options) {
  if (ids.empty()) return invalid_argument("no token ids were given");
  const auto n = static_cast<int64_t>(ids.size());
  if (n > capacity_ - length_) {
    return out_of_range("the cache holds " + std::to_string(capacity_) + " positions, " +
                        std::to_string(length_ + n) + " are needed; raise it with --max-cache-len " +
                        std::to_string(length_ + n) + " or more");
  }
  Status s = extend(ids, options);
  if (s.code() == StatusCode::kDeadline) DECANT_RETURN_IF_ERROR(rewind(0));
  return s;
}

Status Session::extend(std::span<const int64_t> ids, const RunOptions& options) {
  if (first_ && length_ == 0) {
    DECANT_RETURN_IF_ERROR(check_bound(*first_));
    DECANT_RETURN_IF_ERROR(run(*first_, ids, options));
    DECANT_RETURN_IF_ERROR(take_first_outputs());
    history_.assign(ids.begin(), ids.end());
    length_ = static_cast<int64_t>(ids.size());
    return ok_status();
  }
  DECANT_RETURN_IF_ERROR(check_bound(step_));
  if (!has_states_) {
    history_.insert(history_.end(), ids.begin(), ids.end());
    length_ = 0;
    const Status s = run(step_, history_, options);
    if (!s.ok()) history_.resize(history_.size() - ids.size());
    length_ = static_cast<int64_t>(history_.size());
    return s;
  }
  for (size_t at = 0; at < ids.size();) {
    const size_t piece = std::min(piece_, ids.size() - at);
    DECANT_RETURN_IF_ERROR(run(step_, ids.subspan(at, piece), options));
    DECANT_RETURN_IF_ERROR(collect_states());
    for (int64_t id : ids.subspan(at, piece)) history_.push_back(id);
    length_ += static_cast<int64_t>(piece);
    at += piece;
  }
  return ok_status();
}

Status Session::run(Runner& runner, std::span<const int64_t> ids, const RunOptions& options) {
  const ir::Graph& graph = runner.plan->graph();
  for (size_t i = 0; i < runner.inputs.size(); ++i) {
    Input& input = runner.inputs[i];
    DECANT_RETURN_IF_ERROR(fill(input, *graph.inputs()[i], ids));
    Arg& arg = runner.args[i];
    arg.data = input.buffer.data;
    arg.elements = 1;
    for (int64_t d : input.dims) arg.elements *= d;
  }
  DECANT_RETURN_IF_ERROR(runner.plan->run(runner.args, options));
  return take_logits(runner);
}

Status Session::collect_states() {
  for (Input& input : step_.inputs) {
    if (input.role != Role::kState) continue;
    const Arg& out = step_.plan->output(input.output);
    if (out.data == input.buffer.data) continue;
    const size_t bytes = static_cast<size_t>(out.elements) * size_of(out.dtype);
    // Growing states are copied to a buffer with room to spare, so that few steps allocate.
    if (bytes > input.buffer.bytes) DECANT_RETURN_IF_ERROR(input.buffer.reserve(bytes + bytes / 2));
    if (bytes) std::memcpy(input.buffer.data, out.data, bytes);
    std::copy(out.dims, out.dims + out.rank, input.dims.begin());
  }
  return ok_status();
}

Status Session::take_first_outputs() {
  const ir::Graph& graph = step_.plan->graph();
  const auto& given = first_->plan->graph().outputs();
  for (size_t i = 0; i < step_.inputs.size(); ++i) {
    Input& input = step_.inputs[i];
    const bool is_state = input.role == Role::kState;
    if (!is_state && (input.role != Role::kConstant || input.bound)) continue;
    const Value& v = *graph.inputs()[i];
    const std::string name =
        is_state ? graph.states[input.state].output->name : passes::state_output_name(v.name);
    const auto found =
        std::find_if(given.begin(), given.end(), [&](const Value* o) { return o->name == name; });
    if (found == given.end()) {
      if (!is_state) continue;
      return unsupported("the first step's graph has no output '" + name + "', which the state '" + v.name +
                         "' needs");
    }
    const Arg& out = first_->plan->output(static_cast<size_t>(found - given.begin()));
    if (!is_state) {
      DECANT_RETURN_IF_ERROR(set_constant(
          step_, i, ir::Tensor::view(out.dtype, {out.dims, out.dims + out.rank}, out.data, nullptr)));
      input.captured = true;
      continue;
    }
    const State& state = graph.states[input.state];
    if (state.kind != State::Kind::kKeyValue || out.dtype != v.dtype ||
        out.rank != static_cast<int32_t>(input.dims.size()))
      return unsupported("the first step's output '" + name + "' is " + ir::describe(out.dtype, out.shape()) +
                         "; the state '" + v.name + "' is " + std::string(to_string(v.dtype)) +
                         ir::to_string(*v.shape));
    // Rows [0, length) of each head; a fixed cache is longer.
    const auto axis = static_cast<size_t>(state.axis);
    int64_t heads = 1;
    size_t row = size_of(v.dtype);
    for (size_t d = 0; d < input.dims.size(); ++d) {
      if (d < axis) heads *= out.dims[d];
      if (d > axis) row *= static_cast<size_t>(out.dims[d]);
      const bool fits = d == axis ? !fixed_ || out.dims[d] <= input.dims[d] : out.dims[d] == input.dims[d];
      if (!fits)
        return invalid_model("the first step's output '" + name + "' is " +
                             ir::describe(out.dtype, out.shape()) + ", the state '" + v.name + "' is " +
                             ir::describe(v.dtype, input.dims));
    }
    const size_t from = row * static_cast<size_t>(out.dims[axis]);
    if (!fixed_) {
      input.dims[axis] = out.dims[axis];
      const size_t bytes = from * static_cast<size_t>(heads);
      if (bytes > input.buffer.bytes) DECANT_RETURN_IF_ERROR(input.buffer.reserve(bytes + bytes / 2));
    }
    const size_t to = row * static_cast<size_t>(input.dims[axis]);
    for (int64_t h = 0; h < heads && from > 0; ++h) {
      std::memcpy(input.buffer.data + static_cast<size_t>(h) * to,
                  static_cast<const std::byte*>(out.data) + static_cast<size_t>(h) * from, from);
    }
  }
  return ok_status();
}

Status Session::take_logits(Runner& runner) {
  const Arg& out = runner.plan->output(runner.logits_output);
  if (out.rank < 2 || out.elements == 0)
    return invalid_model("the output 'logits' is " + ir::describe(out.dtype, out.shape()));
  const int64_t vocabulary = out.dims[out.rank - 1], at = out.elements - vocabulary;
  if (out.dtype == DType::kFloat32) {
    logits_ = {out.as<const float>() + at, static_cast<size_t>(vocabulary)};
    return ok_status();
  }
  if (out.dtype != DType::kFloat16 && out.dtype != DType::kBFloat16)
    return unsupported("logits of dtype " + std::string(to_string(out.dtype)));
  converted_.resize(static_cast<size_t>(vocabulary));
  for (int64_t i = 0; i < vocabulary; ++i) {
    const uint16_t bits = out.as<const uint16_t>()[at + i];
    converted_[static_cast<size_t>(i)] =
        out.dtype == DType::kFloat16 ? f16_to_float(bits) : bf16_to_float(bits);
  }
  logits_ = converted_;
  return ok_status();
}

Status Session::bind(std::string_view name, const ir::Tensor& value) {
  bool found = false;
  for (Runner* runner : {&step_, first_.get()}) {
    for (size_t i = 0; runner && i < runner->inputs.size(); ++i) {
      if (runner->inputs[i].role != Role::kConstant || runner->plan->graph().inputs()[i]->name != name)
        continue;
      DECANT_RETURN_IF_ERROR(set_constant(*runner, i, value));
      runner->inputs[i].bound = true;
      found = true;
    }
  }
  if (!found) return not_found("the decoder has no input '" + std::string(name) + "' to bind");
  return forget();
}

Status Session::set_constant(Runner& runner, size_t i, const ir::Tensor& value) {
  const Value& v = *runner.plan->graph().inputs()[i];
  Input& input = runner.inputs[i];
  auto converted = convert(value, v.dtype);
  if (!converted.ok() || value.rank() != v.shape->size()) {
    return invalid_argument("input '" + v.name + "' is " + std::string(to_string(v.dtype)) +
                            ir::to_string(*v.shape) + ", " + ir::describe(value) + " was given");
  }
  const ir::Tensor own = *std::move(converted);
  DECANT_RETURN_IF_ERROR(input.buffer.reserve(std::max<size_t>(own.bytes(), 64)));
  if (own.bytes()) std::memcpy(input.buffer.data, own.data(), own.bytes());
  std::copy(own.dims().begin(), own.dims().end(), input.dims.begin());
  return ok_status();
}

Status Session::check_bound(const Runner& runner) const {
  std::string names;
  for (size_t i = 0; i < runner.inputs.size(); ++i) {
    const Input& input = runner.inputs[i];
    if (input.role != Role::kConstant || input.bound || input.captured) continue;
    names += (names.empty() ? "'" : ", '") + runner.plan->graph().inputs()[i]->name + "'";
  }
  if (names.empty()) return ok_status();
  return invalid_argument("text generation does not know how to feed the inputs " + names +
                          "; give them as tensors (--inputs)");
}

std::vector<std::string> Session::unbound() const {
  std::vector<std::string> names;
  const Runner& runner = first_ ? *first_ : step_;
  for (size_t i = 0; i < runner.inputs.size(); ++i) {
    const Input& input = runner.inputs[i];
    if (input.role == Role::kConstant && !input.bound)
      names.push_back(runner.plan->graph().inputs()[i]->name);
  }
  return names;
}

bool Session::has_constant(std::string_view name) const {
  for (const Runner* runner : {&step_, static_cast<const Runner*>(first_.get())}) {
    for (size_t i = 0; runner && i < runner->inputs.size(); ++i) {
      if (runner->inputs[i].role == Role::kConstant && runner->plan->graph().inputs()[i]->name == name)
        return true;
    }
  }
  return false;
}

Status Session::forget() {
  for (Input& input : step_.inputs) input.captured = false;
  return rewind(0);
}

Status Session::rewind(int64_t length) {
  if (length < 0 || length > length_)
    return out_of_range("cannot rewind to " + std::to_string(length) + " of " + std::to_string(length_) +
                        " positions");
  if (has_states_ && !fixed_ && length > 0)
    return unsupported("this graph's caches grow: they cannot be rewound, only emptied");
  const ir::Graph& graph = step_.plan->graph();
  for (size_t i = 0; i < step_.inputs.size(); ++i) {
    Input& input = step_.inputs[i];
    if (input.role != Role::kState) continue;
    const State& state = graph.states[input.state];
    if (state.kind == State::Kind::kCounter) {
      store_index(graph.inputs()[i]->dtype, input.buffer.data, 0, length);
    } else if (state.form == State::Form::kGrowing) {
      input.dims[static_cast<size_t>(state.axis)] = 0;
    }
  }
  history_.resize(static_cast<size_t>(length));
  length_ = length;
  return ok_status();
}

Result<int64_t> Session::keep_prefix(std::span<const int64_t> ids) {
  size_t shared = 0;
  while (shared < history_.size() && shared + 1 < ids.size() && history_[shared] == ids[shared]) ++shared;
  if (shared < history_.size() && has_states_ && !fixed_) shared = 0;
  const auto length = static_cast<int64_t>(shared);
  if (length < length_) DECANT_RETURN_IF_ERROR(rewind(length));
  return length;
}

int64_t Session::state_bytes() const {
  int64_t sum = 0;
  for (size_t i = 0; i < step_.inputs.size(); ++i) {
    if (step_.inputs[i].role != Role::kState) continue;
    int64_t n = static_cast<int64_t>(size_of(step_.plan->graph().inputs()[i]->dtype));
    for (int64_t d : step_.inputs[i].dims) n *= d;
    sum += n;
  }
  return sum;
}

int64_t Session::state_bytes_per_position() const {
  int64_t sum = 0;
  for (size_t i = 0; i < step_.inputs.size(); ++i) {
    if (step_.inputs[i].role != Role::kState) continue;
    const State& s = step_.plan->graph().states[step_.inputs[i].state];
    if (s.kind != State::Kind::kKeyValue) continue;
    int64_t n = static_cast<int64_t>(size_of(step_.plan->graph().inputs()[i]->dtype));
    for (size_t axis = 0; axis < step_.inputs[i].dims.size(); ++axis) {
      if (static_cast<int>(axis) != s.axis) n *= step_.inputs[i].dims[axis];
    }
    sum += n;
  }
  return sum;
}

bool Session::in_place() const {
  bool all = has_states_;
  for (const Input& input : step_.inputs) {
    if (input.role == Role::kState && step_.plan->graph().states[input.state].kind == State::Kind::kKeyValue)
      all = all && step_.plan->in_place(input.output);
  }
  return all;
}

}  // namespace decant::runtime
