#pragma once

#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "decant/export.h"

namespace decant {

/// Who is at fault, and what a caller can do about it. Grouped by cause: the input, the caller, the machine.
enum class StatusCode {
  kOk = 0,
  kInvalidModel,     ///< a file or graph breaks its format's rules
  kUnsupported,      ///< valid, but decant has no implementation; the message names what is missing
  kNotFound,         ///< a file, tensor, component or name does not exist
  kInvalidArgument,  ///< the caller asked for something impossible
  kOutOfRange,       ///< an index, position or length is outside its limits
  kResource,         ///< memory, disk, file handles
  kDeadline,         ///< a run passed its deadline, or was stopped
  kInternal,         ///< a broken invariant of decant itself
};

/// Name of a code as printed in messages, e.g. "invalid model".
DECANT_EXPORT std::string_view to_string(StatusCode code);

/// Result of an operation that returns nothing. Ok is a null pointer, so passing it costs a register.
/// Errors carry a message that names the file, node, op, dtype and shape concerned, and a hint where there is
/// one.
///
///   Status s = load(path);
///   if (!s.ok()) return std::move(s).with_context(path);
class [[nodiscard]] DECANT_EXPORT Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other);
  Status& operator=(const Status& other);

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  const std::string& message() const;

  /// "invalid model: model.onnx: node 'x': ..."; "ok" when fine.
  std::string to_string() const;

  /// Prefixes the message with `context` + ": "; no effect on an ok status.
  Status with_context(std::string_view context) &&;

 private:
  struct Rep {
    StatusCode code;
    std::string message;
  };
  std::unique_ptr<Rep> rep_;
};

inline Status ok_status() { return Status(); }
DECANT_EXPORT Status invalid_model(std::string message);
DECANT_EXPORT Status unsupported(std::string message);
DECANT_EXPORT Status not_found(std::string message);
DECANT_EXPORT Status invalid_argument(std::string message);
DECANT_EXPORT Status out_of_range(std::string message);
DECANT_EXPORT Status resource_error(std::string message);
DECANT_EXPORT Status deadline_error(std::string message);
DECANT_EXPORT Status internal_error(std::string message);

/// A value or the reason why there is none.
///
///   Result<Graph> g = read_onnx(path);
///   if (!g.ok()) return g.status();
///   use(*g);
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}                                  // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }  // NOLINT: implicit by design

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }

  /// Precondition of the accessors: ok().
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace decant
