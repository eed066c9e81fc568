#include "formats/onnx/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/file_writer.h"
#include "formats/onnx/attribute.h"
#include "formats/onnx/lower/needed_opset.h"
#include "ir/ops/elements.h"

namespace decant::onnx {
namespace {

using protozero::pbf_writer;

constexpr uint64_t kExternalThreshold = 1024;
constexpr uint64_t kMaxModelBytes = (uint64_t{1} << 31) - 1;
constexpr uint64_t kBufferBytes = uint64_t{16} << 20;
constexpr uint64_t kPage = 4096;

/// Feeds the rows of a constant to `sink` in buffers of at most kBufferBytes; memory in place goes there
/// unbuffered.
template <typename Sink>
Status stream_rows(const ir::Constant& constant, const Sink& sink) {
  if (constant.bytes() == 0) return ok_status();
  if (constant.in_memory()) {
    const ir::Tensor t = constant.tensor();
    return sink(std::span(t.data_as<std::byte>(), t.bytes()));
  }
  const auto rows = constant.rows();
  const uint64_t row_bytes = constant.bytes() / static_cast<uint64_t>(rows);
  const auto step =
      static_cast<int64_t>(std::max<uint64_t>(1, kBufferBytes / std::max<uint64_t>(1, row_bytes)));
  std::vector<std::byte> buffer;
  for (int64_t row = 0; row < rows; row += step) {
    const int64_t end = std::min(rows, row + step);
    buffer.resize(static_cast<uint64_t>(end - row) * row_bytes);
    DECANT_RETURN_IF_ERROR(constant.read_rows(row, end, buffer));
    DECANT_RETURN_IF_ERROR(sink(buffer));
  }
  return ok_status();
}

class ModelWriter {
 public:
  ModelWriter(const ir::Graph& graph, const WriteOptions& options) : graph_(graph), options_(options) {}

  /// The whole model message; constants for the data file are in `external()` afterwards, in order.
  Result<std::string> build() {
    for (const ir::Value* v : graph_.inputs()) names_[v] = taken_name(v->name);
    collect_constants(graph_);
    plan_outputs();
    name_scope(graph_);
    DECANT_RETURN_IF_ERROR(lay_out());

    std::string out;
    pbf_writer model(out);
    model.add_int64(1, ir_version());
    if (!options_.producer_name.empty()) model.add_string(2, options_.producer_name);
    if (!options_.producer_version.empty()) model.add_string(3, options_.producer_version);
    {
      pbf_writer g(model, 7);
      DECANT_RETURN_IF_ERROR(write_graph(g, graph_, true));
    }
    domains_[""] = options_.opset;
    for (const auto& [domain, version] : domains_) {
      pbf_writer import(model, 8);
      import.add_string(1, domain);
      import.add_int64(2, version);
    }
    if (out.size() > kMaxModelBytes) {
      return invalid_argument("the model passes 2 GiB; write its weights to an external data file");
    }
    return out;
  }

  struct External {
    const ir::Constant* constant;
    uint64_t offset;
  };
  const std::vector<External>& external() const { return external_; }

 private:
  int64_t ir_version() const { return options_.opset <= 18 ? 8 : options_.opset <= 20 ? 9 : 10; }

  std::string taken_name(const std::string& hint) {
    std::string name = hint.empty() ? "value" : hint;
    for (int i = 1; !taken_.insert(name).second; ++i)
      name = fmt::format("{}_{}", hint.empty() ? "value" : hint, i);
    return name;
  }

  /// Runtimes refuse two nodes with one name; the first keeps it.
  std::string unique_node_name(const std::string& hint) {
    std::string name = hint;
    for (int& i = node_names_[hint]; !taken_nodes_.insert(name).second;)
      name = fmt::format("{}_{}", hint, ++i);
    return name;
  }

  /// Constants in use, each once, in the order of their first use.
  void collect_constants(const ir::Graph& graph) {
    auto use = [&](const ir::Value* v) {
      if (!v || !v->constant || !seen_.insert(v->constant.get()).second) return;
      constants_.push_back(v);
    };
    for (const auto& node : graph.nodes()) {
      if (!node) continue;
      for (const ir::Value* v : node->inputs()) use(v);
      for (const auto& [key, attribute] : node->attributes) {
        if (const auto* sub = std::get_if<std::shared_ptr<ir::Graph>>(&attribute)) collect_constants(**sub);
      }
    }
    for (const ir::Value* v : graph.outputs()) use(v);
  }

  /// Graph outputs keep their names. One that is a constant, an input, or was listed before is passed through
  /// an Identity, since a name may be produced only once.
  void plan_outputs() {
    std::unordered_set<const ir::Value*> listed;
    for (const ir::Value* v : graph_.outputs()) {
      const bool direct = v->producer && !v->constant && listed.insert(v).second;
      const std::string name = taken_name(v->name);
      if (direct) names_[v] = name;
      outputs_.push_back({v, name, direct});
    }
    for (const ir::Value* v : constants_) constant_names_[v->constant.get()] = taken_name(v->name);
  }

  void name_scope(const ir::Graph& graph) {
    for (const ir::Value* v : graph.inputs()) {
      if (!names_.contains(v)) names_[v] = taken_name(v->name);
    }
    for (const auto& node : graph.nodes()) {
      if (!node) continue;
      for (const ir::Value* v : node->outputs()) {
        if (v && !names_.contains(v)) names_[v] = taken_name(v->name);
      }
      for (const auto& [key, attribute] : node->attributes) {
        if (const auto* sub = std::get_if<std::shared_ptr<ir::Graph>>(&attribute)) name_scope(**sub);
      }
    }
  }

  Status lay_out() {
    if (options_.external_data_name.empty()) {
      uint64_t total = 0;
      for (const ir::Value* v : constants_) total += v->constant->bytes();
      if (total > kMaxModelBytes) {
        return invalid_argument(
            fmt::format("{} bytes of weights do not fit a model file (2 GiB); write them to an "
                        "external data file",
                        total));
      }
      return ok_status();
    }
    uint64_t at = 0;
    for (const ir::Value* v : constants_) {
      const uint64_t bytes = v->constant->bytes();
      if (bytes <= kExternalThreshold) continue;
      const uint64_t alignment = bytes >= kPage ? kPage : 64;
      at = (at + alignment - 1) / alignment * alignment;
      offsets_[v->constant.get()] = at;
      external_.push_back({v->constant.get(), at});
      at += bytes;
    }
    return ok_status();
  }

  const std::string& name_of(const ir::Value* v) const {
    if (v->constant) return constant_names_.at(v->constant.get());
    static const std::string kNone;
    auto it = names_.find(v);
    return it == names_.end() ? kNone : it->second;
  }

  void write_type(pbf_writer& info, const ir::Value& v) const { info.add_message(2, type_of(v)); }

  static std::string type_of(const ir::Value& v) {
    std::string tensor = tensor_type(v), wrapped;
    uint32_t field = 1;  // tensor_type, sequence_type (4) or optional_type (9) of TypeProto
    const auto wrap = [&](uint32_t outer) {
      std::string element;
      pbf_writer(element).add_message(field, tensor);
      wrapped.clear();
      pbf_writer(wrapped).add_message(1, element);
      tensor = wrapped;
      field = outer;
    };
    if (ir::is_sequence(v.kind)) wrap(4);
    if (v.kind == ir::ValueKind::kOptional || v.kind == ir::ValueKind::kOptionalSequence) wrap(9);
    std::string type;
    pbf_writer(type).add_message(field, tensor);
    return type;
  }

  static std::string tensor_type(const ir::Value& v) {
    std::string out;
    pbf_writer tensor(out);
    tensor.add_int32(1, static_cast<int32_t>(ir::onnx_code(v.dtype)));
    if (!v.shape) return out;
    // Added as finished messages: a nested writer drops empty ones, and an empty shape is a scalar, an empty
    // dim an unknown size.
    std::string shape;
    for (const ir::Dim& dim : *v.shape) {
      std::string text;
      pbf_writer d(text);
      if (const auto number = dim.as_constant()) {
        d.add_int64(1, *number);
      } else {
        const auto symbols = dim.symbols();
        if (std::none_of(symbols.begin(), symbols.end(),
                         [](const std::string& s) { return s.starts_with('?'); })) {
          d.add_string(2, dim.to_string());
        }
      }
      pbf_writer(shape).add_message(1, text);
    }
    tensor.add_message(2, shape);
    return out;
  }

  void write_info(pbf_writer& graph, uint32_t tag, const ir::Value& v, const std::string& name) const {
    pbf_writer info(graph, tag);
    info.add_string(1, name);
    if (v.dtype != DType::kUndefined) write_type(info, v);
  }

  Status write_tensor(pbf_writer& t, const ir::Constant& constant, const std::string& name,
                      bool may_be_external) const {
    t.add_packed_int64(1, constant.dims().begin(), constant.dims().end());
    t.add_int32(2, static_cast<int32_t>(ir::onnx_code(constant.dtype())));
    if (!name.empty()) t.add_string(8, name);
    auto offset = may_be_external ? offsets_.find(&constant) : offsets_.end();
    if (offset != offsets_.end()) {
      auto entry = [&](const char* key, const std::string& value) {
        pbf_writer e(t, 13);
        e.add_string(1, key);
        e.add_string(2, value);
      };
      entry("location", options_.external_data_name);
      entry("offset", std::to_string(offset->second));
      entry("length", std::to_string(constant.bytes()));
      t.add_enum(14, 1);
      return ok_status();
    }
    if (constant.dtype() == DType::kString) {
      DECANT_ASSIGN(const ir::Tensor strings, constant.materialize());
      for (int64_t i = 0; i < strings.elements(); ++i) t.add_bytes(6, strings.string_at(i));
      return ok_status();
    }
    if (constant.in_memory()) {
      const ir::Tensor tensor = constant.tensor();
      t.add_bytes(9, tensor.data_as<char>(), tensor.bytes());
      return ok_status();
    }
    std::string raw;
    raw.reserve(constant.bytes());
    DECANT_RETURN_IF_ERROR(stream_rows(constant, [&](std::span<const std::byte> bytes) {
      raw.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return ok_status();
    }));
    t.add_bytes(9, raw);
    return ok_status();
  }

  Status write_attribute(pbf_writer& a, const std::string& name, const ir::Attribute& attribute) {
    a.add_string(1, name);
    int32_t type = 0;
    if (const auto* i = std::get_if<int64_t>(&attribute)) {
      a.add_int64(3, *i);
      type = kIntAttribute;
    } else if (const auto* f = std::get_if<float>(&attribute)) {
      a.add_float(2, *f);
      type = kFloatAttribute;
    } else if (const auto* s = std::get_if<std::string>(&attribute)) {
      a.add_bytes(4, *s);
      type = kStringAttribute;
    } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute)) {
      for (const int64_t v : *ints) a.add_int64(8, v);
      type = kIntsAttribute;
    } else if (const auto* floats = std::get_if<std::vector<float>>(&attribute)) {
      for (const float v : *floats) a.add_float(7, v);
      type = kFloatsAttribute;
    } else if (const auto* strings = std::get_if<std::vector<std::string>>(&attribute)) {
      for (const std::string& v : *strings) a.add_bytes(9, v);
      type = kStringsAttribute;
    } else if (const auto* constant = std::get_if<ir::ConstantPtr>(&attribute)) {
      pbf_writer t(a, 5);
      DECANT_RETURN_IF_ERROR(write_tensor(t, **constant, "", false));
      type = kTensorAttribute;
    } else if (const auto* value_type = std::get_if<ir::TypeAttribute>(&attribute)) {
      ir::Value v;
      v.kind = value_type->kind;
      v.dtype = value_type->dtype;
      a.add_message(14, type_of(v));
      type = kTypeAttribute;
    } else if (const auto* sub = std::get_if<std::shared_ptr<ir::Graph>>(&attribute)) {
      pbf_writer g(a, 6);
      DECANT_RETURN_IF_ERROR(write_graph(g, **sub, false));
      type = kGraphAttribute;
    }
    a.add_enum(20, type);
    return ok_status();
  }

  Status write_node(pbf_writer& graph, const ir::Node& node) {
    if (node.domain().empty()) {
      if (const int needed = needed_opset(node); needed > options_.opset) {
        return unsupported(fmt::format("{} needs opset {}, the model is written for {}", node.describe(),
                                       needed, options_.opset));
      }
    } else if (node.domain() == "decant") {
      return unsupported(node.describe() + " has no operator in ONNX");
    } else {
      domains_.emplace(node.domain(), 1);
    }
    pbf_writer n(graph, 1);
    size_t inputs = node.inputs().size();
    while (inputs > 0 && !node.input(inputs - 1)) --inputs;
    for (size_t i = 0; i < inputs; ++i) {
      const ir::Value* v = node.input(i);
      if (v && name_of(v).empty()) {
        return internal_error(
            fmt::format("{}: input '{}' belongs to no part of the graph", node.describe(), v->name));
      }
      n.add_string(1, v ? name_of(v) : std::string());
    }
    for (const ir::Value* v : node.outputs()) n.add_string(2, v ? name_of(v) : std::string());
    n.add_string(3, unique_node_name(node.name.empty() ? node.op() : node.name));
    n.add_string(4, node.op());
    for (const auto& [key, attribute] : node.attributes) {
      pbf_writer a(n, 5);
      DECANT_RETURN_IF_ERROR(write_attribute(a, key, attribute).with_context(node.describe()));
    }
    if (!node.domain().empty()) n.add_string(7, node.domain());
    return ok_status();
  }

  void write_identity(pbf_writer& graph, const std::string& from, const std::string& to) {
    pbf_writer n(graph, 1);
    n.add_string(1, from);
    n.add_string(2, to);
    n.add_string(3, unique_node_name(to + "_identity"));
    n.add_string(4, "Identity");
  }

  Status write_graph(pbf_writer& g, const ir::Graph& graph, bool is_main) {
    for (const auto& node : graph.nodes()) {
      if (node) DECANT_RETURN_IF_ERROR(write_node(g, *node));
    }
    std::vector<std::pair<const ir::Value*, std::string>> outputs;
    if (is_main) {
      for (const Output& o : outputs_) {
        if (!o.direct) write_identity(g, name_of(o.value), o.name);
        outputs.emplace_back(o.value, o.name);
      }
    } else {
      // Sub-graph outputs must be produced inside.
      std::unordered_set<const ir::Value*> inside;
      for (const auto& node : graph.nodes()) {
        if (node) inside.insert(node->outputs().begin(), node->outputs().end());
      }
      for (const ir::Value* v : graph.outputs()) {
        if (inside.erase(v)) {
          outputs.emplace_back(v, name_of(v));
        } else {
          outputs.emplace_back(v, taken_name(v->name));
          write_identity(g, name_of(v), outputs.back().second);
        }
      }
    }
    g.add_string(2, graph.name.empty() ? "graph" : graph.name);
    if (is_main) {
      for (const ir::Value* v : constants_) {
        pbf_writer t(g, 5);
        DECANT_RETURN_IF_ERROR(write_tensor(t, *v->constant, name_of(v), true));
      }
    }
    for (const ir::Value* v : graph.inputs()) {
      if (is_main && v->dtype == DType::kUndefined)
        return invalid_argument("input '" + v->name + "' has no type");
      write_info(g, 11, *v, name_of(v));
    }
    for (const auto& [v, name] : outputs) {
      if (is_main && v->dtype == DType::kUndefined)
        return invalid_argument("output '" + v->name + "' has no type");
      write_info(g, 12, *v, name);
    }
    if (is_main) {
      for (const auto& node : graph.nodes()) {
        if (!node) continue;
        for (const ir::Value* v : node->outputs()) {
          if (v && v->dtype != DType::kUndefined && !graph.is_output(v)) write_info(g, 13, *v, name_of(v));
        }
      }
    }
    return ok_status();
  }

  struct Output {
    const ir::Value* value;
    std::string name;
    bool direct;
  };

  const ir::Graph& graph_;
  const WriteOptions& options_;
  std::unordered_set<std::string> taken_, taken_nodes_;
  std::unordered_map<std::string, int> node_names_;
  std::unordered_map<const ir::Value*, std::string> names_;
  std::unordered_map<const ir::Constant*, std::string> constant_names_;
  std::unordered_set<const ir::Constant*> seen_;
  std::vector<const ir::Value*> constants_;
  std::vector<Output> outputs_;
  std::unordered_map<const ir::Constant*, uint64_t> offsets_;
  std::vector<External> external_;
  std::map<std::string, int64_t> domains_;
};

Status check_data_name(const std::string& name) {
  if (name.empty()) return ok_status();
  if (name == "." || name == ".." || name.find('/') != std::string::npos ||
      name.find('\\') != std::string::npos || name.find('\0') != std::string::npos) {
    return invalid_argument("the external data name must be a plain file name, is '" + name + "'");
  }
  return ok_status();
}

Status write(const ir::Graph& graph, const std::string& path, const WriteOptions& options) {
  if (options.opset < 13 || options.opset > 28) {
    return invalid_argument(fmt::format("opset {}; models are written for 13 to 28", options.opset));
  }
  DECANT_RETURN_IF_ERROR(check_data_name(options.external_data_name));
  ModelWriter writer(graph, options);
  DECANT_ASSIGN(const std::string model, writer.build());
  if (!writer.external().empty()) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    const std::string data_path = folder + options.external_data_name;
    if (data_path == path)
      return invalid_argument("the external data has the name of the model, '" + path + "'");
    DECANT_ASSIGN(FileWriter data, FileWriter::create(data_path));
    for (const auto& item : writer.external()) {
      // Offsets were planned with these alignments.
      DECANT_RETURN_IF_ERROR(data.pad_to(item.constant->bytes() >= kPage ? kPage : 64));
      if (data.position() != item.offset) return internal_error("external data is not where it was planned");
      DECANT_RETURN_IF_ERROR(
          stream_rows(*item.constant, [&](std::span<const std::byte> bytes) { return data.write(bytes); }));
    }
    DECANT_RETURN_IF_ERROR(data.commit());
  }
  DECANT_ASSIGN(FileWriter file, FileWriter::create(path));
  DECANT_RETURN_IF_ERROR(file.write(model));
  return file.commit();
}

}  // namespace

Status write_model(const ir::Graph& graph, const std::string& path, const WriteOptions& options) {
  try {
    return write(graph, path, options).with_context(path);
  } catch (const std::exception& e) {
    return resource_error(fmt::format("{}: {}", path, e.what()));
  }
}

}  // namespace decant::onnx
