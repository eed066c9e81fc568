#pragma once

#include <initializer_list>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

namespace decant::onnx::testing {

/// Small models written field by field, so that tests can break any part.
inline std::string tensor_bytes(const std::string& name, std::vector<int64_t> dims, const std::string& raw,
                                int type = 1) {
  std::string out;
  protozero::pbf_writer t(out);
  for (const int64_t d : dims) t.add_int64(1, d);
  t.add_int32(2, type);
  t.add_string(8, name);
  t.add_bytes(9, raw);
  return out;
}

inline std::string external_bytes(const std::string& name, std::vector<int64_t> dims,
                                  const std::string& location, const std::string& offset,
                                  const std::string& length) {
  std::string out;
  protozero::pbf_writer t(out);
  for (const int64_t d : dims) t.add_int64(1, d);
  t.add_int32(2, 1);
  t.add_string(8, name);
  for (const auto& [key, value] :
       {std::pair("location", location), std::pair("offset", offset), std::pair("length", length)}) {
    protozero::pbf_writer e(t, 13);
    e.add_string(1, key);
    e.add_string(2, value);
  }
  t.add_enum(14, 1);
  return out;
}

inline std::string ints_attribute(const std::string& name, std::vector<int64_t> values) {
  std::string out;
  protozero::pbf_writer a(out);
  a.add_string(1, name);
  for (const int64_t v : values) a.add_int64(8, v);
  a.add_enum(20, 7);
  return out;
}

inline std::string message_attribute(const std::string& name, uint32_t field, int type,
                                     const std::string& message) {
  std::string out;
  protozero::pbf_writer a(out);
  a.add_string(1, name);
  a.add_message(field, message);
  a.add_enum(20, type);
  return out;
}

inline std::string node_bytes(const std::string& op, std::vector<std::string> inputs,
                              std::vector<std::string> outputs, std::vector<std::string> attributes = {},
                              const std::string& domain = "") {
  std::string out;
  protozero::pbf_writer n(out);
  for (const auto& s : inputs) n.add_string(1, s);
  for (const auto& s : outputs) n.add_string(2, s);
  n.add_string(3, "n_" + op);
  n.add_string(4, op);
  for (const auto& a : attributes) n.add_message(5, a);
  if (!domain.empty()) n.add_string(7, domain);
  return out;
}

inline std::string value_bytes(const std::string& name, int type = 1) {
  std::string out;
  protozero::pbf_writer v(out);
  v.add_string(1, name);
  protozero::pbf_writer t(v, 2);
  protozero::pbf_writer tensor(t, 1);
  tensor.add_int32(1, type);
  protozero::pbf_writer shape(tensor, 2);
  {
    protozero::pbf_writer d(shape, 1);
    d.add_string(2, "batch");
  }
  protozero::pbf_writer d(shape, 1);
  d.add_int64(1, 4);
  return out;
}

struct ModelParts {
  std::vector<std::string> nodes, initializers, functions;
  std::vector<std::string> inputs = {value_bytes("x")};
  std::vector<std::string> outputs = {value_bytes("y")};
  int64_t opset = 18, ir_version = 8;
};

inline std::string graph_bytes(const ModelParts& parts) {
  std::string out;
  protozero::pbf_writer g(out);
  for (const auto& n : parts.nodes) g.add_message(1, n);
  g.add_string(2, "g");
  for (const auto& t : parts.initializers) g.add_message(5, t);
  for (const auto& v : parts.inputs) g.add_message(11, v);
  for (const auto& v : parts.outputs) g.add_message(12, v);
  return out;
}

inline std::string model_bytes(const ModelParts& parts) {
  std::string out;
  protozero::pbf_writer m(out);
  m.add_int64(1, parts.ir_version);
  m.add_message(7, graph_bytes(parts));
  for (const auto& f : parts.functions) m.add_message(25, f);
  if (parts.opset) {
    protozero::pbf_writer o(m, 8);
    o.add_string(1, "");
    o.add_int64(2, parts.opset);
  }
  return out;
}

inline std::string function_bytes(const std::string& name, std::vector<std::string> nodes) {
  std::string out;
  protozero::pbf_writer f(out);
  f.add_string(1, name);
  f.add_string(4, "a");
  f.add_string(5, "b");
  for (const auto& n : nodes) f.add_message(7, n);
  f.add_string(10, "loc");
  return out;
}

}  // namespace decant::onnx::testing
