#include "base/status.h"

namespace decant {

std::string_view to_string(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidModel:
      return "invalid model";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kOutOfRange:
      return "out of range";
    case StatusCode::kResource:
      return "resource exhausted";
    case StatusCode::kDeadline:
      return "deadline passed";
    case StatusCode::kInternal:
      return "internal error";
  }
  return "unknown";
}

Status::Status(StatusCode code, std::string message) {
  if (code != StatusCode::kOk) rep_ = std::make_unique<Rep>(Rep{code, std::move(message)});
}

Status::Status(const Status& other) : rep_(other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) rep_ = other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr;
  return *this;
}

const std::string& Status::message() const {
  static const std::string empty;
  return rep_ ? rep_->message : empty;
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  return std::string(decant::to_string(rep_->code)) + ": " + rep_->message;
}

Status Status::with_context(std::string_view context) && {
  if (rep_) rep_->message = std::string(context) + ": " + rep_->message;
  return std::move(*this);
}

Status invalid_model(std::string message) { return {StatusCode::kInvalidModel, std::move(message)}; }
Status unsupported(std::string message) { return {StatusCode::kUnsupported, std::move(message)}; }
Status not_found(std::string message) { return {StatusCode::kNotFound, std::move(message)}; }
Status invalid_argument(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }
Status out_of_range(std::string message) { return {StatusCode::kOutOfRange, std::move(message)}; }
Status resource_error(std::string message) { return {StatusCode::kResource, std::move(message)}; }
Status deadline_error(std::string message) { return {StatusCode::kDeadline, std::move(message)}; }
Status internal_error(std::string message) { return {StatusCode::kInternal, std::move(message)}; }

}  // namespace decant
