#include "app/precision.h"

#include <array>

namespace decant::app {

Result<Precision> parse_precision(std::string_view text) {
  static const std::array<Precision, 7> kAll = {{
      {.name = "fp32"},
      {.name = "fp16", .dtype = DType::kFloat16},
      {.name = "bf16", .dtype = DType::kBFloat16},
      {.name = "q8", .bits = 8, .keep_packed = true},
      {.name = "q4", .bits = 4, .keep_packed = true},
      {.name = "q4f16", .dtype = DType::kFloat16, .bits = 4, .keep_packed = true},
      {.name = "source", .keep_packed = true},
  }};
  std::string names;
  for (const Precision& p : kAll) {
    if (p.name == text) return p;
    names += (names.empty() ? "" : ", ") + p.name;
  }
  if (text == "int8") {
    return unsupported(
        "precision 'int8' (activations rounded when the graph runs) is not written yet; for 8-bit weights "
        "use q8");
  }
  return invalid_argument("precision '" + std::string(text) + "'; possible: " + names);
}

}  // namespace decant::app
