#include "hub/reference.h"

#include <algorithm>

namespace decant::hub {
namespace {

constexpr std::string_view kScheme = "hf://";

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 96 && text.front() != '.' && text.front() != '-' &&
         text.find("..") == std::string_view::npos && text.find("--") == std::string_view::npos &&
         std::ranges::all_of(text, [](unsigned char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
                  c == '-' || c == '_';
         });
}

std::string with_slashes(std::string_view revision) {
  std::string out;
  for (size_t i = 0; i < revision.size(); ++i) {
    if (revision.compare(i, 3, "%2F") == 0 || revision.compare(i, 3, "%2f") == 0) {
      out += '/';
      i += 2;
    } else {
      out += revision[i];
    }
  }
  return out;
}

}  // namespace

bool is_reference(std::string_view text) { return text.starts_with(kScheme); }

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > 1024) return false;
  if (std::ranges::any_of(path, [](unsigned char c) { return c < 0x20 || c == '\\' || c == 0x7f; }))
    return false;
  while (true) {
    const size_t end = path.find('/');
    const std::string_view part = path.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    if (end == std::string_view::npos) return true;
    path.remove_prefix(end + 1);
  }
}

Result<Reference> parse_reference(std::string_view text) {
  const auto fail = [&](std::string_view why) {
    return invalid_argument("'" + std::string(text) + "': " + std::string(why) +
                            "; a hub model is written hf://owner/name[@revision][/file]");
  };
  if (!is_reference(text)) return fail("does not start with hf://");
  std::string_view rest = text.substr(kScheme.size());
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return fail("lacks the model's name after the owner");
  const std::string_view owner = rest.substr(0, slash);
  rest.remove_prefix(slash + 1);
  const size_t end = rest.find('/');
  std::string_view name = rest.substr(0, end);
  const std::string_view file = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);

  Reference reference;
  if (const size_t at = name.find('@'); at != std::string_view::npos) {
    reference.revision = with_slashes(name.substr(at + 1));
    name = name.substr(0, at);
    if (!is_safe_path(reference.revision)) return fail("the revision is not a branch, tag or commit");
  }
  if (!is_name(owner)) return fail("the owner '" + std::string(owner) + "' is not a hub name");
  if (!is_name(name)) return fail("the model '" + std::string(name) + "' is not a hub name");
  if (!file.empty() && !is_safe_path(file)) return fail("the file is not a path in a repository");
  reference.repository = std::string(owner) + "/" + std::string(name);
  reference.file = file;
  return reference;
}

}  // namespace decant::hub
