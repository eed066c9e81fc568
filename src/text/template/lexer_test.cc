#include "text/template/lexer.h"

#include <gtest/gtest.h>

#include <string>

namespace decant::text {
namespace {

// Tokens as "text" and <name>, one after another.
std::string tokens(std::string_view source) {
  Position at;
  const auto result = tokenize(source, at);
  if (!result.ok()) return "error";
  std::string out;
  for (const Token& t : *result) {
    if (t.kind == TokenKind::kText) out += "[" + t.text + "]";
    if (t.kind == TokenKind::kName || t.kind == TokenKind::kOperator) out += " " + t.text;
    if (t.kind == TokenKind::kString) out += " '" + t.text + "'";
    if (t.kind == TokenKind::kInteger) out += " i" + t.text;
    if (t.kind == TokenKind::kFloat) out += " f" + t.text;
  }
  return out;
}

TEST(Lexer, TrimsAroundBlocksAsTransformersDoes) {
  EXPECT_EQ(tokens("a\n  {% if x %}\nb\n"), "[a\n] if x[b]");
  EXPECT_EQ(tokens("a  {% if x %} \nb"), "[a  ] if x[ \nb]");
  EXPECT_EQ(tokens("  {%+ if x +%}\nb"), "[  ] if x[\nb]");
  EXPECT_EQ(tokens("a \n {%- if x -%} \n b"), "[a] if x[b]");
  EXPECT_EQ(tokens("  {{ x }}\nb"), "[  ] x[\nb]");
  EXPECT_EQ(tokens("a {{- x -}} b"), "[a] x[b]");
  EXPECT_EQ(tokens("a\n  {# note #}\nb"), "[a\n][b]");
}

TEST(Lexer, RawBlocksAreText) {
  EXPECT_EQ(tokens("{% raw %}{{ x }}{% endraw %}y"), "[{{ x }}][y]");
  EXPECT_EQ(tokens("{%- raw -%} {% if %} {%- endraw -%} y"), "[{% if %}][y]");
}

TEST(Lexer, NumbersStringsAndBrackets) {
  EXPECT_EQ(tokens("{{ 1.5e3 + x.0.1 // 1_000 }}"), " f1.5e3 + x . i0 . i1 // i1000");
  EXPECT_EQ(tokens(R"({{ 'a\n\x41\u00e9\'' "b\q" }})"), " 'a\nAé'' 'b\\q'");
  EXPECT_EQ(tokens("{{ {'a': {'b': 1}} }}"), " { 'a' : { 'b' : i1 } }");
}

TEST(Lexer, LineBreaksBecomeOneKind) { EXPECT_EQ(tokens("a\r\nb\rc\n"), "[a\nb\nc]"); }

TEST(Lexer, ErrorsHaveAPlace) {
  Position at;
  EXPECT_FALSE(tokenize("é\né {{ a ? }}", at).ok());
  EXPECT_EQ(at.line, 2u);
  EXPECT_EQ(at.column, 8u);
  for (const char* bad : {"{# x", "{% raw %} x", "{{ 'x }}", "{{ (x] }}", "{{ ) }}"})
    EXPECT_EQ(tokens(bad), "error") << bad;
}

}  // namespace
}  // namespace decant::text
