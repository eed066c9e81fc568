#include "models/weights.h"

#include <algorithm>

#include "ir/tensor.h"

namespace decant::models {
namespace {

class Absent : public ir::RowSource {
 public:
  Status read_rows(int64_t, int64_t, std::span<std::byte>) const override {
    return internal_error("a weight that the checkpoint lacks was read");
  }
};

bool is_rotary_buffer(std::string_view name) { return name.ends_with("rotary_emb.inv_freq"); }

std::string list(const std::vector<std::string>& names) {
  constexpr size_t kShown = 40;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) out += "\n  " + names[i];
  if (names.size() > kShown) out += "\n  and " + std::to_string(names.size() - kShown) + " more";
  return out;
}

}  // namespace

ir::ConstantPtr WeightReader::get(const std::string& name, const std::vector<int64_t>& dims) {
  read_.insert(name);
  auto found = source_.find(name);
  if (!found.ok()) {
    problems_.push_back(name + ": " + found.status().message());
  } else if (*found == nullptr) {
    missing_.push_back(name + " " + ir::describe(DType::kFloat32, dims).substr(7));
  } else if ((*found)->dims() != dims) {
    problems_.push_back(name + ": is " + ir::describe((*found)->dtype(), (*found)->dims()) +
                        ", the config asks for " + ir::describe((*found)->dtype(), dims));
  } else if (!is_float((*found)->dtype())) {
    problems_.push_back(name + ": has no floating-point elements, but " +
                        std::string(to_string((*found)->dtype())));
  } else {
    return *found;
  }
  return ir::Constant::from_rows(DType::kFloat32, dims, std::make_shared<Absent>());
}

Status WeightReader::finish() const {
  std::vector<std::string> unread;
  for (std::string& name : source_.names()) {
    if (!read_.contains(name) && !is_rotary_buffer(name)) unread.push_back(std::move(name));
  }
  std::sort(unread.begin(), unread.end());
  std::string message;
  auto section = [&](std::string_view title, const std::vector<std::string>& names) {
    if (!names.empty()) message += (message.empty() ? "" : "\n") + std::string(title) + list(names);
  };
  section("tensors missing from the checkpoint:", missing_);
  section("tensors that do not fit:", problems_);
  section("tensors of the checkpoint that the architecture does not use:", unread);
  return message.empty() ? ok_status() : invalid_model(std::move(message));
}

}  // namespace decant::models
