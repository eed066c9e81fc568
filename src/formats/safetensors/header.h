#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "base/status.h"
#include "formats/safetensors/safetensors_file.h"

namespace decant::safetensors {

using MetadataEntries = std::vector<std::pair<std::string, std::string>>;

/// Appends the tensors of one file, in order of their place, and its __metadata__. Checks all rules of the
/// format; names are unique within the file. Errors do not name the file. Linear in the file's header but for
/// one sort.
Status read_header(const std::shared_ptr<const MappedFile>& file, std::vector<Tensor>& tensors,
                   MetadataEntries& metadata);

/// "F32", ...; empty for kUndefined.
std::string_view format_name(DType dtype);

}  // namespace decant::safetensors
