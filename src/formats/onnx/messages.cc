#include "formats/onnx/messages.h"

#include <fmt/format.h>

namespace decant::onnx {
namespace {

std::string domain_key(std::string_view domain) { return std::string(domain == "ai.onnx" ? "" : domain); }

AttributeMessage attribute_from(ParseContext& context, WireReader& parent, Bytes bytes) {
  AttributeMessage a;
  WireReader r(context, bytes);
  int64_t seen = 0;
  while (r.next()) {
    switch (r.field()) {
      case 1:
        a.name = r.name();
        break;
      case 2:
        a.f = r.float32();
        seen = 1;
        break;
      case 3:
        a.i = r.int64();
        seen = 2;
        break;
      case 4:
        a.s = r.string();
        seen = 3;
        break;
      case 5:
        a.tensor = r.bytes();
        seen = 4;
        break;
      case 6:
        a.graph = r.bytes();
        seen = 5;
        break;
      case 7:
        r.floats(a.floats);
        seen = 6;
        break;
      case 8:
        r.varints(a.ints);
        seen = 7;
        break;
      case 9:
        r.count_object();
        a.strings.push_back(r.string());
        seen = 8;
        break;
      case 10:
        r.skip();
        seen = 9;
        break;
      case 11:
        r.skip();
        seen = 10;
        break;
      case 14:
        a.value_type = r.bytes();
        seen = 13;
        break;
      case 15:
        r.skip();
        seen = 14;
        break;
      case 20:
        a.type = r.int64();
        break;
      case 21:
        a.reference = r.name();
        break;
      case 22:
        r.skip();
        seen = 11;
        break;
      case 23:
        r.skip();
        seen = 12;
        break;
      default:
        r.skip();
    }
  }
  if (!r.status().ok()) parent.fail(r.status().message());
  if (a.type == 0) a.type = seen;
  if (parent.status().ok() && a.reference.empty()) {
    if (seen != 0 && seen != a.type) {
      parent.fail(fmt::format("attribute '{}' declares type {} and holds type {}", a.name, a.type, seen));
    } else if (a.type == 0) {
      parent.fail(fmt::format("attribute '{}' has no type and no value", a.name));
    } else if ((a.type == 4 || a.type == 5) && seen == 0) {
      parent.fail(fmt::format("attribute '{}' has no value", a.name));
    }
  }
  return a;
}

NodeMessage node_from(ParseContext& context, WireReader& parent, Bytes bytes) {
  NodeMessage n;
  WireReader r(context, bytes);
  while (r.next()) {
    switch (r.field()) {
      case 1:
        r.count_object();
        n.inputs.push_back(r.name());
        break;
      case 2:
        r.count_object();
        n.outputs.push_back(r.name());
        break;
      case 3:
        n.name = r.name();
        break;
      case 4:
        n.op = r.name();
        break;
      case 5:
        r.count_object();
        n.attributes.push_back(attribute_from(context, r, r.bytes()));
        break;
      case 7:
        n.domain = r.name();
        break;
      case 8:
        n.overload = r.name();
        break;
      default:
        r.skip();
    }
  }
  if (n.domain == "ai.onnx") n.domain = "";
  if (!r.status().ok()) {
    parent.fail(fmt::format("node '{}' ({}): {}", n.name, n.op, r.status().message()));
  } else if (n.op.empty()) {
    parent.fail(fmt::format("node '{}' has no operator", n.name));
  }
  return n;
}

void shape_from(ParseContext& context, WireReader& parent, Bytes bytes, ValueMessage& v) {
  WireReader r(context, bytes);
  while (r.next()) {
    if (r.field() != 1) {
      r.skip();
      continue;
    }
    r.count_object();
    ValueMessage::Axis axis;
    WireReader d(context, r.bytes());
    while (d.next()) {
      switch (d.field()) {
        case 1:
          axis.value = d.int64();
          break;
        case 2:
          axis.label = d.name();
          break;
        default:
          d.skip();
      }
    }
    if (!d.status().ok()) r.fail(d.status().message());
    v.shape.push_back(axis);
    if (v.shape.size() > 64) r.fail("a shape of more than 64 dims");
  }
  if (!r.status().ok()) parent.fail(r.status().message());
}

void type_from(ParseContext& context, WireReader& parent, Bytes bytes, ValueMessage& v, int depth);

/// The element type of a sequence or an optional, which becomes part of the kind: "optional sequence".
void element_from(ParseContext& context, WireReader& parent, Bytes bytes, ValueMessage& v, int depth,
                  std::string_view kind) {
  v.kind = kind;
  WireReader r(context, bytes);
  while (r.next()) {
    if (r.field() != 1) {
      r.skip();
      continue;
    }
    type_from(context, r, r.bytes(), v, depth + 1);
    if (v.kind == "tensor") {
      v.kind = kind;
    } else if (kind == "optional" && v.kind == "sequence") {
      v.kind = "optional sequence";
    } else {
      v.kind = kind == "optional" ? "nested optional" : "nested sequence";
    }
  }
  if (!r.status().ok()) parent.fail(r.status().message());
}

void type_from(ParseContext& context, WireReader& parent, Bytes bytes, ValueMessage& v, int depth) {
  if (depth > 4) return parent.fail("types nested over 4 deep");
  WireReader t(context, bytes);
  while (t.next()) {
    switch (t.field()) {
      case 1: {
        v.kind = "tensor";
        WireReader tensor(context, t.bytes());
        while (tensor.next()) {
          switch (tensor.field()) {
            case 1:
              v.elem_type = tensor.int64();
              break;
            case 2:
              v.has_shape = true;
              shape_from(context, tensor, tensor.bytes(), v);
              break;
            default:
              tensor.skip();
          }
        }
        if (!tensor.status().ok()) t.fail(tensor.status().message());
        break;
      }
      case 4:
        element_from(context, t, t.bytes(), v, depth, "sequence");
        break;
      case 5:
        v.kind = "map";
        t.skip();
        break;
      case 7:
        v.kind = "opaque";
        t.skip();
        break;
      case 8:
        v.kind = "sparse tensor";
        t.skip();
        break;
      case 9:
        element_from(context, t, t.bytes(), v, depth, "optional");
        break;
      default:
        t.skip();
    }
  }
  if (!t.status().ok()) parent.fail(t.status().message());
}

ValueMessage value_from(ParseContext& context, WireReader& parent, Bytes bytes) {
  ValueMessage v;
  Bytes type;
  WireReader r(context, bytes);
  while (r.next()) {
    switch (r.field()) {
      case 1:
        v.name = r.name();
        break;
      case 2:
        type = r.bytes();
        break;
      default:
        r.skip();
    }
  }
  if (!type.empty()) type_from(context, r, type, v, 0);
  if (!r.status().ok()) parent.fail(fmt::format("value '{}': {}", v.name, r.status().message()));
  return v;
}

void opset_from(ParseContext& context, WireReader& parent, Bytes bytes, std::map<std::string, int64_t>& out) {
  std::string_view domain;
  int64_t version = 0;
  WireReader r(context, bytes);
  while (r.next()) {
    switch (r.field()) {
      case 1:
        domain = r.name();
        break;
      case 2:
        version = r.int64();
        break;
      default:
        r.skip();
    }
  }
  if (!r.status().ok()) {
    parent.fail(r.status().message());
  } else if (!out.emplace(domain_key(domain), version).second) {
    parent.fail(fmt::format("two opset imports of domain '{}'", domain));
  }
}

std::pair<std::string_view, std::string_view> entry_from(ParseContext& context, WireReader& parent,
                                                         Bytes bytes) {
  std::pair<std::string_view, std::string_view> entry;
  WireReader r(context, bytes);
  while (r.next()) {
    switch (r.field()) {
      case 1:
        entry.first = r.string();
        break;
      case 2:
        entry.second = r.string();
        break;
      default:
        r.skip();
    }
  }
  if (!r.status().ok()) parent.fail(r.status().message());
  return entry;
}

}  // namespace

Result<ValueMessage> parse_type(ParseContext& context, Bytes bytes) {
  ValueMessage v;
  WireReader r(context, {});
  type_from(context, r, bytes, v, 0);
  if (!r.status().ok()) return Status(r.status());
  return v;
}

Result<TensorMessage> parse_tensor(ParseContext& context, Bytes bytes) {
  TensorMessage t;
  WireReader r(context, bytes);
  auto ints = [&](uint32_t field) {
    if (t.ints_field != 0 && t.ints_field != field) r.fail("a tensor with two kinds of typed data");
    t.ints_field = field;
    r.varints(t.ints);
  };
  while (r.next()) {
    switch (r.field()) {
      case 1:
        r.varints(t.dims);
        break;
      case 2:
        t.data_type = r.int64();
        break;
      case 3:
        t.has_segment = true;
        r.skip();
        break;
      case 4:
        r.floats(t.floats);
        break;
      case 5:
        ints(5);
        break;
      case 6:
        r.count_object();
        t.strings.push_back(r.string());
        break;
      case 7:
        ints(7);
        break;
      case 8:
        t.name = r.name();
        break;
      case 9:
        t.raw = r.bytes();
        break;
      case 10:
        r.doubles(t.doubles);
        break;
      case 11:
        ints(11);
        break;
      case 13:
        r.count_object();
        t.external.push_back(entry_from(context, r, r.bytes()));
        if (t.external.size() > 16) r.fail("more than 16 external data entries");
        break;
      case 14:
        t.data_location = r.int64();
        break;
      default:
        r.skip();
    }
    if (t.dims.size() > 64) r.fail("a tensor of more than 64 dims");
  }
  if (!r.status().ok()) return Status(r.status()).with_context(fmt::format("tensor '{}'", t.name));
  return t;
}

Result<GraphMessage> parse_graph(ParseContext& context, Bytes bytes) {
  GraphMessage g;
  WireReader r(context, bytes);
  while (r.next()) {
    switch (r.field()) {
      case 1:
        r.count_object();
        g.nodes.push_back(node_from(context, r, r.bytes()));
        break;
      case 2:
        g.name = r.name();
        break;
      case 5:
        r.count_object();
        g.initializers.push_back(r.bytes());
        break;
      case 11:
        r.count_object();
        g.inputs.push_back(value_from(context, r, r.bytes()));
        break;
      case 12:
        r.count_object();
        g.outputs.push_back(value_from(context, r, r.bytes()));
        break;
      case 15:
        ++g.sparse_initializers;
        r.skip();
        break;
      default:
        r.skip();
    }
  }
  if (!r.status().ok()) return Status(r.status());
  return g;
}

Result<FunctionMessage> parse_function(ParseContext& context, Bytes bytes) {
  FunctionMessage f;
  WireReader r(context, bytes);
  while (r.next()) {
    switch (r.field()) {
      case 1:
        f.name = r.name();
        break;
      case 4:
        r.count_object();
        f.inputs.push_back(r.name());
        break;
      case 5:
        r.count_object();
        f.outputs.push_back(r.name());
        break;
      case 6:
        r.count_object();
        f.attributes.push_back(r.name());
        break;
      case 7:
        r.count_object();
        f.nodes.push_back(node_from(context, r, r.bytes()));
        break;
      case 9:
        opset_from(context, r, r.bytes(), f.opset_imports);
        break;
      case 10:
        f.domain = r.name();
        break;
      case 11:
        r.count_object();
        f.defaults.push_back(attribute_from(context, r, r.bytes()));
        break;
      case 13:
        f.overload = r.name();
        break;
      default:
        r.skip();
    }
  }
  if (!r.status().ok()) return Status(r.status()).with_context(fmt::format("function '{}'", f.name));
  if (f.domain == "ai.onnx") f.domain = "";
  return f;
}

Result<ModelMessage> parse_model(ParseContext& context, Bytes bytes) {
  ModelMessage m;
  WireReader r(context, bytes);
  while (r.next()) {
    switch (r.field()) {
      case 1:
        m.ir_version = r.int64();
        break;
      case 2:
        m.producer_name = r.name();
        break;
      case 3:
        m.producer_version = r.name();
        break;
      case 7:
        if (m.graph) r.fail("a second graph");
        m.graph = r.bytes();
        break;
      case 8:
        opset_from(context, r, r.bytes(), m.opset_imports);
        break;
      case 25:
        r.count_object();
        m.functions.push_back(r.bytes());
        break;
      default:
        r.skip();
    }
  }
  if (!r.status().ok()) return Status(r.status());
  return m;
}

}  // namespace decant::onnx
