#include <fmt/format.h>

#include <algorithm>

#include "text/template/errors.h"
#include "text/template/format.h"
#include "text/template/interpreter.h"
#include "text/template/members.h"
#include "text/template/repr.h"
#include "text/template/split.h"
#include "text/template/unicode.h"

namespace decant::text {
namespace {

Result<Value> same_kind(Interpreter& in, const Value& self, std::string text) {
  return in.make_string(std::move(text), self.is_markup());
}

template <std::string (*kMap)(std::string_view)>
Result<Value> mapped(Interpreter& in, const Value& self, CallArgs args) {
  Parameters p("str", {});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  return same_kind(in, self, kMap(self.as_string()));
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  size_t first = 0;
  next_code_point(text, first);
  return to_title(text.substr(0, first)) + to_lower(text.substr(first));
}

std::string swap_case(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = next_code_point(text, i);
    const auto piece = text.substr(start, i - start);
    out += is_upper(c) ? to_lower(piece) : to_upper(piece);
  }
  return out;
}

template <StripSide kSide>
Result<Value> stripped(Interpreter& in, const Value& self, CallArgs args) {
  Parameters p("strip", {"chars"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  if (!p.has(0) || p[0].is_none()) return same_kind(in, self, std::string(strip(self.as_string(), kSide)));
  DECANT_ASSIGN(const std::string_view chars, p.text(0));
  return same_kind(in, self, std::string(strip(self.as_string(), kSide, &chars)));
}

Result<Value> parts_list(Interpreter& in, const Value& self, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (std::string_view part : parts) items.push_back(Value::string(std::string(part), self.is_markup()));
  DECANT_RETURN_IF_ERROR(in.charge_bytes(self.as_string().size() + 64 * items.size()));
  return in.make_list(std::move(items));
}

template <std::vector<std::string_view> (*kSplit)(std::string_view, std::string_view, int64_t)>
Result<Value> split(Interpreter& in, const Value& self, CallArgs args) {
  Parameters p("split", {"sep", "maxsplit"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const int64_t limit, p.integer(1, -1));
  if (!p.has(0) || p[0].is_none()) return parts_list(in, self, kSplit(self.as_string(), {}, limit));
  DECANT_ASSIGN(const std::string_view separator, p.text(0));
  if (separator.empty()) return value_error("empty separator");
  return parts_list(in, self, kSplit(self.as_string(), separator, limit));
}

Result<Value> split_lines_method(Interpreter& in, const Value& self, CallArgs args) {
  Parameters p("splitlines", {"keepends"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  return parts_list(in, self, split_lines(self.as_string(), p.flag(0, false)));
}

Result<Value> replace(Interpreter& in, const Value& self, CallArgs args) {
  Parameters p("replace", {"old", "new", "count"}, 2);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const std::string_view from, p.text(0));
  DECANT_ASSIGN(const std::string_view to, p.text(1));
  DECANT_ASSIGN(int64_t count, p.integer(2, -1));
  const std::string_view text = self.as_string();
  const size_t limit = in.options().limits.output_bytes;
  std::string out;
  size_t i = 0;
  for (; count != 0 && out.size() <= limit; --count) {
    if (from.empty()) {
      out += to;
      if (i >= text.size()) return same_kind(in, self, std::move(out));
      const size_t start = i;
      next_code_point(text, i);
      out += text.substr(start, i - start);
      continue;
    }
    const size_t found = text.find(from, i);
    if (found == std::string_view::npos) break;
    out += text.substr(i, found - i);
    out += to;
    i = found + from.size();
  }
  out += text.substr(i);
  return same_kind(in, self, std::move(out));
}

// The part of the text that optional start and end arguments leave, and where it begins in code points.
struct Window {
  std::string_view text;
  int64_t first;
};
Result<Window> window(const Value& self, const Parameters& p, size_t start_at) {
  const auto size = static_cast<int64_t>(self.code_points());
  const auto bound = [&](size_t i, int64_t otherwise) -> Result<int64_t> {
    if (!p.has(i) || p[i].is_none()) return otherwise;
    DECANT_ASSIGN(const int64_t v, p.integer(i, otherwise));
    return std::clamp<int64_t>(v < 0 ? v + size : v, 0, size);
  };
  DECANT_ASSIGN(const int64_t first, bound(start_at, 0));
  DECANT_ASSIGN(const int64_t last, bound(start_at + 1, size));
  const std::string_view text = self.as_string();
  const size_t begin = byte_offset(text, static_cast<size_t>(first));
  const size_t end = byte_offset(text, static_cast<size_t>(std::max(first, last)));
  return Window{text.substr(begin, end - begin), first};
}

template <bool kStart>
Result<Value> starts_or_ends(Interpreter&, const Value& self, CallArgs args) {
  Parameters p(kStart ? "startswith" : "endswith", {"prefix", "start", "end"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const Window w, window(self, p, 1));
  const auto matches = [&](const Value& v) {
    return v.is_string() && (kStart ? w.text.starts_with(v.as_string()) : w.text.ends_with(v.as_string()));
  };
  if (p[0].is(ValueKind::kTuple)) {
    return Value::boolean(std::any_of(p[0].items().begin(), p[0].items().end(), matches));
  }
  if (!p[0].is_string()) {
    return type_error(fmt::format("{} first arg must be str or a tuple of str, not {}",
                                  kStart ? "startswith" : "endswith", p[0].type_name()));
  }
  return Value::boolean(matches(p[0]));
}

template <bool kFromRight, bool kMustFind>
Result<Value> find(Interpreter&, const Value& self, CallArgs args) {
  Parameters p("find", {"sub", "start", "end"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const std::string_view sub, p.text(0));
  DECANT_ASSIGN(const Window w, window(self, p, 1));
  const size_t at = kFromRight ? w.text.rfind(sub) : w.text.find(sub);
  if (at != std::string_view::npos) {
    return Value::integer(w.first + static_cast<int64_t>(count_code_points(w.text.substr(0, at))));
  }
  if (kMustFind) return value_error("substring not found");
  return Value::integer(-1);
}

Result<Value> count(Interpreter&, const Value& self, CallArgs args) {
  Parameters p("count", {"sub", "start", "end"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const std::string_view sub, p.text(0));
  DECANT_ASSIGN(const Window w, window(self, p, 1));
  if (sub.empty()) return Value::integer(static_cast<int64_t>(count_code_points(w.text)) + 1);
  int64_t n = 0;
  for (size_t i = w.text.find(sub); i != std::string_view::npos; i = w.text.find(sub, i + sub.size())) ++n;
  return Value::integer(n);
}

Result<Value> join(Interpreter& in, const Value& self, CallArgs args) {
  Parameters p("join", {"iterable"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const auto items, iterate(p[0]));
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += self.as_string();
    if (!items[i].is_string()) {
      return type_error(
          fmt::format("sequence item {}: expected str instance, {} found", i, items[i].type_name()));
    }
    DECANT_RETURN_IF_ERROR(append_text(out, items[i], in.options().limits.output_bytes));
  }
  return same_kind(in, self, std::move(out));
}

template <bool kFromRight>
Result<Value> partition(Interpreter&, const Value& self, CallArgs args) {
  Parameters p("partition", {"sep"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const std::string_view sep, p.text(0));
  if (sep.empty()) return value_error("empty separator");
  const std::string_view text = self.as_string();
  const size_t at = kFromRight ? text.rfind(sep) : text.find(sep);
  const auto piece = [&](std::string_view s) { return Value::string(std::string(s), self.is_markup()); };
  if (at == std::string_view::npos) {
    return Value::tuple(kFromRight ? std::vector<Value>{piece(""), piece(""), piece(text)}
                                   : std::vector<Value>{piece(text), piece(""), piece("")});
  }
  return Value::tuple({piece(text.substr(0, at)), piece(sep), piece(text.substr(at + sep.size()))});
}

template <bool kPrefix>
Result<Value> remove_affix(Interpreter& in, const Value& self, CallArgs args) {
  Parameters p(kPrefix ? "removeprefix" : "removesuffix", {"affix"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const std::string_view affix, p.text(0));
  std::string_view text = self.as_string();
  if (kPrefix && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (!kPrefix && text.ends_with(affix)) text.remove_suffix(affix.size());
  return same_kind(in, self, std::string(text));
}

template <char kAlign>
Result<Value> justify(Interpreter& in, const Value& self, CallArgs args) {
  Parameters p("justify", {"width", "fillchar"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const int64_t width, p.integer(0, 0));
  DECANT_ASSIGN(const std::string_view fill, p.text(1, " "));
  if (count_code_points(fill) != 1)
    return type_error("The fill character must be exactly one character long");
  const int64_t missing = std::max<int64_t>(0, width - static_cast<int64_t>(self.code_points()));
  if (static_cast<uint64_t>(missing) > in.options().limits.output_bytes / fill.size()) {
    return limit_error("a padded text grows too long");
  }
  // Python's centre puts the odd blank on the left when the width is odd.
  const int64_t left = kAlign == 'l' ? 0 : kAlign == 'r' ? missing : missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += self.as_string();
  for (int64_t i = left; i < missing; ++i) out += fill;
  return same_kind(in, self, std::move(out));
}

Result<Value> zfill(Interpreter& in, const Value& self, CallArgs args) {
  Parameters p("zfill", {"width"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const int64_t width, p.integer(0, 0));
  const std::string_view text = self.as_string();
  const int64_t missing = std::max<int64_t>(0, width - static_cast<int64_t>(self.code_points()));
  if (static_cast<uint64_t>(missing) > in.options().limits.output_bytes)
    return limit_error("a padded text grows too long");
  const size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  return same_kind(in, self,
                   std::string(text.substr(0, sign)) + std::string(static_cast<size_t>(missing), '0') +
                       std::string(text.substr(sign)));
}

Result<Value> expand_tabs(Interpreter& in, const Value& self, CallArgs args) {
  Parameters p("expandtabs", {"tabsize"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(int64_t size, p.integer(0, 8));
  size = std::clamp<int64_t>(size, 0, 1000);
  std::string out;
  int64_t column = 0;
  for (char c : self.as_string()) {
    if (out.size() > in.options().limits.output_bytes) break;
    if (c == '\t') {
      const int64_t n = size == 0 ? 0 : size - column % size;
      out.append(static_cast<size_t>(n), ' ');
      column += n;
      continue;
    }
    out += c;
    column = c == '\n' || c == '\r' ? 0 : column + ((static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0);
  }
  return same_kind(in, self, std::move(out));
}

template <bool (*kTest)(char32_t)>
Result<Value> every(Interpreter&, const Value& self, CallArgs args) {
  Parameters p("str", {});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  const std::string_view text = self.as_string();
  for (size_t i = 0; i < text.size();) {
    if (!kTest(next_code_point(text, i))) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

bool is_numeric(char32_t c) { return is_alnum(c) && !is_alpha(c); }

// All cased letters are of one case, and there is one.
template <bool kUpper>
Result<Value> of_case(Interpreter&, const Value& self, CallArgs args) {
  Parameters p("str", {});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  bool cased = false;
  const std::string_view text = self.as_string();
  for (size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    if (kUpper ? is_lower(c) : is_upper(c)) return Value::boolean(false);
    cased = cased || (kUpper ? is_upper(c) : is_lower(c));
  }
  return Value::boolean(cased);
}

Result<Value> is_title(Interpreter&, const Value& self, CallArgs args) {
  const std::string_view text = self.as_string();
  const bool cased = to_upper(text) != to_lower(text);
  return Value::boolean(cased && to_title(text) == text);
}

Result<Value> is_ascii(Interpreter&, const Value& self, CallArgs) { return Value::boolean(self.is_ascii()); }

Result<Value> is_printable_method(Interpreter&, const Value& self, CallArgs) {
  const std::string_view text = self.as_string();
  for (size_t i = 0; i < text.size();) {
    if (!is_printable(next_code_point(text, i))) return Value::boolean(false);
  }
  return Value::boolean(true);
}

Result<Value> is_identifier(Interpreter&, const Value& self, CallArgs) {
  const std::string_view text = self.as_string();
  for (size_t i = 0; i < text.size();) {
    const bool first = i == 0;
    const char32_t c = next_code_point(text, i);
    if (c != '_' && !(first ? is_alpha(c) : is_alnum(c))) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

Result<Value> format(Interpreter& in, const Value& self, CallArgs args) {
  return format_braces(in, self.as_string(), args);
}

Result<Value> format_map(Interpreter& in, const Value& self, CallArgs args) {
  Parameters p("format_map", {"mapping"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  if (!p[0].is_dict()) return type_error("format_map() needs a mapping");
  CallArgs named;
  for (const auto& [key, value] : p[0].entries()) {
    if (key.is_string()) named.named.emplace_back(std::string(key.as_string()), value);
  }
  return format_braces(in, self.as_string(), named);
}

constexpr MethodEntry kMethods[] = {
    {"capitalize", mapped<capitalize>},
    {"casefold", mapped<case_fold>},
    {"center", justify<'c'>},
    {"count", count},
    {"endswith", starts_or_ends<false>},
    {"expandtabs", expand_tabs},
    {"find", find<false, false>},
    {"format", format},
    {"format_map", format_map},
    {"index", find<false, true>},
    {"isalnum", every<is_alnum>},
    {"isalpha", every<is_alpha>},
    {"isascii", is_ascii},
    {"isdecimal", every<is_decimal>},
    {"isdigit", every<is_digit>},
    {"isidentifier", is_identifier},
    {"islower", of_case<false>},
    {"isnumeric", every<is_numeric>},
    {"isprintable", is_printable_method},
    {"isspace", every<is_space>},
    {"istitle", is_title},
    {"isupper", of_case<true>},
    {"join", join},
    {"ljust", justify<'l'>},
    {"lower", mapped<to_lower>},
    {"lstrip", stripped<StripSide::kLeft>},
    {"partition", partition<false>},
    {"removeprefix", remove_affix<true>},
    {"removesuffix", remove_affix<false>},
    {"replace", replace},
    {"rfind", find<true, false>},
    {"rindex", find<true, true>},
    {"rjust", justify<'r'>},
    {"rpartition", partition<true>},
    {"rsplit", split<split_text_from_right>},
    {"rstrip", stripped<StripSide::kRight>},
    {"split", split<split_text>},
    {"splitlines", split_lines_method},
    {"startswith", starts_or_ends<true>},
    {"strip", stripped<StripSide::kBoth>},
    {"swapcase", mapped<swap_case>},
    {"title", mapped<to_title>},
    {"upper", mapped<to_upper>},
    {"zfill", zfill},
};

}  // namespace

const MethodEntry* find_string_method(std::string_view name) {
  const auto it =
      std::find_if(std::begin(kMethods), std::end(kMethods), [&](const auto& m) { return m.name == name; });
  return it == std::end(kMethods) ? nullptr : it;
}

}  // namespace decant::text
