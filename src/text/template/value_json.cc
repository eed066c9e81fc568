#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "text/template/errors.h"
#include "text/template/value.h"

namespace decant::text {
namespace {

using Json = nlohmann::json;

// Builds values from parser events, so that the order of keys and the digits of long integers survive.
class Builder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(Value::none()); }
  bool boolean(bool v) override { return add(Value::boolean(v)); }
  bool number_integer(number_integer_t v) override { return add(Value::integer(v)); }
  bool number_unsigned(number_unsigned_t v) override {
    return v <= INT64_MAX ? add(Value::integer(static_cast<int64_t>(v)))
                          : add(Value::big_integer(std::to_string(v)));
  }
  bool number_float(number_float_t v, const string_t& digits) override {
    const bool integer = digits.find_first_of(".eE") == string_t::npos;
    return add(integer ? Value::big_integer(digits) : Value::real(v));
  }
  bool string(string_t& v) override { return add(Value::string(std::move(v))); }
  bool binary(binary_t&) override { return fail("binary data"); }
  bool start_object(size_t) override { return open(true); }
  bool start_array(size_t) override { return open(false); }
  bool key(string_t& name) override {
    levels_.back().key = Value::string(std::move(name));
    return true;
  }
  bool end_object() override {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    return add(Value::dict(std::move(level.entries)));
  }
  bool end_array() override {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    return add(Value::list(std::move(level.items)));
  }
  bool parse_error(size_t offset, const std::string&, const Json::exception&) override {
    return fail(fmt::format("not JSON at byte {}", offset));
  }

  Result<Value> take() && {
    if (!error_.empty()) return value_error(error_);
    return std::move(root_);
  }

 private:
  struct Level {
    bool object;
    Value key;
    std::vector<Value> items;
    std::vector<std::pair<Value, Value>> entries;
  };

  bool fail(std::string why) {
    error_ = std::move(why);
    return false;
  }
  bool open(bool object) {
    if (levels_.size() + 1 >= kMaxValueDepth) return fail("JSON nested too deep");
    levels_.push_back({object, {}, {}, {}});
    return true;
  }
  bool add(Value v) {
    if (levels_.empty()) {
      root_ = std::move(v);
    } else if (levels_.back().object) {
      levels_.back().entries.emplace_back(std::move(levels_.back().key), std::move(v));
    } else {
      levels_.back().items.push_back(std::move(v));
    }
    return true;
  }

  Value root_;
  std::vector<Level> levels_;
  std::string error_;
};

}  // namespace

Result<Value> parse_json(std::string_view text) {
  Builder builder;
  try {
    if (!Json::sax_parse(text.begin(), text.end(), &builder)) return std::move(builder).take();
  } catch (const std::exception& e) {
    return value_error(e.what());
  }
  return std::move(builder).take();
}

}  // namespace decant::text
