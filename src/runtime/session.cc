#include "runtime/session.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/half.h"

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
  madvise(memory, size, MADV_HUGEPAGE);
  if (data) munmap(data, bytes);
  data = static_cast<std::byte*>(memory);
  bytes = size;
  return ok_status();
}

Result<std::unique_ptr<Session>> Session::create(std::unique_ptr<Plan> plan, int64_t capacity,
                                                 int64_t default_capacity) {
  auto session = std::unique_ptr<Session>(new Session());
  session->plan_ = std::move(plan);
  DECANT_RETURN_IF_ERROR(session->classify(capacity, default_capacity));
  DECANT_RETURN_IF_ERROR(session->allocate_states());
  return session;
}

Status Session::classify(int64_t capacity, int64_t default_capacity) {
  const ir::Graph& graph = plan_->graph();
  inputs_.resize(graph.inputs().size());
  args_.resize(inputs_.size());
  std::string unknown;
  int64_t fixed_capacity = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Value& v = *graph.inputs()[i];
    Input& input = inputs_[i];
    const size_t rank = v.shape->size();
    auto state =
        std::find_if(graph.states.begin(), graph.states.end(), [&](const State& s) { return s.input == &v; });
    if (state != graph.states.end()) {
      input.role = Role::kState;
      input.state = static_cast<size_t>(state - graph.states.begin());
      const auto& outputs = graph.outputs();
      input.output =
          static_cast<size_t>(std::find(outputs.begin(), outputs.end(), state->output) - outputs.begin());
      has_states_ = true;
      if (state->kind == State::Kind::kKeyValue) {
        if (state->form == State::Form::kGrowing) fixed_ = false;
        const ir::Dim& dim = (*v.shape)[static_cast<size_t>(state->axis)];
        if (state->form == State::Form::kFixed) {
          capacity_dim_ = dim;
          if (dim.is_constant()) fixed_capacity = dim.constant();
        }
      }
    } else if (v.name == "input_ids" && rank == 2 && is_index(v.dtype)) {
      input.role = Role::kIds;
    } else if (v.name == "position_ids" && rank == 2 && is_index(v.dtype)) {
      input.role = Role::kPositions;
    } else if (starts_with(v.name, "attention_mask") && rank == 2 && is_index(v.dtype)) {
      input.role = Role::kMask;
    } else if (starts_with(v.name, "attention_mask") && rank == 4 && v.dtype == DType::kBool) {
      input.role = Role::kBoolMask;
    } else if (starts_with(v.name, "attention_mask") && rank == 4 && v.dtype == DType::kFloat32) {
      input.role = Role::kAddedMask;
    } else if (v.name == "cache_length" && rank == 0 && is_index(v.dtype)) {
      input.role = Role::kLength;
    } else if (v.name == "cache_position" && rank == 1 && is_index(v.dtype)) {
      input.role = Role::kPositionList;
    } else {
      unknown += (unknown.empty() ? "'" : ", '") + v.name + "'";
    }
  }
  if (!unknown.empty()) return unsupported("text generation does not know how to feed the inputs " + unknown);
  const auto& outputs = graph.outputs();
  auto logits =
      std::find_if(outputs.begin(), outputs.end(), [](const Value* v) { return v->name == "logits"; });
  if (logits == outputs.end())
    return unsupported("the graph has no output named 'logits'; text generation needs one");
  logits_output_ = static_cast<size_t>(logits - outputs.begin());

  if (has_states_ && fixed_) {
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
  return ok_status();
}

Status Session::allocate_states() {
  const ir::Graph& graph = plan_->graph();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Input& input = inputs_[i];
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
    Arg& arg = args_[i];
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

Status Session::append(std::span<const int64_t> ids) {
  if (ids.empty()) return invalid_argument("no token ids were given");
  const auto n = static_cast<int64_t>(ids.size());
  if (n > capacity_ - length_) {
    return out_of_range("the cache holds " + std::to_string(capacity_) + " positions, " +
                        std::to_string(length_ + n) + " are needed; raise it with --max-cache-len " +
                        std::to_string(length_ + n) + " or more");
  }
  if (!has_states_) {
    history_.insert(history_.end(), ids.begin(), ids.end());
    length_ = 0;
    const Status s = run(history_);
    if (!s.ok()) history_.resize(history_.size() - ids.size());
    length_ = static_cast<int64_t>(history_.size());
    return s;
  }
  for (size_t at = 0; at < ids.size();) {
    const size_t piece = fixed_ ? std::min(kPromptPiece, ids.size() - at) : ids.size();
    DECANT_RETURN_IF_ERROR(run(ids.subspan(at, piece)));
    length_ += static_cast<int64_t>(piece);
    at += piece;
  }
  return ok_status();
}

Status Session::run(std::span<const int64_t> ids) {
  const ir::Graph& graph = plan_->graph();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Input& input = inputs_[i];
    DECANT_RETURN_IF_ERROR(fill(input, *graph.inputs()[i], ids));
    Arg& arg = args_[i];
    arg.data = input.buffer.data;
    arg.elements = 1;
    for (int64_t d : input.dims) arg.elements *= d;
  }
  DECANT_RETURN_IF_ERROR(plan_->run(args_));
  DECANT_RETURN_IF_ERROR(collect_states());
  return take_logits();
}

Status Session::collect_states() {
  for (Input& input : inputs_) {
    if (input.role != Role::kState) continue;
    const Arg& out = plan_->output(input.output);
    if (out.data == input.buffer.data) continue;
    const size_t bytes = static_cast<size_t>(out.elements) * size_of(out.dtype);
    // Growing states are copied to a buffer with room to spare, so that few steps allocate.
    if (bytes > input.buffer.bytes) DECANT_RETURN_IF_ERROR(input.buffer.reserve(bytes + bytes / 2));
    if (bytes) std::memcpy(input.buffer.data, out.data, bytes);
    std::copy(out.dims, out.dims + out.rank, input.dims.begin());
  }
  return ok_status();
}

Status Session::take_logits() {
  const Arg& out = plan_->output(logits_output_);
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

Status Session::rewind(int64_t length) {
  if (length < 0 || length > length_)
    return out_of_range("cannot rewind to " + std::to_string(length) + " of " + std::to_string(length_) +
                        " positions");
  if (has_states_ && !fixed_) return unsupported("this graph's caches grow: they cannot be rewound");
  const ir::Graph& graph = plan_->graph();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].role != Role::kState || graph.states[inputs_[i].state].kind != State::Kind::kCounter)
      continue;
    store_index(graph.inputs()[i]->dtype, inputs_[i].buffer.data, 0, length);
  }
  if (!has_states_) history_.resize(static_cast<size_t>(length));
  length_ = length;
  return ok_status();
}

int64_t Session::state_bytes() const {
  int64_t sum = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].role != Role::kState) continue;
    int64_t n = static_cast<int64_t>(size_of(plan_->graph().inputs()[i]->dtype));
    for (int64_t d : inputs_[i].dims) n *= d;
    sum += n;
  }
  return sum;
}

int64_t Session::state_bytes_per_position() const {
  int64_t sum = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].role != Role::kState) continue;
    const State& s = plan_->graph().states[inputs_[i].state];
    if (s.kind != State::Kind::kKeyValue) continue;
    int64_t n = static_cast<int64_t>(size_of(plan_->graph().inputs()[i]->dtype));
    for (size_t axis = 0; axis < inputs_[i].dims.size(); ++axis) {
      if (static_cast<int>(axis) != s.axis) n *= inputs_[i].dims[axis];
    }
    sum += n;
  }
  return sum;
}

bool Session::in_place() const {
  bool all = has_states_;
  for (const Input& input : inputs_) {
    if (input.role == Role::kState && plan_->graph().states[input.state].kind == State::Kind::kKeyValue)
      all = all && plan_->in_place(input.output);
  }
  return all;
}

}  // namespace decant::runtime
