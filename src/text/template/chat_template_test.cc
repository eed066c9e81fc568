#include "text/template/chat_template.h"

#include <gtest/gtest.h>

#include <string>

#include "text/template/clock.h"

namespace decant::text {
namespace {

// The rendered text, or "Kind: message".
std::string render(const std::string& source, const std::string& json = "{}",
                   const RenderOptions& options = {}) {
  TemplateError error;
  const auto t = ChatTemplate::parse(source, "test", &error);
  if (!t.ok()) return error.kind + ": " + error.message;
  const auto r = t->render(*parse_json(json), options, &error);
  return r.ok() ? r->text : error.kind + ": " + error.message;
}

TEST(ChatTemplate, ArithmeticAndPrecedence) {
  EXPECT_EQ(render("{{ 1 + 2 * 3 ** 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 1 ~ 2 * 3 }}"),
            "19 -4 2 3.5 16");
  EXPECT_EQ(render("{{ 1 < 2 < 3 }} {{ not 1 in [1] }} {{ 'a' 'b' }} {{ 2 if false }}|"), "True False ab |");
  EXPECT_EQ(render("{{ 'ab' * 2 }} {{ [1] + [2] }} {{ (1,) + (2,) }}"), "abab [1, 2] (1, 2)");
  EXPECT_EQ(render("{{ 9223372036854775807 + 1 }}").substr(0, 13), "OverflowError");
}

TEST(ChatTemplate, PrintsAsPython) {
  EXPECT_EQ(
      render("{{ x }}", R"({"x": [1, 2.0, 1e-7, 1e16, true, null, "a'b", {"k": 12345678901234567890}]})"),
      "[1, 2.0, 1e-07, 1e+16, True, None, \"a'b\", {'k': 12345678901234567890}]");
  EXPECT_EQ(render("{{ ['\\n\\x07 é'] }}{{ nothing }}{{ none }}{{ () }}{{ (1,) }}"),
            "['\\n\\x07 é']None()(1,)");
}

TEST(ChatTemplate, JsonAsPython) {
  EXPECT_EQ(render("{{ x | tojson }}", R"({"x": {"b": "<é>\"\u0007", "a": [1.0, null, []]}})"),
            "{\"b\": \"<é>\\\"\\u0007\", \"a\": [1.0, null, []]}");
  EXPECT_EQ(render("{{ x | tojson(indent=2) }}", R"({"x": {"b": [1], "a": {}}})"),
            "{\n  \"b\": [\n    1\n  ],\n  \"a\": {}\n}");
  EXPECT_EQ(render("{{ x | tojson(ensure_ascii=true, separators=(',', ':'), sort_keys=true) }}",
                   R"({"x": {"b": "😀", "a": 1}})"),
            "{\"a\":1,\"b\":\"\\ud83d\\ude00\"}");
  EXPECT_EQ(render("{{ nothing | tojson }}"), "TypeError: Object of type Undefined is not JSON serializable");
}

TEST(ChatTemplate, LoopsAndScopes) {
  EXPECT_EQ(render("{% set x = 1 %}{% for i in [1, 2] %}{% set x = i %}{% endfor %}{{ x }}"), "1");
  EXPECT_EQ(render("{% set ns = namespace(x=0) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor "
                   "%}{{ ns.x }}"),
            "3");
  EXPECT_EQ(render("{% for a, b in {'k': 1}.items() %}{{ a }}{{ b }}{% else %}none{% endfor %}"), "k1");
  EXPECT_EQ(render("{% for i in [] %}x{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(render("{% for i in range(9) if i is odd %}{% if i == 7 %}{% break %}{% endif %}{% if i == 3 %}"
                   "{% continue %}{% endif %}{{ i }}/{{ loop.index }}/{{ loop.last }} {% endfor %}"),
            "1/1/False 5/3/False ");
  EXPECT_EQ(
      render("{% for i in 'abc' %}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.revindex }} {% endfor %}"),
      "b3 ac2 b1 ");
  EXPECT_EQ(render("{% for n in t recursive %}{{ n.v }}{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}",
                   R"({"t": [{"v": 1, "c": [{"v": 2}, {"v": 3, "c": [{"v": 4}]}]}]})"),
            "1(23(4))");
}

TEST(ChatTemplate, MacrosAndCallBlocks) {
  EXPECT_EQ(render("{% macro m(a, b='x') %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, c=2) "
                   "}}{{ m(1, 2, 3) }}"),
            "1x(){'c': 2}12(3,){}");
  EXPECT_EQ(
      render("{% macro box() %}[{{ caller('in') }}]{% endmacro %}{% call(x) box() %}<{{ x }}>{% endcall %}"),
      "[<in>]");
  EXPECT_EQ(render("{% macro m() %}{% endmacro %}{{ m(1) }}"),
            "TypeError: macro 'm' takes not more than 0 argument(s)");
  EXPECT_EQ(render("{% set t %}a{% endset %}{% filter upper %}{{ t }}{% endfilter %}{% set u | upper %}b{% "
                   "endset %}{{ u }}"),
            "AB");
}

TEST(ChatTemplate, Slices) {
  EXPECT_EQ(render("{{ 'héllo'[1:3] }} {{ x[::-1] }} {{ x[-2:] }} {{ x[1:] }} {{ 'abc'[::-1] }} {{ x[5:] }}",
                   R"({"x": [1, 2, 3]})"),
            "él [3, 2, 1] [2, 3] [2, 3] cba []");
}

TEST(ChatTemplate, StringMethodsAndFilters) {
  EXPECT_EQ(
      render(
          "{{ ' a b '.strip().split() }} {{ 'x-y'.replace('-', '+').upper() }} {{ 'a,b,c'.rsplit(',', 1) }}"),
      "['a', 'b'] X+Y ['a,b', 'c']");
  EXPECT_EQ(
      render("{{ '%s=%05.1f' % ('a', 2.25) }} {{ '{0}-{k:>3}'.format(1, k='z') }} {{ '%d' | format(3) }}"),
      "a=002.2 1-  z 3");
  EXPECT_EQ(render("{{ [3, 1, 2] | sort | join(',') }} {{ x | selectattr('a', 'equalto', 1) | "
                   "map(attribute='b') | list }}",
                   R"({"x": [{"a": 1, "b": "p"}, {"a": 2, "b": "q"}]})"),
            "1,2,3 ['p']");
  EXPECT_EQ(render("{{ 'a\nb' | indent(2, first=true) }} {{ 'hello world' | title }} {{ '3' | int + 1 }} {{ "
                   "x | default('d') }}"),
            "  a\n  b Hello World 4 d");
  EXPECT_EQ(render("{{ ('<b>' | safe) + '<i>' }} {{ '<' | e }}"), "<b>&lt;i&gt; &lt;");
}

TEST(ChatTemplate, TheSandboxHolds) {
  EXPECT_EQ(render("{{ [1].append(2) }}"),
            "SecurityError: access to attribute 'append' of 'list' object is unsafe.");
  EXPECT_EQ(render("{{ {}.update }}|{{ ''.__class__ }}|{{ x.pop is defined }}", R"({"x": {}})"), "||False");
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns._x = 1 %}").substr(0, 13), "SecurityError");
}

TEST(ChatTemplate, UndefinedIsStrictWhereItMatters) {
  EXPECT_EQ(render("{{ x.y }}"), "UndefinedError: 'x' is undefined");
  EXPECT_EQ(render("{{ m.a.b }}", R"({"m": {}})"), "UndefinedError: 'dict object' has no attribute 'a'");
  EXPECT_EQ(render("{{ m[0] is defined }}{{ x | length }}{% for i in x %}{% endfor %}", R"({"m": []})"),
            "False0");
  EXPECT_EQ(render("{{ 'a' + 1 }}"), "TypeError: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(render("{{ raise_exception('no: ' ~ 1) }}"), "TemplateError: no: 1");
}

TEST(ChatTemplate, UnknownSyntaxNamesItsPlace) {
  TemplateError error;
  const auto t = ChatTemplate::parse("a\n{% if x %}\n  é{% frobnicate %}", "chat.jinja", &error);
  ASSERT_FALSE(t.ok());
  EXPECT_EQ(error.at.line, 3u);
  EXPECT_EQ(error.at.column, 7u);
  EXPECT_EQ(t.status().message().substr(0, 15), "chat.jinja:3:7:");
  EXPECT_EQ(render("{{ x | nofilter }}"), "TemplateSyntaxError: No filter named 'nofilter'.");
  EXPECT_EQ(render("{% if false %}{{ x | nofilter }}{% endif %}ok"), "ok");
  EXPECT_EQ(render("{{ (x | nofilter) if false else 'ok' }}"), "ok");
  EXPECT_EQ(render("{% if true %}{{ x | nofilter }}{% endif %}"),
            "TemplateRuntimeError: No filter named 'nofilter' found.");
}

TEST(ChatTemplate, RuntimeErrorsNameTheirPlace) {
  const auto t = ChatTemplate::parse("line\n {{ 1 + none }}", "t");
  TemplateError error;
  ASSERT_FALSE(t->render(Value::dict({}), {}, &error).ok());
  EXPECT_EQ(error.at.line, 2u);
  EXPECT_EQ(error.at.column, 7u);
}

TEST(ChatTemplate, GenerationSpansCountCodePoints) {
  const auto t = ChatTemplate::parse(
      "{% for m in messages %}é{{ m }}: {% generation %}😀{{ m }}{% endgeneration %}\n{% endfor %}", "t");
  ASSERT_TRUE(t.ok());
  const auto r = t->render(*parse_json(R"({"messages": ["a", "bc"]})"), {});
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->text, "éa: 😀aébc: 😀bc");
  ASSERT_EQ(r->generation_spans.size(), 2u);
  EXPECT_EQ(r->generation_spans[0], (std::pair<size_t, size_t>(4, 6)));
  EXPECT_EQ(r->generation_spans[1], (std::pair<size_t, size_t>(11, 14)));
}

TEST(ChatTemplate, TheClockCanBeFixed) {
  RenderOptions options;
  options.now = *parse_civil_time("2026-01-05T09:03:07");
  EXPECT_EQ(render("{{ strftime_now('%d %b %Y, %A %-d/%-m %H:%M:%S %I%p %j %U %W %V %%') }}", "{}", options),
            "05 Jan 2026, Monday 5/1 09:03:07 09AM 005 01 01 02 %");
  EXPECT_FALSE(parse_civil_time("2026-02-30").ok());
}

TEST(ChatTemplate, BudgetsEndHostileTemplates) {
  const auto is_limit = [](const std::string& result) {
    return result.starts_with("LimitError") || result.starts_with("OverflowError");
  };
  EXPECT_TRUE(
      is_limit(render("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}")));
  EXPECT_TRUE(is_limit(render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}")));
  EXPECT_TRUE(is_limit(render("{{ 'x' * 100000000 }}")));
  EXPECT_TRUE(is_limit(render("{{ range(100001) }}")));
  EXPECT_TRUE(is_limit(render("{{ [1] * 100001 }}")));
  EXPECT_TRUE(
      is_limit(render("{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] "
                      "%}{% endfor %}{{ ns.x }}")));
  EXPECT_TRUE(is_limit(render(
      "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}")));
  EXPECT_TRUE(is_limit(render(
      "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}")));
  EXPECT_TRUE(render("{{ " + std::string(100000, '(') + " }}").starts_with("TemplateSyntaxError"));
  std::string sum = "{{ 1";
  for (int i = 0; i < 5000; ++i) sum += "+1";
  EXPECT_TRUE(render(sum + " }}").starts_with("TemplateSyntaxError"));
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns.me.me is defined }}"), "True");
}

TEST(RenderChat, ReasoningGoesByEachName) {
  const auto t =
      ChatTemplate::parse("{{ messages[0].reasoning_content }}{{ messages[0].thinking }}{{ tools }}", "t");
  const auto r =
      t->render_chat(*parse_json(R"({"messages": [{"role": "assistant", "reasoning": "r"}]})"), {});
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->text, "rrNone");
}

TEST(RenderChat, ContinuesTheFinalMessage) {
  const std::string chat =
      R"({"continue_final_message": true, "messages": [{"role": "assistant", "content": "Why did "}]})";
  const auto kept = ChatTemplate::parse("{% for m in messages %}<a>{{ m.content }}<e>{% endfor %}", "t");
  EXPECT_EQ(kept->render_chat(*parse_json(chat), {})->text, "<a>Why did ");
  const auto trimmed =
      ChatTemplate::parse("{% for m in messages %}<a>{{ m.content | trim }}<e>{% endfor %}", "t");
  EXPECT_EQ(trimmed->render_chat(*parse_json(chat), {})->text, "<a>Why did");
  const auto dropped = ChatTemplate::parse("{% for m in messages %}{{ m.content[:2] }}{% endfor %}", "t");
  EXPECT_FALSE(dropped->render_chat(*parse_json(chat), {}).ok());
}

}  // namespace
}  // namespace decant::text
