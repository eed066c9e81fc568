#include "text/template/dump_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/template/errors.h"
#include "text/template/repr.h"
#include "text/template/unicode.h"

namespace decant::text {
namespace {

class Dumper {
 public:
  Dumper(const JsonStyle& style, size_t limit) : style_(style), limit_(limit) {}

  Status dump(const Value& v) {
    if (out_.size() > limit_) return limit_error(fmt::format("JSON of more than {} bytes", limit_));
    switch (v.kind()) {
      case ValueKind::kNone:
        out_ += "null";
        return ok_status();
      case ValueKind::kBool:
        out_ += v.as_bool() ? "true" : "false";
        return ok_status();
      case ValueKind::kInt:
        out_ += std::to_string(v.as_int());
        return ok_status();
      case ValueKind::kBigInt:
        out_ += v.big_digits();
        return ok_status();
      case ValueKind::kDouble:
        out_ += number(v.as_double());
        return ok_status();
      case ValueKind::kString:
        string(v.as_string());
        return ok_status();
      case ValueKind::kList:
      case ValueKind::kTuple:
        return list(v);
      case ValueKind::kDict:
        return dict(v);
      default:
        return type_error(fmt::format("Object of type {} is not JSON serializable", v.type_name()));
    }
  }
  std::string take() { return std::move(out_); }

 private:
  static std::string number(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return repr_double(d);
  }

  void unit(uint32_t u) { out_ += fmt::format("\\u{:04x}", u); }

  void string(std::string_view text) {
    out_ += '"';
    for (size_t i = 0; i < text.size();) {
      const size_t start = i;
      const char32_t c = next_code_point(text, i);
      static constexpr std::string_view kFrom = "\"\\\n\r\t\f\b";
      static constexpr std::string_view kTo = "\"\\nrtfb";
      const size_t k = c < 0x80 ? kFrom.find(static_cast<char>(c)) : std::string_view::npos;
      if (k != std::string_view::npos) {
        out_ += '\\';
        out_ += kTo[k];
      } else if (c < 0x20) {
        unit(c);
      } else if (style_.ensure_ascii && c >= 0x7F) {
        if (c == 0x7F) {
          out_ += static_cast<char>(c);
        } else if (c < 0x10000) {
          unit(c);
        } else {
          unit(0xD800 + ((c - 0x10000) >> 10));
          unit(0xDC00 + ((c - 0x10000) & 0x3FF));
        }
      } else {
        out_ += text.substr(start, i - start);
      }
    }
    out_ += '"';
  }

  void new_line() {
    if (!style_.indent) return;
    out_ += '\n';
    for (size_t i = 0; i < level_; ++i) out_ += *style_.indent;
  }

  Status list(const Value& v) {
    if (v.items().empty()) {
      out_ += "[]";
      return ok_status();
    }
    out_ += '[';
    ++level_;
    for (size_t i = 0; i < v.items().size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line();
      DECANT_RETURN_IF_ERROR(dump(v.items()[i]));
    }
    --level_;
    new_line();
    out_ += ']';
    return ok_status();
  }

  static Result<std::string> key_text(const Value& key) {
    switch (key.kind()) {
      case ValueKind::kString:
        return std::string(key.as_string());
      case ValueKind::kBool:
        return std::string(key.as_bool() ? "true" : "false");
      case ValueKind::kNone:
        return std::string("null");
      case ValueKind::kInt:
        return std::to_string(key.as_int());
      case ValueKind::kBigInt:
        return std::string(key.big_digits());
      case ValueKind::kDouble:
        return number(key.as_double());
      default:
        return type_error(fmt::format("keys must be str, int, float, bool or None, not {}", key.type_name()));
    }
  }

  Status dict(const Value& v) {
    if (v.entries().empty()) {
      out_ += "{}";
      return ok_status();
    }
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : v.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      for (const auto* entry : entries) {
        if (!entry->first.is_string()) return type_error("sort_keys needs keys that are all str");
      }
      std::sort(entries.begin(), entries.end(),
                [](const auto* a, const auto* b) { return a->first.as_string() < b->first.as_string(); });
    }
    out_ += '{';
    ++level_;
    bool first = true;
    for (const auto* entry : entries) {
      if (!first) out_ += style_.item_separator;
      first = false;
      new_line();
      DECANT_ASSIGN(const std::string key, key_text(entry->first));
      string(key);
      out_ += style_.key_separator;
      DECANT_RETURN_IF_ERROR(dump(entry->second));
    }
    --level_;
    new_line();
    out_ += '}';
    return ok_status();
  }

  const JsonStyle& style_;
  size_t limit_;
  size_t level_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> dump_json(const Value& v, const JsonStyle& style, size_t limit) {
  Dumper dumper(style, limit);
  DECANT_RETURN_IF_ERROR(dumper.dump(v));
  return dumper.take();
}

Result<JsonStyle> json_style(const Value& ensure_ascii, const Value& indent, const Value& separators,
                             const Value& sort_keys) {
  JsonStyle style;
  style.ensure_ascii = truthy(ensure_ascii);
  style.sort_keys = truthy(sort_keys);
  if (indent.is_integral()) {
    style.indent = std::string(static_cast<size_t>(std::clamp<int64_t>(indent.as_int(), 0, 1000)), ' ');
  } else if (indent.is_string()) {
    style.indent = std::string(indent.as_string());
  } else if (!indent.is_none()) {
    return type_error(fmt::format("can't multiply sequence by non-int of type '{}'", indent.type_name()));
  }
  if (style.indent) style.item_separator = ",";
  if (separators.is_none()) return style;
  if (!separators.is_sequence() || separators.items().size() != 2 || !separators.items()[0].is_string() ||
      !separators.items()[1].is_string()) {
    return value_error("separators must be two texts");
  }
  style.item_separator = separators.items()[0].as_string();
  style.key_separator = separators.items()[1].as_string();
  return style;
}

}  // namespace decant::text
