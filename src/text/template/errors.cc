#include "text/template/errors.h"

#include <fmt/format.h>

namespace decant::text {

Status raise(std::string_view kind, std::string_view message) {
  return invalid_model(fmt::format("{}: {}", kind, message));
}

TemplateError to_template_error(const Status& status, Position at) {
  const std::string& text = status.message();
  const size_t colon = text.find(": ");
  if (colon == std::string::npos) return {"InternalError", text, at};
  return {text.substr(0, colon), text.substr(colon + 2), at};
}

Status with_position(const Status& status, std::string_view origin, Position at) {
  if (at.line == 0) return Status(status.code(), fmt::format("{}: {}", origin, status.message()));
  return Status(status.code(), fmt::format("{}:{}:{}: {}", origin, at.line, at.column, status.message()));
}

}  // namespace decant::text
