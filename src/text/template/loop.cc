#include "text/template/loop.h"

#include <algorithm>
#include <memory>

#include "text/template/errors.h"
#include "text/template/interpreter.h"

namespace decant::text {
namespace {

Result<size_t> full_length(Interpreter& interpreter, LoopState& loop) {
  DECANT_ASSIGN(const bool unused, loop.reach(interpreter, SIZE_MAX));
  static_cast<void>(unused);
  return loop.accepted.size();
}

Value integer(size_t n) { return Value::integer(static_cast<int64_t>(n)); }

Result<Value> cycle(LoopState& loop, const CallArgs& args) {
  if (args.positional.empty()) return type_error("no items for cycling given");
  return args.positional[loop.index0 % args.positional.size()];
}

Result<Value> changed(LoopState& loop, CallArgs args) {
  const bool same = loop.changed_called && std::equal(loop.last_changed.begin(), loop.last_changed.end(),
                                                      args.positional.begin(), args.positional.end(), equal);
  loop.changed_called = true;
  loop.last_changed = std::move(args.positional);
  return Value::boolean(!same);
}

}  // namespace

Result<bool> LoopState::reach(Interpreter& interpreter, size_t i) {
  while (accepted.size() <= i && next_raw < items.size()) {
    const Value& item = items[next_raw++];
    bool accept = true;
    if (statement->condition != nullptr) {
      DECANT_ASSIGN(accept, interpreter.loop_accepts(*statement, outer, item));
    }
    if (accept) accepted.push_back(item);
  }
  return accepted.size() > i;
}

Result<std::optional<Value>> loop_attribute(Interpreter& interpreter, const Value& value,
                                            std::string_view name) {
  const std::shared_ptr<LoopState>& state = value.as_loop();
  LoopState& loop = *state;
  using Found = std::optional<Value>;
  if (name == "index0") return Found(integer(loop.index0));
  if (name == "index") return Found(integer(loop.index0 + 1));
  if (name == "first") return Found(Value::boolean(loop.index0 == 0));
  if (name == "depth0") return Found(integer(loop.depth0));
  if (name == "depth") return Found(integer(loop.depth0 + 1));
  if (name == "last" || name == "nextitem") {
    DECANT_ASSIGN(const bool more, loop.reach(interpreter, loop.index0 + 1));
    if (name == "last") return Found(Value::boolean(!more));
    return Found(more ? loop.accepted[loop.index0 + 1] : Value::undefined("there is no next item"));
  }
  if (name == "previtem") {
    return Found(loop.index0 > 0 ? loop.accepted[loop.index0 - 1]
                                 : Value::undefined("there is no previous item"));
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    DECANT_ASSIGN(const size_t length, full_length(interpreter, loop));
    if (name == "length") return Found(integer(length));
    return Found(integer(length - loop.index0 - (name == "revindex0" ? 1 : 0)));
  }
  if (name == "cycle") {
    return Found(make_function(name, [state](Interpreter&, CallArgs args) { return cycle(*state, args); }));
  }
  if (name == "changed") {
    return Found(make_function(
        name, [state](Interpreter&, CallArgs args) { return changed(*state, std::move(args)); }));
  }
  return Found();
}

}  // namespace decant::text
