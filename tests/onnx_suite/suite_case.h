#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/tensor.h"

namespace decant::suite {

/// One input or output of a case as the suite stores it: a tensor, a sequence of tensors, or an optional of
/// either.
struct TestValue {
  enum class Kind { kTensor, kSequence, kNone };
  Kind kind = Kind::kTensor;
  std::vector<ir::Tensor> tensors;  ///< one for kTensor
};

struct DataSet {
  std::vector<TestValue> inputs, outputs;
};

/// A folder in the layout of the ONNX backend test: model.onnx, test_data_set_*/input_*.pb and output_*.pb,
/// and optionally data.json with "rtol" and "atol".
struct SuiteCase {
  std::string folder;
  double rtol = 1e-3, atol = 1e-7;
  std::vector<DataSet> sets;
};

/// Reads the data of a case. Errors: unsupported (an element type or a value type that decant has not),
/// otherwise a broken case.
Result<SuiteCase> read_case(const std::string& folder);

/// Nothing when `actual` is what the suite expects: same kind, dtype and shape; integers and bools equal;
/// floats within atol + rtol * |expected| (rtol being at least 2^-9 for float16, 2^-6 for bfloat16; atol at least
/// 2^-21 of the largest element for float32), NaN where expected. Otherwise the first difference, in words.
std::optional<std::string> difference(const TestValue& actual, const TestValue& expected, double rtol,
                                      double atol);

}  // namespace decant::suite
