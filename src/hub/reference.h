#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace decant::hub {

/// What `hf://owner/name[@revision][/file]` names.
struct Reference {
  std::string repository;         ///< "owner/name"
  std::string revision = "main";  ///< a branch, a tag, or a commit of 40 hex digits
  std::string file;               ///< path in the repository; empty: the repository as a whole
};

/// Whether a model argument is a hub reference at all.
bool is_reference(std::string_view text);

/// Parses a reference. Names keep to the hub's own alphabet, so that no part can leave the cache folder; a
/// revision with slashes ("refs/pr/1") is written with %2F for them.
Result<Reference> parse_reference(std::string_view text);

/// Whether a path from a listing may be joined to a folder: relative, no empty, "." or ".." part, no
/// backslash.
bool is_safe_path(std::string_view path);

/// Whether text is `digits` lower-case hexadecimal digits.
bool is_hex(std::string_view text, size_t digits);

}  // namespace decant::hub
