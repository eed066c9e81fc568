#include "ir/dim.h"

#include <gtest/gtest.h>

namespace decant::ir {
namespace {

const Dim b = Dim::symbol("b"), p = Dim::symbol("p"), s = Dim::symbol("s");

int64_t value(const Dim& d) {
  auto r = d.evaluate([](const std::string& name) -> std::optional<int64_t> {
    if (name == "b") return 2;
    if (name == "p") return 5;
    if (name == "s") return 3;
    return std::nullopt;
  });
  EXPECT_TRUE(r.ok()) << r.status().to_string();
  return r.ok() ? *r : -1;
}

TEST(Dim, EqualExpressionsCompareEqual) {
  EXPECT_EQ(p + s, s + p);
  EXPECT_EQ((p + s) * b, p * b + b * s);
  EXPECT_EQ(p + s - p, s);
  EXPECT_EQ(p - p, Dim(0));
  EXPECT_NE(p + s, p + s + Dim(1));
}

TEST(Dim, EvaluatesAndPrints) {
  EXPECT_EQ(value(p + s * Dim(4) - Dim(1)), 16);
  EXPECT_EQ(value(floor_div(p + s, Dim(3))), 2);
  EXPECT_EQ(value(mod(p + s, Dim(3))), 2);
  EXPECT_EQ(value(max(p, s)), 5);
  EXPECT_EQ(value(min(p, s)), 3);
  EXPECT_EQ((p + s).to_string(), "p + s");
  EXPECT_EQ((Dim(2) * p - Dim(3)).to_string(), "2*p - 3");
}

TEST(Dim, ParsesWhatItPrints) {
  for (const Dim& d : {p + s, Dim(2) * p - Dim(3), b * s, Dim(17), p})
    EXPECT_EQ(Dim::parse(d.to_string()), d) << d.to_string();
  EXPECT_EQ(Dim::parse("past_sequence_length + sequence_length"),
            Dim::symbol("past_sequence_length") + Dim::symbol("sequence_length"));
  EXPECT_EQ(Dim::parse("2").constant(), 2);
  EXPECT_EQ(Dim::parse("encoder / 2").symbol_name(), "encoder / 2");
}

TEST(Dim, DividesExactly) {
  EXPECT_EQ(*Dim::divide_exact(Dim(12) * s, Dim(4)), Dim(3) * s);
  EXPECT_EQ(*Dim::divide_exact(b * s * Dim(64), b * s), Dim(64));
  EXPECT_EQ(*Dim::divide_exact(b * p + b * s, b), p + s);
  EXPECT_FALSE(Dim::divide_exact(p + s, p).has_value());
  EXPECT_FALSE(Dim::divide_exact(p, Dim(2)).has_value());
  EXPECT_FALSE(Dim::divide_exact(p, Dim(0)).has_value());
}

TEST(Dim, OverflowIsAnErrorNotAWrap) {
  const Dim huge = Dim(INT64_MAX) * Dim(2);
  EXPECT_FALSE(huge.is_constant());
  EXPECT_FALSE(huge.evaluate([](const std::string&) { return std::nullopt; }).ok());
  const Dim product = Dim::symbol("x") * Dim(INT64_MAX);
  EXPECT_FALSE(product.evaluate([](const std::string&) { return std::optional<int64_t>(3); }).ok());
  EXPECT_FALSE(
      floor_div(p, Dim(0)).evaluate([](const std::string&) { return std::optional<int64_t>(1); }).ok());
}

TEST(Dim, Substitutes) {
  const Dim d = (p + s).substitute(
      [](const std::string& n) { return n == "p" ? std::optional(Dim(7)) : std::nullopt; });
  EXPECT_EQ(d, s + Dim(7));
}

}  // namespace
}  // namespace decant::ir
