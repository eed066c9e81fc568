#include "text/template/lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/template/unicode.h"

namespace decant::text {
namespace {

constexpr size_t kMaxTokens = 1 << 20;

std::string normalise_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool is_name_char(char32_t c) { return c == '_' || is_alnum(c); }
bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

// One pass over the source; every take_* starts at pos_ and moves it.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalise_newlines(source)) {}

  Result<std::vector<Token>> run() {
    while (pos_ < source_.size()) {
      if (tokens_.size() > kMaxTokens) return fail("template too long", pos_);
      DECANT_RETURN_IF_ERROR(take_text_and_tag());
    }
    add(TokenKind::kEnd, "", pos_);
    return std::move(tokens_);
  }

  Position error_at() const { return error_at_; }

 private:
  // Offsets come in rising order nearly always, so each one counts on from the last.
  Position position(size_t offset) {
    if (offset < counted_) {
      counted_ = 0;
      counted_at_ = {1, 1};
    }
    for (; counted_ < offset; ++counted_) {
      const auto c = static_cast<unsigned char>(source_[counted_]);
      if (c == '\n') {
        counted_at_ = {counted_at_.line + 1, 1};
      } else if ((c & 0xC0) != 0x80) {
        ++counted_at_.column;
      }
    }
    return counted_at_;
  }
  Status fail(std::string_view message, size_t offset) {
    error_at_ = position(offset);
    return syntax_error(message);
  }
  void add(TokenKind kind, std::string text, size_t offset) {
    tokens_.push_back({kind, std::move(text), position(offset)});
  }
  bool at(std::string_view text, size_t offset) const {
    return std::string_view(source_).substr(offset).starts_with(text);
  }
  char peek(size_t offset) const { return offset < source_.size() ? source_[offset] : '\0'; }
  size_t skip_space(size_t offset) const {
    while (offset < source_.size()) {
      size_t next = offset;
      if (!is_space(next_code_point(source_, next))) break;
      offset = next;
    }
    return offset;
  }

  size_t find_tag(size_t offset) const {
    for (; (offset = source_.find('{', offset)) != std::string::npos; ++offset) {
      const char next = peek(offset + 1);
      if (next == '%' || next == '{' || next == '#') return offset;
    }
    return source_.size();
  }

  // Text before a tag, stripped as the tag's sign asks.
  std::string_view text_before(size_t begin, size_t tag, char sign, bool may_lstrip) const {
    std::string_view text = std::string_view(source_).substr(begin, tag - begin);
    if (sign == '-') return strip(text, StripSide::kRight);
    if (sign == '+' || !may_lstrip) return text;
    const size_t newline = text.rfind('\n');
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    if ((line > 0 || line_starting_) && strip(text.substr(line), StripSide::kRight).empty())
      return text.substr(0, line);
    return text;
  }

  void end_tag(size_t end) {
    pos_ = end;
    line_starting_ = end > 0 && source_[end - 1] == '\n';
  }

  // After a closing "%}" or "#}" at `close`: its end, with the white space that goes with it.
  size_t after_close(size_t close, char sign) const {
    if (sign == '-') return skip_space(close + 2);
    if (sign == '+') return close + 2;
    return peek(close + 2) == '\n' ? close + 3 : close + 2;
  }

  Status take_text_and_tag() {
    const size_t begin = pos_;
    const size_t tag = find_tag(begin);
    if (tag == source_.size()) {
      add(TokenKind::kText, source_.substr(begin), begin);
      pos_ = tag;
      return ok_status();
    }
    const char kind = source_[tag + 1];
    const char next = peek(tag + 2);
    const char sign = next == '-' || next == '+' ? next : '\0';
    const std::string_view text = text_before(begin, tag, sign, kind != '{');
    if (!text.empty()) add(TokenKind::kText, std::string(text), begin);
    pos_ = tag + (sign != '\0' ? 3 : 2);
    if (kind == '#') return take_comment(tag);
    if (kind == '%') {
      if (const size_t raw = raw_begin(pos_); raw != 0) return take_raw(tag, raw);
      add(TokenKind::kBlockBegin, "", tag);
      return take_code(TokenKind::kBlockEnd, '%');
    }
    add(TokenKind::kPrintBegin, "", tag);
    return take_code(TokenKind::kPrintEnd, '}');
  }

  Status take_comment(size_t tag) {
    const size_t close = source_.find("#}", pos_);
    if (close == std::string::npos) return fail("Missing end of comment tag", tag);
    const char before = close > pos_ ? source_[close - 1] : '\0';
    end_tag(after_close(close, before == '-' || before == '+' ? before : '\0'));
    return ok_status();
  }

  // End of the opening tag of a raw block whose inside starts at `offset`; 0 when it is another tag.
  size_t raw_begin(size_t offset) const {
    offset = skip_space(offset);
    if (!at("raw", offset)) return 0;
    offset = skip_space(offset + 3);
    if (at("%}", offset)) return offset + 2;
    return at("-%}", offset) ? skip_space(offset + 3) : 0;
  }

  Status take_raw(size_t tag, size_t begin) {
    for (size_t open = begin; (open = source_.find("{%", open)) != std::string::npos; open += 2) {
      size_t inside = open + 2;
      const char sign = peek(inside) == '-' || peek(inside) == '+' ? peek(inside) : '\0';
      inside = skip_space(inside + (sign != '\0' ? 1 : 0));
      if (!at("endraw", inside)) continue;
      inside = skip_space(inside + 6);
      const char closing = peek(inside) == '-' || peek(inside) == '+' ? peek(inside) : '\0';
      if (closing != '\0') ++inside;
      if (!at("%}", inside)) continue;
      line_starting_ = source_[begin - 1] == '\n';
      const std::string_view text = text_before(begin, open, sign, true);
      if (!text.empty()) add(TokenKind::kText, std::string(text), begin);
      end_tag(after_close(inside, closing));
      return ok_status();
    }
    return fail("Missing end of raw directive", tag);
  }

  // True when the tag ended; only looked for outside of brackets.
  bool take_close(TokenKind kind, char mark) {
    const char sign = peek(pos_);
    const bool signed_close = sign == '-' || (sign == '+' && mark == '%');
    const size_t close = signed_close ? pos_ + 1 : pos_;
    if (peek(close) != mark || peek(close + 1) != '}') return false;
    add(kind, "", pos_);
    if (mark == '%') {
      end_tag(after_close(close, signed_close ? sign : '\0'));
    } else {
      end_tag(signed_close ? skip_space(close + 2) : close + 2);
    }
    return true;
  }

  Status take_code(TokenKind close, char mark) {
    std::string open;
    while (true) {
      if (open.empty() && take_close(close, mark)) return ok_status();
      if (pos_ >= source_.size()) return ok_status();
      if (tokens_.size() > kMaxTokens) return fail("template too long", pos_);
      const char c = source_[pos_];
      size_t next = pos_;
      const char32_t code_point = next_code_point(source_, next);
      if (is_space(code_point)) {
        pos_ = skip_space(pos_);
      } else if (is_ascii_digit(c)) {
        take_number();
      } else if (is_name_char(code_point)) {
        take_name();
      } else if (c == '\'' || c == '"') {
        DECANT_RETURN_IF_ERROR(take_string(c));
      } else {
        DECANT_RETURN_IF_ERROR(take_operator(open));
      }
    }
  }

  void take_name() {
    const size_t begin = pos_;
    while (pos_ < source_.size()) {
      size_t next = pos_;
      if (!is_name_char(next_code_point(source_, next))) break;
      pos_ = next;
    }
    add(TokenKind::kName, source_.substr(begin, pos_ - begin), begin);
  }

  // (digits '_')* digits from `offset`; `offset` itself when there are none.
  size_t skip_digits(size_t offset) const {
    while (is_ascii_digit(peek(offset))) {
      while (is_ascii_digit(peek(offset))) ++offset;
      if (peek(offset) == '_' && is_ascii_digit(peek(offset + 1))) ++offset;
    }
    return offset;
  }

  void take_number() {
    const size_t begin = pos_;
    size_t end = skip_digits(begin);
    bool real = false;
    if (begin == 0 || source_[begin - 1] != '.') {
      if (peek(end) == '.' && is_ascii_digit(peek(end + 1))) {
        real = true;
        end = skip_digits(end + 1);
      }
      if (peek(end) == 'e' || peek(end) == 'E') {
        const size_t digits = end + (peek(end + 1) == '+' || peek(end + 1) == '-' ? 2 : 1);
        if (is_ascii_digit(peek(digits))) {
          real = true;
          end = skip_digits(digits);
        }
      }
    }
    if (!real && source_[begin] == '0') end = integer_after_zero(begin);
    pos_ = end;
    std::string text = source_.substr(begin, end - begin);
    std::erase(text, '_');
    add(real ? TokenKind::kFloat : TokenKind::kInteger, std::move(text), begin);
  }

  // 0x1f, 0o17, 0b101, or a run of zeros.
  size_t integer_after_zero(size_t begin) const {
    const auto is_digit_of = [](char c, char base) {
      const char low = static_cast<char>(c | 0x20);
      if (base == 'x') return is_ascii_digit(c) || (low >= 'a' && low <= 'f');
      return c >= '0' && c <= (base == 'b' ? '1' : '7');
    };
    const char base = static_cast<char>(peek(begin + 1) | 0x20);
    if (base == 'x' || base == 'o' || base == 'b') {
      size_t end = begin + 2;
      while (is_digit_of(peek(end), base) || (peek(end) == '_' && is_digit_of(peek(end + 1), base))) ++end;
      if (end > begin + 2) return end;
    }
    size_t end = begin + 1;
    while (peek(end) == '0' || (peek(end) == '_' && peek(end + 1) == '0')) ++end;
    return end;
  }

  Status take_operator(std::string& open) {
    static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view kOne = "+-/*%~[](){}><=.:|,;";
    for (std::string_view two : kTwo) {
      if (at(two, pos_)) {
        add(TokenKind::kOperator, std::string(two), pos_);
        pos_ += 2;
        return ok_status();
      }
    }
    const char c = source_[pos_];
    if (kOne.find(c) == std::string_view::npos) {
      size_t next = pos_;
      next_code_point(source_, next);
      return fail(fmt::format("unexpected char '{}'", source_.substr(pos_, next - pos_)), pos_);
    }
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : static_cast<char>(c + 2);
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) return fail(fmt::format("unexpected '{}'", c), pos_);
      if (open.back() != c) return fail(fmt::format("unexpected '{}', expected '{}'", c, open.back()), pos_);
      open.pop_back();
    }
    add(TokenKind::kOperator, std::string(1, c), pos_);
    ++pos_;
    return ok_status();
  }

  Status take_string(char quote) {
    const size_t begin = pos_;
    size_t end = begin + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return fail(fmt::format("unexpected char '{}'", quote), begin);
    pos_ = begin + 1;
    std::string text;
    while (pos_ < end) {
      if (source_[pos_] == '\\') {
        DECANT_RETURN_IF_ERROR(take_escape(text, end));
      } else {
        text += source_[pos_++];
      }
    }
    add(TokenKind::kString, std::move(text), begin);
    pos_ = end + 1;
    return ok_status();
  }

  // Exactly `n` hexadecimal digits.
  Result<char32_t> hex_digits(size_t offset, size_t n, size_t end) {
    char32_t c = 0;
    for (size_t i = 0; i < n; ++i) {
      const char d = offset + i < end ? source_[offset + i] : '\0';
      const char low = static_cast<char>(d | 0x20);
      if (is_ascii_digit(d)) {
        c = c * 16 + static_cast<char32_t>(d - '0');
      } else if (low >= 'a' && low <= 'f') {
        c = c * 16 + static_cast<char32_t>(low - 'a' + 10);
      } else {
        return fail("truncated escape in a string", offset);
      }
    }
    return c;
  }

  Status take_escape(std::string& out, size_t end) {
    const char c = source_[pos_ + 1];
    static constexpr std::string_view kFrom = "\\'\"abfnrtv";
    static constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t i = kFrom.find(c); i != std::string_view::npos) {
      out += kTo[i];
      pos_ += 2;
    } else if (c == '\n') {
      pos_ += 2;
    } else if (c >= '0' && c <= '7') {
      char32_t value = 0;
      size_t p = pos_ + 1;
      for (; p < pos_ + 4 && p < end && source_[p] >= '0' && source_[p] <= '7'; ++p) {
        value = value * 8 + static_cast<char32_t>(source_[p] - '0');
      }
      append_utf8(out, value);
      pos_ = p;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t n = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      DECANT_ASSIGN(char32_t value, hex_digits(pos_ + 2, n, end));
      pos_ += 2 + n;
      if (value >= 0xD800 && value < 0xDC00 && at("\\u", pos_)) {
        DECANT_ASSIGN(const char32_t low, hex_digits(pos_ + 2, 4, end));
        if (low >= 0xDC00 && low < 0xE000) {
          value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
          pos_ += 6;
        }
      }
      append_utf8(out, value);
    } else {
      out += '\\';
      ++pos_;
    }
    return ok_status();
  }

  std::string source_;
  size_t counted_ = 0;
  Position counted_at_{1, 1};
  std::vector<Token> tokens_;
  size_t pos_ = 0;
  bool line_starting_ = true;
  Position error_at_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source, Position& error_at) {
  Lexer lexer(source);
  auto tokens = lexer.run();
  error_at = lexer.error_at();
  return tokens;
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kText:
      return "template data / text";
    case TokenKind::kBlockBegin:
      return "begin of statement block";
    case TokenKind::kBlockEnd:
      return "end of statement block";
    case TokenKind::kPrintBegin:
      return "begin of print statement";
    case TokenKind::kPrintEnd:
      return "end of print statement";
    case TokenKind::kEnd:
      return "end of template";
    case TokenKind::kString:
      return "string";
    case TokenKind::kInteger:
      return "integer";
    case TokenKind::kFloat:
      return "float";
    default:
      return token.text;
  }
}

}  // namespace decant::text
