#include "ir/ops/einsum.h"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

using Term = EinsumTerm;

struct TermText {
  std::string before, after;  ///< letters around the ellipsis, or all of them in `before`
  bool ellipsis = false;
};

Result<TermText> parse_term(const Node& node, std::string_view text) {
  TermText out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.') {
      if (out.ellipsis || text.substr(i, 3) != "...") return node_error(node, "a malformed ellipsis");
      out.ellipsis = true;
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      (out.ellipsis ? out.after : out.before).push_back(c);
    } else {
      return node_error(node, fmt::format("'{}' is no index", c));
    }
  }
  return out;
}

Term labels(const TermText& text, int64_t ellipsis_rank) {
  Term out(text.before.begin(), text.before.end());
  for (int64_t i = text.ellipsis ? ellipsis_rank : 0; i > 0; --i) out.push_back(static_cast<int>(-i));
  out.insert(out.end(), text.after.begin(), text.after.end());
  return out;
}

/// Labels that occur once in all inputs, in ASCII order, behind the ellipsis' dims.
TermText implicit_output(const std::vector<TermText>& inputs) {
  std::map<char, int> counts;
  TermText out;
  for (const TermText& t : inputs) {
    out.ellipsis = out.ellipsis || t.ellipsis;
    for (char c : t.before + t.after) ++counts[c];
  }
  for (const auto& [c, n] : counts) {
    if (n == 1) out.after.push_back(c);
  }
  return out;
}

}  // namespace

Result<EinsumEquation> parse_einsum(const Node& node, const std::vector<size_t>& ranks) {
  std::string text = node.string_attribute("equation", "");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::string_view left = text;
  if (arrow != std::string::npos) left = left.substr(0, arrow);
  std::vector<TermText> terms;
  for (size_t begin = 0;;) {
    const size_t comma = left.find(',', begin);
    DECANT_ASSIGN(TermText term, parse_term(node, left.substr(begin, comma - begin)));
    terms.push_back(std::move(term));
    if (comma == std::string_view::npos) break;
    begin = comma + 1;
  }
  if (terms.size() != ranks.size()) {
    return node_error(node,
                      fmt::format("the equation has {} terms for {} inputs", terms.size(), ranks.size()));
  }
  TermText output = implicit_output(terms);
  if (arrow != std::string::npos) {
    DECANT_ASSIGN(output, parse_term(node, std::string_view(text).substr(arrow + 2)));
  }
  EinsumEquation out;
  int64_t widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t letters = terms[i].before.size() + terms[i].after.size();
    if (ranks[i] < letters || (!terms[i].ellipsis && ranks[i] != letters)) {
      return node_error(node, fmt::format("term {} does not fit rank {}", i, ranks[i]));
    }
    const auto ellipsis_rank = static_cast<int64_t>(ranks[i] - letters);
    widest = std::max(widest, ellipsis_rank);
    out.inputs.push_back(labels(terms[i], ellipsis_rank));
  }
  out.output = labels(output, widest);
  for (size_t i = 0; i < out.output.size(); ++i) {
    const int label = out.output[i];
    const auto has = [label](const Term& t) { return std::find(t.begin(), t.end(), label) != t.end(); };
    const bool known = std::any_of(out.inputs.begin(), out.inputs.end(), has);
    const auto earlier = out.output.begin() + static_cast<std::ptrdiff_t>(i);
    if (!known || std::find(out.output.begin(), earlier, label) != earlier) {
      return node_error(node, "an output index is in no input, or is given twice");
    }
  }
  return out;
}

namespace {

Status infer_einsum(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, context.input_count()));
  std::vector<size_t> ranks;
  for (size_t i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) return context.error("an input is left out");
    if (!context.shape(i)) {
      context.set_output(0, context.dtype(0), std::nullopt);
      return ok_status();
    }
    ranks.push_back(context.shape(i)->size());
  }
  DECANT_ASSIGN(const EinsumEquation equation, parse_einsum(context.node(), ranks));
  std::map<int, Dim> dims;
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (size_t k = 0; k < ranks[i]; ++k) {
      const Dim& dim = (*context.shape(i))[k];
      const auto [it, fresh] = dims.emplace(equation.inputs[i][k], dim);
      if (fresh) continue;
      DECANT_ASSIGN(it->second, broadcast_dim(context, it->second, dim));
    }
  }
  Shape shape;
  for (int label : equation.output) shape.push_back(dims.at(label));
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// Sizes of all labels, outputs first.
struct Loops {
  Term order;
  Dims sizes;
};

Result<Loops> loops_of(const Node& node, const EinsumEquation& equation, EvalInputs inputs) {
  std::map<int, int64_t> sizes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t k = 0; k < inputs[i]->rank(); ++k) {
      const int64_t size = inputs[i]->dims()[k];
      int64_t& known = sizes.emplace(equation.inputs[i][k], size).first->second;
      if (known != size && known != 1 && size != 1) return node_error(node, "dims of one index differ");
      if (known == 1) known = size;
    }
  }
  Loops out;
  out.order = equation.output;
  for (const auto& [label, size] : sizes) {
    if (std::find(out.order.begin(), out.order.end(), label) == out.order.end()) out.order.push_back(label);
  }
  for (int label : out.order) out.sizes.push_back(sizes[label]);
  return out;
}

/// Stride of an input along each loop: the sum over the dims with that label (a diagonal), 0 where it is
/// repeated.
Dims loop_strides(const Term& term, const Dims& dims, const Loops& loops) {
  const Dims strides = strides_of(dims);
  Dims out;
  for (size_t l = 0; l < loops.order.size(); ++l) {
    int64_t stride = 0;
    for (size_t k = 0; k < term.size(); ++k) {
      if (term[k] == loops.order[l] && (dims[k] != 1 || loops.sizes[l] == 1)) stride += strides[k];
    }
    out.push_back(stride);
  }
  return out;
}

/// One loop over all index values; products summed in double or, wrapping, in uint64_t.
EvalResult eval_einsum(const Node& node, EvalInputs inputs) {
  std::vector<size_t> ranks;
  for (const Tensor* t : inputs) {
    if (t == nullptr || t->dtype() != inputs[0]->dtype() || !is_number(t->dtype())) {
      return node_error(node, "inputs must be number tensors of one type");
    }
    ranks.push_back(t->rank());
  }
  DECANT_ASSIGN(const EinsumEquation equation, parse_einsum(node, ranks));
  DECANT_ASSIGN(const Loops loops, loops_of(node, equation, inputs));
  const size_t kept = equation.output.size();
  const Dims out_dims(loops.sizes.begin(), loops.sizes.begin() + static_cast<std::ptrdiff_t>(kept)),
      sum_dims(loops.sizes.begin() + static_cast<std::ptrdiff_t>(kept), loops.sizes.end());
  DECANT_ASSIGN(Tensor out, Tensor::allocate(inputs[0]->dtype(), out_dims));
  std::vector<Dims> strides;
  for (size_t i = 0; i < inputs.size(); ++i) {
    strides.push_back(loop_strides(equation.inputs[i], inputs[i]->dims(), loops));
  }
  const auto run = [&](auto zero) {
    using C = decltype(zero);
    std::vector<std::vector<C>> values;
    for (const Tensor* t : inputs) values.push_back(read<C>(*t));
    std::vector<C> totals(static_cast<size_t>(out.elements()), C(0));
    Dims index(loops.sizes.size(), 0), at(inputs.size(), 0);
    const int64_t sums = product(sum_dims, 0, sum_dims.size());
    for (int64_t n = 0; n < out.elements() * sums; ++n) {
      C value = 1;
      for (size_t i = 0; i < inputs.size(); ++i) value *= values[i][static_cast<size_t>(at[i])];
      totals[static_cast<size_t>(n / sums)] += value;
      for (size_t axis = index.size(); axis-- > 0;) {
        const bool carry = ++index[axis] == loops.sizes[axis];
        for (size_t i = 0; i < inputs.size(); ++i) {
          at[i] += carry ? -strides[i][axis] * (loops.sizes[axis] - 1) : strides[i][axis];
        }
        if (!carry) break;
        index[axis] = 0;
      }
    }
    write_range<C>(out, 0, std::span<const C>(totals));
  };
  if (is_float(out.dtype())) {
    run(0.0);
  } else {
    run(uint64_t{0});
  }
  return single(std::move(out));
}

}  // namespace

DECANT_OP(Einsum) {
  return {.name = "Einsum",
          .doc = "Sums of products by an equation of index letters",
          .min_inputs = 1,
          .max_inputs = -1,
          .infer = infer_einsum,
          .eval = eval_einsum};
}

}  // namespace decant::ir
