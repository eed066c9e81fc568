#include <oniguruma.h>

#include <memory>
#include <mutex>
#include <string>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

constexpr size_t kMaxPattern = 1 << 16;
/// Oniguruma backtracks: a search ends with an error after this many steps and stack entries.
constexpr unsigned long kMaxSteps = 10'000'000;
constexpr unsigned int kMaxStack = 4'000'000;

const UChar* bytes(const char* p) { return reinterpret_cast<const UChar*>(p); }

std::string error_text(int code) {
  UChar buffer[ONIG_MAX_ERROR_MESSAGE_LEN] = {};
  const int n = onig_error_code_to_str(buffer, code);
  return {reinterpret_cast<const char*>(buffer), static_cast<size_t>(n > 0 ? n : 0)};
}

using Program = std::unique_ptr<regex_t, decltype(&onig_free)>;
using Limits = std::unique_ptr<OnigMatchParam, decltype(&onig_free_match_param)>;

/// A program for RE2's syntax, where \w, \d, \s and \b know ASCII only.
Result<Program> compile(const Node& node) {
  static std::once_flag once;
  std::call_once(once, [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
  });
  const auto* given = node.attribute<std::string>("pattern");
  if (given == nullptr) return node_error(node, "attribute 'pattern' is missing");
  if (given->size() > kMaxPattern) return node_error(node, "the pattern is too long");
  // Longest of all: the whole text or nothing.
  const std::string pattern = "(?:" + *given + ")\\z";
  const auto* valid = bytes(pattern.data());
  if (onigenc_is_valid_mbc_string(ONIG_ENCODING_UTF8, valid, valid + pattern.size()) == 0)
    return node_error(node, "the pattern is not valid UTF-8");
  regex_t* raw = nullptr;
  const OnigOptionType options = ONIG_OPTION_WORD_IS_ASCII | ONIG_OPTION_DIGIT_IS_ASCII |
                                 ONIG_OPTION_SPACE_IS_ASCII | ONIG_OPTION_POSIX_IS_ASCII;
  OnigErrorInfo info;
  const int code =
      onig_new(&raw, valid, valid + pattern.size(), options, ONIG_ENCODING_UTF8, ONIG_SYNTAX_PERL_NG, &info);
  Program program(raw, &onig_free);
  if (code != ONIG_NORMAL) return node_error(node, fmt::format("pattern '{}': {}", *given, error_text(code)));
  return program;
}

Status infer_match(InferContext& context) {
  if (context.dtype(0) != DType::kString) return context.error("input 0 must be a string tensor");
  DECANT_RETURN_IF_ERROR(compile(context.node()).status());
  context.set_output(0, DType::kBool, context.shape(0));
  return ok_status();
}

EvalResult eval_match(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (x.dtype() != DType::kString) return node_error(node, "needs strings");
  DECANT_ASSIGN(const Program program, compile(node));
  const Limits limits(onig_new_match_param(), &onig_free_match_param);
  onig_initialize_match_param(limits.get());
  onig_set_retry_limit_in_match_of_match_param(limits.get(), kMaxSteps);
  onig_set_match_stack_limit_size_of_match_param(limits.get(), kMaxStack);
  DECANT_ASSIGN(Tensor out, Tensor::allocate(DType::kBool, x.dims()));
  for (int64_t i = 0; i < x.elements(); ++i) {
    const std::string& text = x.string_at(i);
    const UChar *begin = bytes(text.data()), *end = begin + text.size();
    if (onigenc_is_valid_mbc_string(ONIG_ENCODING_UTF8, begin, end) == 0)
      return node_error(node, fmt::format("string {} is not valid UTF-8", i));
    const int found =
        onig_match_with_param(program.get(), begin, end, begin, nullptr, ONIG_OPTION_NONE, limits.get());
    if (found < 0 && found != ONIG_MISMATCH)
      return node_error(node, fmt::format("string {}: {}", i, error_text(found)));
    out.mutable_data_as<uint8_t>()[i] = found == static_cast<int>(text.size());
  }
  return single(std::move(out));
}

}  // namespace

DECANT_OP(RegexFullMatch) {
  return {.name = "RegexFullMatch",
          .doc = "Whether whole strings match a regular expression",
          .min_inputs = 1,
          .max_inputs = 1,
          .any_dtype = true,
          .infer = infer_match,
          .eval = eval_match};
}

}  // namespace decant::ir
