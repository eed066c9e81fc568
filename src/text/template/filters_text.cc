#include <fmt/format.h>

#include <algorithm>

#include "text/template/errors.h"
#include "text/template/filters.h"
#include "text/template/format.h"
#include "text/template/interpreter.h"
#include "text/template/members.h"
#include "text/template/repr.h"
#include "text/template/split.h"
#include "text/template/unicode.h"

namespace decant::text {
namespace {

// The input as a text that keeps being markup.
Result<Value> soft_text(Interpreter& in, const Value& v) {
  if (v.is_string()) return v;
  DECANT_ASSIGN(std::string text, to_text(v, in.options().limits.output_bytes));
  return in.make_string(std::move(text));
}

// Filters that are a method of the text form of their input.
template <const char* kMethod>
Result<Value> method_of_text(Interpreter& in, const Value& input, CallArgs args) {
  DECANT_ASSIGN(const Value text, soft_text(in, input));
  return find_string_method(kMethod)->method(in, text, std::move(args));
}
constexpr char kUpper[] = "upper", kLower[] = "lower", kCapitalize[] = "capitalize", kStrip[] = "strip";

Result<Value> string(Interpreter& in, const Value& input, CallArgs) { return soft_text(in, input); }

Result<Value> title(Interpreter& in, const Value& input, CallArgs) {
  DECANT_ASSIGN(const Value text, soft_text(in, input));
  std::string out;
  bool begins = true;
  const std::string_view s = text.as_string();
  for (size_t i = 0; i < s.size();) {
    const size_t start = i;
    const char32_t c = next_code_point(s, i);
    const std::string_view piece = s.substr(start, i - start);
    out += begins ? to_upper(piece) : to_lower(piece);
    begins = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  }
  return in.make_string(std::move(out), text.is_markup());
}

Result<Value> replace(Interpreter& in, const Value& input, CallArgs args) {
  DECANT_ASSIGN(const Value text, soft_text(in, input));
  Parameters p("replace", {"old", "new", "count"}, 2);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  CallArgs plain;
  for (size_t i = 0; i < 2; ++i) {
    DECANT_ASSIGN(Value part, soft_text(in, p[i]));
    plain.positional.push_back(std::move(part));
  }
  if (p.has(2) && !p[2].is_none()) plain.positional.push_back(p[2]);
  return find_string_method("replace")->method(in, text, std::move(plain));
}

Result<Value> center(Interpreter& in, const Value& input, CallArgs args) {
  DECANT_ASSIGN(const Value text, soft_text(in, input));
  Parameters p("center", {"width"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  CallArgs width;
  width.positional.push_back(p.get(0, Value::integer(80)));
  return find_string_method("center")->method(in, text, std::move(width));
}

Result<Value> indent(Interpreter& in, const Value& input, CallArgs args) {
  DECANT_ASSIGN(const Value text, soft_text(in, input));
  Parameters p("indent", {"width", "first", "blank"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  std::string by;
  if (p.has(0) && p[0].is_string()) {
    by = p[0].as_string();
  } else {
    DECANT_ASSIGN(const int64_t width, p.integer(0, 4));
    by.assign(static_cast<size_t>(std::clamp<int64_t>(width, 0, 10'000)), ' ');
  }
  const bool blank = p.flag(2, false);
  // One more line break than the text has, so that a last empty line counts.
  const std::string whole = std::string(text.as_string()) + "\n";
  std::string out = p.flag(1, false) ? by : "";
  bool first = true;
  for (std::string_view line : split_lines(whole, false)) {
    if (out.size() > in.options().limits.output_bytes) break;
    if (!first) out += '\n';
    if (!first && (blank || !line.empty())) out += by;
    out += line;
    first = false;
  }
  return in.make_string(std::move(out), text.is_markup());
}

Result<Value> format(Interpreter& in, const Value& input, CallArgs args) {
  DECANT_ASSIGN(const Value text, soft_text(in, input));
  if (!args.positional.empty() && !args.named.empty()) {
    return type_error("can't handle positional and keyword arguments at the same time");
  }
  if (args.named.empty()) return format_percent(in, text.as_string(), args.positional, nullptr);
  std::vector<std::pair<Value, Value>> entries;
  for (auto& [name, value] : args.named) entries.emplace_back(Value::string(name), std::move(value));
  const Value mapping = Value::dict(std::move(entries));
  return format_percent(in, text.as_string(), {mapping}, &mapping);
}

Result<Value> safe(Interpreter& in, const Value& input, CallArgs) {
  DECANT_ASSIGN(const Value text, soft_text(in, input));
  return in.make_string(std::string(text.as_string()), true);
}

template <bool kForce>
Result<Value> escape(Interpreter& in, const Value& input, CallArgs) {
  DECANT_ASSIGN(const Value text, soft_text(in, input));
  if (!kForce && text.is_markup()) return text;
  return in.make_string(escape_html(text.as_string()), true);
}

Result<Value> truncate(Interpreter& in, const Value& input, CallArgs args) {
  DECANT_ASSIGN(const Value text, soft_text(in, input));
  Parameters p("truncate", {"length", "killwords", "end", "leeway"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const int64_t length, p.integer(0, 255));
  DECANT_ASSIGN(const std::string_view end, p.text(2, "..."));
  const Value leeway_value = p.get(3, Value::none());
  const int64_t leeway = leeway_value.is_integral() ? leeway_value.as_int() : 5;
  const auto end_length = static_cast<int64_t>(count_code_points(end));
  if (length < end_length)
    return raise("AssertionError", fmt::format("expected length >= {}, got {}", end_length, length));
  if (leeway < 0) return raise("AssertionError", fmt::format("expected leeway >= 0, got {}", leeway));
  if (static_cast<int64_t>(text.code_points()) <= length + std::min<int64_t>(leeway, 1 << 24)) return text;
  std::string_view kept = text.as_string();
  kept = kept.substr(0, byte_offset(kept, static_cast<size_t>(length - end_length)));
  if (!p.flag(1, false)) kept = kept.substr(0, std::min(kept.rfind(' '), kept.size()));
  return in.make_string(std::string(kept) + std::string(end), text.is_markup());
}

Result<Value> word_count(Interpreter& in, const Value& input, CallArgs) {
  DECANT_ASSIGN(const Value text, soft_text(in, input));
  int64_t n = 0;
  bool inside = false;
  for (size_t i = 0; i < text.as_string().size();) {
    const char32_t c = next_code_point(text.as_string(), i);
    const bool word = c == '_' || is_alnum(c);
    n += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value::integer(n);
}

Result<Value> url_encode(Interpreter& in, const Value& input, CallArgs) {
  DECANT_ASSIGN(const Value text, soft_text(in, input));
  std::string out;
  for (char c : text.as_string()) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c)
                 : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return in.make_string(std::move(out));
}

constexpr FilterEntry kFilters[] = {
    {"capitalize", method_of_text<kCapitalize>},
    {"center", center},
    {"e", escape<false>},
    {"escape", escape<false>},
    {"forceescape", escape<true>},
    {"format", format},
    {"indent", indent},
    {"lower", method_of_text<kLower>},
    {"replace", replace},
    {"safe", safe},
    {"string", string},
    {"title", title},
    {"trim", method_of_text<kStrip>},
    {"truncate", truncate},
    {"upper", method_of_text<kUpper>},
    {"urlencode", url_encode},
    {"wordcount", word_count},
};

}  // namespace

std::span<const FilterEntry> text_filters() { return kFilters; }

}  // namespace decant::text
