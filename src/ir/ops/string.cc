#include <utf8proc.h>

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

bool is_string(DType t) { return t == DType::kString; }

Status require_strings(const Node& node, EvalInputs inputs) {
  for (const Tensor* t : inputs) {
    if (t != nullptr && t->dtype() != DType::kString)
      return node_error(node, "needs strings, not " + describe(*t));
  }
  return ok_status();
}

Status infer_concat(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_string, "a string tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_string, "a string tensor"));
  DECANT_ASSIGN(auto shape, broadcast_inputs(context, 0, 2));
  context.set_output(0, DType::kString, std::move(shape));
  return ok_status();
}

EvalResult eval_concat(const Node& node, EvalInputs inputs) {
  DECANT_RETURN_IF_ERROR(require_strings(node, inputs));
  const Tensor &x = *inputs[0], &y = *inputs[1];
  const auto dims = broadcast_dims(x.dims(), y.dims());
  if (!dims) return node_error(node, fmt::format("{} and {} do not broadcast", describe(x), describe(y)));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(DType::kString, *dims));
  auto* strings = out.mutable_data_as<std::string>();
  for_each_index<2>(*dims, {broadcast_strides(x.dims(), *dims), broadcast_strides(y.dims(), *dims)},
                    [&](int64_t i, const std::array<int64_t, 2>& at) {
                      strings[i] = x.string_at(at[0]) + y.string_at(at[1]);
                    });
  return single(std::move(out));
}

constexpr std::string_view kBlank = " \t\n\r\f\v";

/// At runs of blanks, as many times as `limit` says (none: -1); what is left keeps its trailing blanks then.
std::vector<std::string> split_at_blanks(std::string_view text, int64_t limit) {
  std::vector<std::string> parts;
  while (true) {
    const size_t begin = text.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return parts;
    text.remove_prefix(begin);
    const size_t end = text.find_first_of(kBlank);
    if (end == std::string_view::npos || (limit >= 0 && static_cast<int64_t>(parts.size()) == limit)) {
      parts.emplace_back(text);
      return parts;
    }
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::vector<std::string> split_at(std::string_view text, const std::string& delimiter, int64_t limit) {
  if (delimiter.empty()) return split_at_blanks(text, limit);
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(delimiter);
    if (end == std::string_view::npos || (limit >= 0 && static_cast<int64_t>(parts.size()) == limit)) {
      parts.emplace_back(text);
      return parts;
    }
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + delimiter.size());
  }
}

Status infer_split(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_string, "a string tensor"));
  std::optional<Shape> parts = context.shape(0);
  if (parts) parts->push_back(context.fresh_symbol("parts"));
  context.set_output(0, DType::kString, std::move(parts));
  context.set_output(1, DType::kInt64, context.shape(0));
  return ok_status();
}

EvalResult eval_split(const Node& node, EvalInputs inputs) {
  DECANT_RETURN_IF_ERROR(require_strings(node, inputs));
  const Tensor& x = *inputs[0];
  const std::string delimiter = node.string_attribute("delimiter", "");
  const int64_t limit = node.int_attribute("maxsplit", -1);
  std::vector<std::vector<std::string>> parts;
  size_t most = 0;
  DECANT_ASSIGN(Tensor counts, Tensor::allocate(DType::kInt64, x.dims()));
  for (int64_t i = 0; i < x.elements(); ++i) {
    parts.push_back(split_at(x.string_at(i), delimiter, limit));
    most = std::max(most, parts.back().size());
    counts.mutable_data_as<int64_t>()[i] = static_cast<int64_t>(parts.back().size());
  }
  Dims dims = x.dims();
  dims.push_back(static_cast<int64_t>(most));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(DType::kString, dims));
  for (size_t i = 0; i < parts.size(); ++i)
    std::move(parts[i].begin(), parts[i].end(), out.mutable_data_as<std::string>() + i * most);
  return std::vector<Tensor>{std::move(out), std::move(counts)};
}

/// Each code point by itself; bytes that are no UTF-8 stay as they are.
std::string change_case(const std::string& text, bool upper) {
  std::string out;
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t used = utf8proc_iterate(at, left, &code);
    if (used <= 0) {
      out += static_cast<char>(*at++);
      --left;
      continue;
    }
    utf8proc_uint8_t bytes[4];
    const auto written = utf8proc_encode_char(upper ? utf8proc_toupper(code) : utf8proc_tolower(code), bytes);
    out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(written));
    at += used;
    left -= used;
  }
  return out;
}

Status infer_normalizer(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_string, "a string tensor"));
  std::optional<Shape> shape = context.shape(0);
  if (shape) {
    if (shape->empty() || shape->size() > 2) return context.error("needs a vector or a matrix of one row");
    if (!context.node().attribute<std::vector<std::string>>("stopwords")) {
      context.set_output(0, DType::kString, std::move(shape));
      return ok_status();
    }
    shape->back() = context.fresh_symbol("words");
  }
  context.set_output(0, DType::kString, std::move(shape));
  return ok_status();
}

/// Drops the stop words, then changes the case; one empty string remains of nothing.
EvalResult eval_normalizer(const Node& node, EvalInputs inputs) {
  DECANT_RETURN_IF_ERROR(require_strings(node, inputs));
  const Tensor& x = *inputs[0];
  if (x.rank() == 0 || x.rank() > 2 || (x.rank() == 2 && x.dims()[0] != 1))
    return node_error(node, "needs a vector or a matrix of one row, not " + describe(x));
  const std::string action = node.string_attribute("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return node_error(node, "case_change_action '" + action + "' is unknown");
  const bool sensitive = node.int_attribute("is_case_sensitive", 0) != 0;
  std::vector<std::string> stopwords;
  if (const auto* words = node.attribute<std::vector<std::string>>("stopwords")) stopwords = *words;
  const auto key = [&](const std::string& word) { return sensitive ? word : change_case(word, false); };
  for (std::string& word : stopwords) word = key(word);
  std::sort(stopwords.begin(), stopwords.end());
  std::vector<std::string> kept;
  for (int64_t i = 0; i < x.elements(); ++i) {
    const std::string& word = x.string_at(i);
    if (std::binary_search(stopwords.begin(), stopwords.end(), key(word))) continue;
    kept.push_back(action == "NONE" ? word : change_case(word, action == "UPPER"));
  }
  if (kept.empty()) kept.emplace_back();
  Dims dims = x.dims();
  dims.back() = static_cast<int64_t>(kept.size());
  DECANT_ASSIGN(Tensor out, Tensor::allocate(DType::kString, dims));
  std::move(kept.begin(), kept.end(), out.mutable_data_as<std::string>());
  return single(std::move(out));
}

}  // namespace

DECANT_OP(StringConcat) {
  return {.name = "StringConcat",
          .doc = "Joins strings element by element",
          .min_inputs = 2,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = infer_concat,
          .eval = eval_concat};
}

DECANT_OP(StringSplit) {
  return {.name = "StringSplit",
          .doc = "Cuts strings at a delimiter, or at blanks; also how many parts each has",
          .min_inputs = 1,
          .max_inputs = 1,
          .max_outputs = 2,
          .any_dtype = true,
          .infer = infer_split,
          .eval = eval_split};
}

DECANT_OP(StringNormalizer) {
  return {.name = "StringNormalizer",
          .doc = "Drops stop words and changes the case",
          .min_inputs = 1,
          .max_inputs = 1,
          .any_dtype = true,
          .infer = infer_normalizer,
          .eval = eval_normalizer};
}

}  // namespace decant::ir
