#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mapped_file.h"
#include "base/status.h"
#include "formats/onnx/messages.h"
#include "ir/constant.h"

namespace decant::onnx {

/// Turns TensorProtos into constants: the one place that checks them and that opens external data, wherever
/// the tensor sits (initializer, attribute, function or sub-graph). Raw and external data are viewed in
/// place.
class TensorLoader {
 public:
  /// `owner` keeps the model's bytes alive; external files are looked for beneath `folder`, empty for none.
  TensorLoader(std::shared_ptr<const void> owner, std::string folder)
      : owner_(std::move(owner)), folder_(std::move(folder)) {}

  /// Errors name the tensor.
  Result<ir::ConstantPtr> load(const TensorMessage& message);

 private:
  Result<ir::ConstantPtr> load_external(const TensorMessage& message, DType dtype, uint64_t bytes);
  Result<ir::ConstantPtr> load_strings(const TensorMessage& message, uint64_t elements);
  Result<ir::ConstantPtr> load_typed(const TensorMessage& message, DType dtype, uint64_t elements);

  std::shared_ptr<const void> owner_;
  std::string folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
};

/// "int4", "string", ...: names of ONNX element types for messages; "type 99" for unknown ones.
std::string element_type_name(int64_t code);

}  // namespace decant::onnx
