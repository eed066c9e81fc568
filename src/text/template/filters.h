#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "text/template/callable.h"
#include "text/template/value.h"

namespace decant::text {

/// input | name(args...).
using FilterFunction = Result<Value> (*)(Interpreter&, const Value& input, CallArgs args);
using FilterEntry = std::pair<std::string_view, FilterFunction>;

/// Null when there is no such filter. Jinja's filters that only make web pages (urlize, xmlattr,
/// filesizeformat, pprint, random, wordwrap) are not among them.
const FilterFunction* find_filter(std::string_view name);

/// The tables find_filter looks through, one a file.
std::span<const FilterEntry> text_filters();
std::span<const FilterEntry> sequence_filters();
std::span<const FilterEntry> selection_filters();
std::span<const FilterEntry> conversion_filters();

/// Follows "a.b.0" into a value, items before attributes; a number is an index.
Result<Value> follow_path(Interpreter& interpreter, const Value& v, const Value& path);

}  // namespace decant::text
