#include "ir/ops/einsum.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::EinsumTerm;
using ir::Node;

constexpr size_t kMaxRank = 12;

/// A dense array of up to kMaxRank dims read in another order of its axes.
struct Walk {
  size_t rank = 0;
  std::array<int64_t, kMaxRank> dims{}, strides{};
};

/// Calls f(position of a row's first element, its stride, its length) for each row of the walk, in order.
template <typename F>
void for_rows(const Walk& walk, F&& f) {
  const int64_t n = walk.rank ? walk.dims[walk.rank - 1] : 1,
                stride = walk.rank ? walk.strides[walk.rank - 1] : 0;
  for (size_t i = 0; i < walk.rank; ++i) {
    if (walk.dims[i] == 0) return;
  }
  std::array<int64_t, kMaxRank> index{};
  int64_t at = 0;
  for (;;) {
    f(at, stride, n);
    size_t axis = walk.rank ? walk.rank - 1 : 0;
    for (; axis > 0; --axis) {
      at += walk.strides[axis - 1];
      if (++index[axis - 1] < walk.dims[axis - 1]) break;
      at -= walk.strides[axis - 1] * walk.dims[axis - 1];
      index[axis - 1] = 0;
    }
    if (axis == 0) return;
  }
}

/// Two f32 operands without diagonals: both are laid out as stacks of matrices, whose products are laid out
/// as the output. Labels of both operands and the output number the matrices; labels of both alone are
/// summed.
class EinsumOfTwo final : public Kernel {
 public:
  explicit EinsumOfTwo(const ir::EinsumEquation& e) : a_(e.inputs[0]), b_(e.inputs[1]), out_(e.output) {
    for (const int label : a_) {
      if (!has(b_, label))
        rows_.push_back(label);
      else if (has(out_, label))
        stack_.push_back(label);
      else
        inner_.push_back(label);
    }
    for (const int label : b_) {
      if (!has(a_, label)) columns_.push_back(label);
    }
  }

  /// Whether each label of one operand alone is in the output, and each occurs once in its term.
  static bool covers(const ir::EinsumEquation& e) {
    if (e.inputs.size() != 2 || e.output.size() > kMaxRank) return false;
    for (size_t i = 0; i < 2; ++i) {
      const EinsumTerm &term = e.inputs[i], &other = e.inputs[1 - i];
      if (term.size() > kMaxRank) return false;
      for (const int label : term) {
        if (std::count(term.begin(), term.end(), label) != 1) return false;
        if (!has(other, label) && !has(e.output, label)) return false;
      }
    }
    return true;
  }

  size_t scratch_bytes(std::span<const Arg> in, std::span<const Arg> out, int threads) const override {
    const Sizes s = sizes(in);
    return static_cast<size_t>(aligned(s.stack * s.m * s.k) + aligned(s.stack * s.k * s.n) +
                               aligned(out[0].elements)) *
               sizeof(float) +
           kernels::matmul_scratch_bytes(s.m, s.n, s.k, threads) + 64;
  }

  Status run(const Call& call) override {
    const Arg &a = call.inputs[0], &b = call.inputs[1], &c = call.outputs[0];
    for (size_t i = 0; i < a_.size(); ++i) {
      const int64_t here = a.dims[i], there = dim_of(b, b_, a_[i], here);
      if (here != there && here != 1 && there != 1) return invalid_argument("dims of one index differ");
    }
    const Sizes s = sizes(call.inputs);
    if (c.elements != s.stack * s.m * s.n) return internal_error("an Einsum does not fit its output");
    auto* at = reinterpret_cast<float*>(call.scratch.data());
    const auto take = [&](int64_t floats) { return std::exchange(at, at + aligned(floats)); };
    float *const left = take(s.stack * s.m * s.k), *const right = take(s.stack * s.k * s.n),
                 *const product = take(c.elements);
    const std::span<std::byte> rest =
        call.scratch.subspan(static_cast<size_t>(reinterpret_cast<std::byte*>(at) - call.scratch.data()));

    pack(walk(a, a_, {&stack_, &rows_, &inner_}, b, b_), a.as<const float>(), left);
    pack(walk(b, b_, {&stack_, &inner_, &columns_}, a, a_), b.as<const float>(), right);
    if (s.k == 0) std::fill_n(product, c.elements, 0.0f);
    for (int64_t i = 0; s.k > 0 && i < s.stack; ++i) {
      kernels::MatmulPart part;
      part.b = right + i * s.k * s.n;
      part.ldb = s.n;
      part.n = s.n;
      part.c = product + i * s.m * s.n;
      part.ldc = s.n;
      kernels::matmul(call.kernels, s.m, s.k, left + i * s.m * s.k, s.k, part, rest);
    }
    const float* from = product;
    auto* const y = c.as<float>();
    for_rows(walk(c, out_, {&stack_, &rows_, &columns_}, c, out_),
             [&](int64_t to, int64_t stride, int64_t n) {
               for (int64_t i = 0; i < n; ++i) y[to + i * stride] = from[i];
               from += n;
             });
    return ok_status();
  }

 private:
  struct Sizes {
    int64_t stack = 1, m = 1, n = 1, k = 1;
  };

  static bool has(const EinsumTerm& term, int label) {
    return std::find(term.begin(), term.end(), label) != term.end();
  }
  static int64_t aligned(int64_t floats) { return (floats + 15) / 16 * 16; }

  /// The dim of x with this label; `otherwise` when there is none.
  static int64_t dim_of(const Arg& x, const EinsumTerm& term, int label, int64_t otherwise) {
    const auto at = std::find(term.begin(), term.end(), label);
    return at == term.end() ? otherwise : x.dims[at - term.begin()];
  }

  Sizes sizes(std::span<const Arg> in) const {
    Sizes s;
    for (size_t i = 0; i < a_.size(); ++i) {
      const int64_t d = in[0].dims[i] == 1 ? dim_of(in[1], b_, a_[i], 1) : in[0].dims[i];
      (!has(b_, a_[i]) ? s.m : has(out_, a_[i]) ? s.stack : s.k) *= d;
    }
    for (size_t i = 0; i < b_.size(); ++i) {
      if (!has(a_, b_[i])) s.n *= in[1].dims[i];
    }
    return s;
  }

  /// x in the order of these labels; a dim of 1 repeats as often as the other operand's is long.
  static Walk walk(const Arg& x, const EinsumTerm& term, std::array<const EinsumTerm*, 3> order,
                   const Arg& other, const EinsumTerm& other_term) {
    std::array<int64_t, kMaxRank> strides{};
    int64_t stride = 1;
    for (size_t i = term.size(); i-- > 0; stride *= x.dims[i]) strides[i] = x.dims[i] == 1 ? 0 : stride;
    Walk w;
    for (const EinsumTerm* labels : order) {
      for (const int label : *labels) {
        const auto i = static_cast<size_t>(std::find(term.begin(), term.end(), label) - term.begin());
        w.dims[w.rank] = x.dims[i] == 1 ? dim_of(other, other_term, label, 1) : x.dims[i];
        w.strides[w.rank++] = strides[i];
      }
    }
    return w;
  }

  static void pack(const Walk& walk, const float* x, float* to) {
    for_rows(walk, [&](int64_t from, int64_t stride, int64_t n) {
      for (int64_t i = 0; i < n; ++i) to[i] = x[from + i * stride];
      to += n;
    });
  }

  EinsumTerm a_, b_, out_;
  EinsumTerm stack_, rows_, columns_, inner_;
};

std::unique_ptr<Kernel> make(const Node& node) {
  std::vector<size_t> ranks;
  for (const ir::Value* v : node.inputs()) {
    if (v->dtype != DType::kFloat32 || !v->shape) return nullptr;
    ranks.push_back(v->shape->size());
  }
  auto equation = ir::parse_einsum(node, ranks);
  if (!equation.ok() || !EinsumOfTwo::covers(*equation)) return nullptr;
  return std::make_unique<EinsumOfTwo>(*equation);
}

}  // namespace

DECANT_KERNEL(Einsum) { return {"Einsum", "", &make}; }

}  // namespace decant::runtime
