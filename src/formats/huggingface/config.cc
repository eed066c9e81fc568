#include "formats/huggingface/config.h"

#include <utility>

#include "formats/huggingface/config_impl.h"
#include "formats/huggingface/json.h"

namespace decant::huggingface {

const nlohmann::json* ModelConfig::Impl::find(std::string_view key) const { return find_value(root, key); }

Status ModelConfig::Impl::wrong(std::string_view key, const nlohmann::json& value,
                                std::string_view wanted) const {
  return invalid_model(source + ": \"" + std::string(key) + "\" is " + describe(value) + ", " +
                       std::string(wanted) + " was expected");
}

Status ModelConfig::Impl::missing(std::string_view key) const {
  return not_found(source + ": there is no \"" + std::string(key) + "\"");
}

namespace {

template <typename Impl, typename Convert>
auto read(const Impl& impl, std::string_view key, Convert convert, std::string_view wanted)
    -> Result<typename decltype(convert(impl.root))::value_type> {
  const nlohmann::json* value = impl.find(key);
  if (value == nullptr) return impl.missing(key);
  auto converted = convert(*value);
  if (!converted) return impl.wrong(key, *value, wanted);
  return *std::move(converted);
}

template <typename Impl, typename Convert>
auto read_list(const Impl& impl, std::string_view key, Convert convert, std::string_view wanted)
    -> Result<std::vector<typename decltype(convert(impl.root))::value_type>> {
  const nlohmann::json* value = impl.find(key);
  if (value == nullptr) return impl.missing(key);
  if (!value->is_array()) return impl.wrong(key, *value, wanted);
  std::vector<typename decltype(convert(impl.root))::value_type> items;
  for (const nlohmann::json& item : *value) {
    auto converted = convert(item);
    if (!converted)
      return impl.wrong(std::string(key) + "[" + std::to_string(items.size()) + "]", item, wanted);
    items.push_back(*std::move(converted));
  }
  return items;
}

}  // namespace

Result<ModelConfig> ModelConfig::parse(std::string json, std::string source) {
  auto impl = std::make_shared<Impl>();
  DECANT_ASSIGN(impl->root, parse_object(json, source));
  impl->text = std::move(json);
  impl->source = std::move(source);
  return ModelConfig(std::move(impl));
}

Result<ModelConfig> ModelConfig::load(const std::string& folder) {
  DECANT_ASSIGN(std::string text, read_beneath(folder, "config.json"));
  return parse(std::move(text), folder + (folder.ends_with('/') ? "" : "/") + "config.json");
}

const std::string& ModelConfig::json() const { return impl_->text; }
const std::string& ModelConfig::source() const { return impl_->source; }
bool ModelConfig::has(std::string_view key) const { return impl_->find(key) != nullptr; }

std::vector<std::string> ModelConfig::keys(std::string_view key) const {
  const nlohmann::json* value = key.empty() ? &impl_->root : impl_->find(key);
  std::vector<std::string> names;
  if (value == nullptr || !value->is_object()) return names;
  for (const auto& item : value->items()) names.push_back(item.key());
  return names;
}

Result<int64_t> ModelConfig::get_int(std::string_view key) const {
  return read(*impl_, key, as_int, "an integer");
}
Result<int64_t> ModelConfig::get_int(std::string_view key, int64_t fallback) const {
  return has(key) ? get_int(key) : fallback;
}
Result<double> ModelConfig::get_double(std::string_view key) const {
  return read(*impl_, key, as_double, "a number");
}
Result<double> ModelConfig::get_double(std::string_view key, double fallback) const {
  return has(key) ? get_double(key) : fallback;
}
Result<bool> ModelConfig::get_bool(std::string_view key) const {
  return read(*impl_, key, as_bool, "true or false");
}
Result<bool> ModelConfig::get_bool(std::string_view key, bool fallback) const {
  return has(key) ? get_bool(key) : fallback;
}
Result<std::string> ModelConfig::get_string(std::string_view key) const {
  return read(*impl_, key, as_string, "a string");
}
Result<std::string> ModelConfig::get_string(std::string_view key, std::string fallback) const {
  if (has(key)) return get_string(key);
  return fallback;
}
Result<std::vector<int64_t>> ModelConfig::get_ints(std::string_view key) const {
  return read_list(*impl_, key, as_int, "a list of integers");
}
Result<std::vector<double>> ModelConfig::get_doubles(std::string_view key) const {
  return read_list(*impl_, key, as_double, "a list of numbers");
}
Result<std::vector<std::string>> ModelConfig::get_strings(std::string_view key) const {
  return read_list(*impl_, key, as_string, "a list of strings");
}

std::vector<std::string> ModelConfig::architectures() const {
  auto names = get_strings("architectures");
  if (!names.ok()) return {};
  return *std::move(names);
}

Result<std::optional<DType>> ModelConfig::dtype() const {
  const std::string_view key = has("dtype") ? "dtype" : "torch_dtype";
  if (!has(key)) return std::optional<DType>();
  DECANT_ASSIGN(std::string name, get_string(key));
  if (name == "auto") return std::optional<DType>();
  if (name.starts_with("torch.")) name = name.substr(6);
  const auto dtype = dtype_from_string(name);
  if (!dtype)
    return unsupported(source() + ": \"" + std::string(key) + "\" is \"" + name + "\", an unknown dtype");
  return std::optional<DType>(dtype);
}

}  // namespace decant::huggingface
