#include "text/tokenizer/regex.h"

#include <fmt/format.h>
#include <oniguruma.h>

#include <mutex>

#include "text/tokenizer/utf8.h"

namespace decant::text::bpe {
namespace {

constexpr size_t kMaxPattern = 1 << 16;
// A run of a million blanks costs a pattern like \s*[\r\n]+ one step and one stack entry each.
constexpr unsigned long kMaxSteps = 10'000'000;
constexpr unsigned int kMaxStack = 4'000'000;

std::string error_text(int code, OnigErrorInfo* info) {
  UChar buffer[ONIG_MAX_ERROR_MESSAGE_LEN] = {};
  const int n =
      info != nullptr ? onig_error_code_to_str(buffer, code, info) : onig_error_code_to_str(buffer, code);
  return {reinterpret_cast<const char*>(buffer), static_cast<size_t>(n > 0 ? n : 0)};
}

const UChar* bytes(const char* p) { return reinterpret_cast<const UChar*>(p); }

struct Region {
  OnigRegion* p = onig_region_new();
  ~Region() { onig_region_free(p, 1); }
};
struct Limits {
  OnigMatchParam* p = onig_new_match_param();
  ~Limits() { onig_free_match_param(p); }
};

}  // namespace

struct Regex::Program {
  regex_t* regex = nullptr;
  std::string pattern;
  ~Program() { onig_free(regex); }
};

Result<Regex> Regex::compile(const std::string& pattern) {
  static std::once_flag once;
  std::call_once(once, [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
  });
  if (pattern.size() > kMaxPattern) {
    return unsupported(
        fmt::format("regular expression of {} bytes (at most {} are accepted)", pattern.size(), kMaxPattern));
  }
  if (!is_valid_utf8(pattern)) return invalid_model("regular expression is not valid UTF-8");
  auto program = std::make_shared<Program>();
  program->pattern = pattern;
  OnigErrorInfo info;
  const char* begin = pattern.data();
  const int code = onig_new(&program->regex, bytes(begin), bytes(begin + pattern.size()), ONIG_OPTION_NONE,
                            ONIG_ENCODING_UTF8, ONIG_SYNTAX_RUBY, &info);
  if (code != ONIG_NORMAL) {
    program->regex = nullptr;
    return invalid_model(fmt::format("regular expression '{}': {}", pattern, error_text(code, &info)));
  }
  Regex r;
  r.program_ = std::move(program);
  return r;
}

Status Regex::find_all(std::string_view text, size_t base, std::vector<Match>& out) const {
  if (text.empty()) return ok_status();
  Region region;
  Limits limits;
  if (region.p == nullptr || limits.p == nullptr)
    return resource_error("no memory for a regular expression search");
  onig_initialize_match_param(limits.p);
  onig_set_match_stack_limit_size_of_match_param(limits.p, kMaxStack);
  onig_set_retry_limit_in_match_of_match_param(limits.p, kMaxSteps);
  onig_set_retry_limit_in_search_of_match_param(limits.p, kMaxSteps);

  const char* data = text.data();
  const char* end = data + text.size();
  size_t from = 0;
  size_t covered = 0;
  bool after_match = false;
  while (from <= text.size()) {
    const int found = onig_search_with_param(program_->regex, bytes(data), bytes(end), bytes(data + from),
                                             bytes(end), region.p, ONIG_OPTION_NONE, limits.p);
    if (found == ONIG_MISMATCH) break;
    if (found < 0) {
      return out_of_range(fmt::format("regular expression '{}' gave up on a text of {} bytes: {}",
                                      program_->pattern, text.size(), error_text(found, nullptr)));
    }
    const Range m{static_cast<size_t>(region.p->beg[0]), static_cast<size_t>(region.p->end[0])};
    if (m.size() == 0 && after_match && m.end == covered) {  // an empty match right behind a match is skipped
      if (m.end >= text.size()) break;
      from = m.end + utf8_length(text[m.end]);
      after_match = false;
      continue;
    }
    if (covered < m.begin) out.push_back({{base + covered, base + m.begin}, false});
    out.push_back({{base + m.begin, base + m.end}, true});
    covered = from = m.end;
    after_match = true;
  }
  if (covered < text.size()) out.push_back({{base + covered, base + text.size()}, false});
  return ok_status();
}

}  // namespace decant::text::bpe
