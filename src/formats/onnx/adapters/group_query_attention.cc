#include <fmt/format.h>

#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {
namespace {

enum Input : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kSeqlens,
  kTotal,
  kCos,
  kSin,
  kPositions,
  kBias,
  kSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm,
  kQuerySeqlens,
};

/// Text of the dims of a value, for keys of shared values.
std::string dims_of(const ir::Value* v) {
  if (!v->shape) return fmt::format("{}", static_cast<const void*>(v));
  std::string text;
  for (const ir::Dim& d : *v->shape) text += d.to_string() + ",";
  return text;
}

/// What the layers of a model share: positions of the new tokens, from seqlens_k and the query's shape.
struct Lengths {
  ir::Value* past = nullptr;       ///< [batch]: tokens in the cache before this call
  ir::Value* total = nullptr;      ///< [batch]: after it
  ir::Value* visible = nullptr;    ///< [batch]: past + length of the query, padding included
  ir::Value* positions = nullptr;  ///< [batch, sequence]
};

class Lifter {
 public:
  explicit Lifter(Adaptation& adaptation) : a(adaptation) {}

  Status run() {
    DECANT_RETURN_IF_ERROR(check());
    DECANT_RETURN_IF_ERROR(split());
    DECANT_RETURN_IF_ERROR(normalize());
    lengths();
    DECANT_RETURN_IF_ERROR(rotate());
    DECANT_RETURN_IF_ERROR(write_cache());
    attend();
    a.remove();
    return ok_status();
  }

 private:
  ir::Value* in(size_t i) const { return a.node.input(i); }

  Status check() {
    DECANT_ASSIGN(heads, a.required_int("num_heads", 1));
    DECANT_ASSIGN(kv_heads, a.required_int("kv_num_heads", 1));
    if (heads % kv_heads != 0)
      return a.bad_form(fmt::format("{} heads for {} key-value heads", heads, kv_heads));
    if (!in(kQuery) || !in(kSeqlens) || !in(kTotal))
      return a.bad_form("query, seqlens_k and total_sequence_length are needed");
    if (!in(kKey) != !in(kValue)) return a.bad_form("key and value come together");
    if (!in(kPastKey) != !in(kPastValue)) return a.bad_form("past_key and past_value come together");
    if (in(kKeyScale) || in(kValueScale)) return a.unsupported_form("a quantized cache (k_scale, v_scale)");
    if (!in(kQueryNorm) != !in(kKeyNorm)) return a.bad_form("q_norm_weight and k_norm_weight come together");
    DECANT_RETURN_IF_ERROR(a.check_unused(3, "output_qk"));
    causal = a.node.int_attribute("causal", 1) != 0;
    window = a.node.int_attribute("local_window_size", -1);
    sliding = a.node.int_attribute("sliding_window_cache", 0) != 0;
    if (sliding && (window <= 0 || !in(kPastKey) || !causal)) {
      return a.bad_form("sliding_window_cache needs local_window_size, past_key and a causal mask");
    }
    if (sliding && in(kBias)) return a.unsupported_form("attention_bias with sliding_window_cache");
    return ok_status();
  }

  ir::Value* to_heads(ir::Value* x, int64_t count) {
    return a.emit("Transpose", {a.emit("Reshape", {x, a.ints("heads", {0, 0, count, -1})})},
                  {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  }

  /// [batch, heads, sequence, size] of each.
  Status split() {
    if (in(kKey)) {
      q = to_heads(in(kQuery), heads);
      k = to_heads(in(kKey), kv_heads);
      v = to_heads(in(kValue), kv_heads);
      return ok_status();
    }
    ir::Node* parts = a.emit_node(
        "Split", {to_heads(in(kQuery), heads + 2 * kv_heads), a.ints("parts", {heads, kv_heads, kv_heads})},
        3, {{"axis", int64_t{1}}});
    q = parts->output(0);
    k = parts->output(1);
    v = parts->output(2);
    return ok_status();
  }

  Status normalize() {
    if (!in(kQueryNorm)) return ok_status();
    const float shared = a.node.float_attribute("qk_norm_epsilon", 1e-6f);
    const auto norm = [&](ir::Value* x, ir::Value* weight, std::string_view key) {
      return a.emit("RMSNormalization", {x, weight},
                    {{"axis", int64_t{-1}},
                     {"epsilon", a.node.float_attribute(key, shared)},
                     {"stash_type", int64_t{1}}});
    };
    q = norm(q, in(kQueryNorm), "q_norm_epsilon");
    k = norm(k, in(kKeyNorm), "k_norm_epsilon");
    return ok_status();
  }

  /// Made once for all layers with the same inputs and query dims.
  template <typename Make>
  ir::Value* once(std::string_view what, Make make) {
    const ir::Value* query = in(kQuery);
    const std::string rows = query->shape && query->shape->size() == 3
                                 ? (*query->shape)[0].to_string() + "," + (*query->shape)[1].to_string()
                                 : fmt::format("{}", static_cast<const void*>(query));
    const std::string key = fmt::format("gqa {} {} {} {}", what, static_cast<const void*>(in(kSeqlens)),
                                        static_cast<const void*>(in(kQuerySeqlens)), rows);
    ir::Value*& slot = a.shared[key];
    if (!slot) slot = make();
    return slot;
  }

  ir::Value* flat_int64(ir::Value* x) {
    return a.emit("Reshape", {a.cast(x, DType::kInt64), a.ints("flat", {-1})});
  }

  ir::Value* sequence() {
    return once("sequence", [&] {
      return a.emit("Shape", {in(kQuery)}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
    });
  }

  void lengths() {
    n.total = once("total", [&] { return a.emit("Add", {flat_int64(in(kSeqlens)), a.int_scalar(1)}); });
    n.past = once("past", [&] {
      ir::Value* fresh = in(kQuerySeqlens) ? flat_int64(in(kQuerySeqlens)) : sequence();
      return a.emit("Max", {a.emit("Sub", {n.total, fresh}), a.int_scalar(0)});
    });
    // A query padded on the right reaches past `total`; its last rows see entries that no valid row sees.
    n.visible = causal ? once("visible", [&] { return a.emit("Add", {n.past, sequence()}); }) : n.total;
  }

  Status rotate() {
    if (a.node.int_attribute("do_rotary", 0) == 0) return ok_status();
    if (!in(kCos) || !in(kSin)) return a.bad_form("do_rotary needs cos_cache and sin_cache");
    n.positions = in(kPositions);
    if (!n.positions) {
      n.positions = once("positions", [&] {
        ir::Value* last = a.emit("Squeeze", {sequence(), a.ints("axis", {0})});
        ir::Value* steps = a.emit("Range", {a.int_scalar(0), last, a.int_scalar(1)});
        return a.emit("Add", {a.emit("Unsqueeze", {n.past, a.ints("axis", {1})}), steps});
      });
    }
    Adaptation::Attributes attributes = {{"interleaved", a.node.int_attribute("rotary_interleaved", 0)}};
    if (const auto& table = in(kCos)->shape; table && table->size() == 2 && (*table)[1].is_constant()) {
      attributes.emplace_back("rotary_embedding_dim", 2 * (*table)[1].constant());
    }
    q = a.emit("RotaryEmbedding", {q, in(kCos), in(kSin), n.positions}, attributes);
    k = a.emit("RotaryEmbedding", {k, in(kCos), in(kSin), n.positions}, attributes);
    return ok_status();
  }

  /// The cache with room for total_sequence_length entries: one that is shared between calls has it already.
  ir::Value* with_room(ir::Value* past) {
    const std::string key =
        fmt::format("gqa room {} {}", static_cast<const void*>(in(kTotal)), dims_of(past));
    ir::Value*& pads = a.shared[key];
    if (!pads) {
      ir::Value* capacity = a.emit("Shape", {past}, {{"start", int64_t{2}}, {"end", int64_t{3}}});
      ir::Value* missing =
          a.emit("Max", {a.emit("Sub", {flat_int64(in(kTotal)), capacity}), a.ints("none", {0})});
      pads = a.emit("Concat", {a.ints("before", {0, 0, 0, 0, 0, 0}), missing, a.ints("after", {0})},
                    {{"axis", int64_t{0}}});
    }
    return a.emit("Pad", {past, pads});
  }

  /// Caches are declared with names for sizes that the new entries tell: heads and channels.
  void narrow(ir::Value* past, const ir::Value* fresh) {
    if (past->producer || past->constant || !past->shape || past->shape->size() != 4 || !fresh->shape) return;
    for (const size_t axis : {1u, 3u}) {
      if (!(*past->shape)[axis].is_constant() && (*fresh->shape)[axis].is_constant())
        (*past->shape)[axis] = (*fresh->shape)[axis];
    }
  }

  Status write_cache() {
    keys = k;
    values = v;
    if (!in(kPastKey)) {
      a.replace_output(1, k);
      a.replace_output(2, v);
      return ok_status();
    }
    narrow(in(kPastKey), k);
    narrow(in(kPastValue), v);
    if (sliding) {
      for (size_t i = 0; i < 2; ++i) {
        ir::Node* update = a.emit_node("SlidingCache", {in(kPastKey + i), i ? v : k, n.past, n.total}, 3,
                                       {{"window", window}}, "decant");
        (i ? values : keys) = update->output(1);
        if (i == 0) {
          n.visible = a.emit("Add", {update->output(2), sequence()});
        }
        a.replace_output(1 + i, update->output(0));
      }
      return ok_status();
    }
    for (size_t i = 0; i < 2; ++i) {
      ir::Value* present = a.emit("TensorScatter", {with_room(in(kPastKey + i)), i ? v : k, n.past},
                                  {{"axis", int64_t{2}}, {"mode", std::string("linear")}});
      (i ? values : keys) = present;
      a.replace_output(1 + i, present);
    }
    return ok_status();
  }

  void attend() {
    Adaptation::Attributes attributes = {{"is_causal", int64_t{causal}}};
    if (const float scale = a.node.float_attribute("scale", 0.0f); scale != 0)
      attributes.emplace_back("scale", scale);
    if (const float cap = a.node.float_attribute("softcap", 0.0f); cap > 0)
      attributes.emplace_back("softcap", cap);
    if (window > 0) attributes.emplace_back("left_window_size", window - 1);
    ir::Value* sink = in(kSink);
    if (!sink && a.node.int_attribute("smooth_softmax", 0) > 0) {
      sink = a.emit("Expand", {a.scalar("sink", DType::kFloat32, 0), a.ints("heads", {heads})});
    }
    std::vector<ir::Value*> inputs = {q, keys, values, in(kBias), nullptr, nullptr, n.visible};
    if (sink) inputs.push_back(sink);
    ir::Value* y = a.emit("Transpose", {a.emit("Attention", inputs, attributes)},
                          {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    a.replace_output(0, a.emit("Reshape", {y, a.ints("merged", {0, 0, -1})}));
  }

  Adaptation& a;
  int64_t heads = 0, kv_heads = 0, window = -1;
  bool causal = true, sliding = false;
  ir::Value *q = nullptr, *k = nullptr, *v = nullptr, *keys = nullptr, *values = nullptr;
  Lengths n;
};

}  // namespace

/// GroupQueryAttention: heads are split, normalized and rotated; new keys and values are written into the
/// cache behind the ones of earlier calls (TensorScatter; the cache grows where it is too short), and
/// Attention reads what is valid of it.
Status adapt_group_query_attention(Adaptation& a) { return Lifter(a).run(); }

}  // namespace decant::onnx
