#pragma once

#include <string>

#include "base/status.h"

namespace decant::hub {

enum class Digest {
  kSha256,
  kGitBlob,  ///< SHA-1 of "blob <size>\0" and the contents: the id of a file in git
};

/// Lower-case hexadecimal digest of a file's contents.
Result<std::string> digest_of_file(const std::string& path, Digest digest);

}  // namespace decant::hub
