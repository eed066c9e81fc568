#include "text/template/filters.h"

#include <algorithm>

#include "text/template/members.h"
#include "text/template/split.h"

namespace decant::text {

const FilterFunction* find_filter(std::string_view name) {
  for (const auto table : {text_filters(), sequence_filters(), selection_filters(), conversion_filters()}) {
    for (const FilterEntry& entry : table) {
      if (entry.first == name) return &entry.second;
    }
  }
  return nullptr;
}

Result<Value> follow_path(Interpreter& interpreter, const Value& v, const Value& path) {
  if (!path.is_string()) return get_item(interpreter, v, path);
  Value current = v;
  for (std::string_view part : split_text(path.as_string(), ".", -1)) {
    const bool number = !part.empty() && part.size() < 18 &&
                        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    const Value key = number ? Value::big_integer(part) : Value::string(std::string(part));
    DECANT_ASSIGN(current, get_item(interpreter, current, key));
  }
  return current;
}

}  // namespace decant::text
