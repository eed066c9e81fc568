#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

struct Activation {
  double (*f)(double x, double alpha, double beta);
  double alpha, beta;
};

struct ActivationRow {
  std::string_view name;
  bool has_alpha, has_beta;
  double alpha, beta;
  double (*f)(double x, double alpha, double beta);
};

constexpr ActivationRow kActivations[] = {
    {"relu", false, false, 0, 0, [](double x, double, double) { return std::max(x, 0.0); }},
    {"tanh", false, false, 0, 0, [](double x, double, double) { return std::tanh(x); }},
    {"sigmoid", false, false, 0, 0, [](double x, double, double) { return 1 / (1 + std::exp(-x)); }},
    {"affine", true, true, 1, 0, [](double x, double a, double b) { return a * x + b; }},
    {"leakyrelu", true, false, 0.01, 0, [](double x, double a, double) { return x < 0 ? a * x : x; }},
    {"thresholdedrelu", true, false, 1, 0, [](double x, double a, double) { return x > a ? x : 0; }},
    {"scaledtanh", true, true, 1, 1, [](double x, double a, double b) { return a * std::tanh(b * x); }},
    {"hardsigmoid", true, true, 0.2, 0.5,
     [](double x, double a, double b) { return std::clamp(a * x + b, 0.0, 1.0); }},
    {"elu", true, false, 1, 0, [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; }},
    {"softsign", false, false, 0, 0, [](double x, double, double) { return x / (1 + std::fabs(x)); }},
    {"softplus", false, false, 0, 0,
     [](double x, double, double) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }},
};

enum class Cell { kRnn, kGru, kLstm };

int64_t gates_of(Cell cell) { return cell == Cell::kRnn ? 1 : cell == Cell::kGru ? 3 : 4; }

struct Options {
  int64_t directions;
  bool first_reversed;  ///< direction "reverse"
  bool batch_first;     ///< layout 1
  double clip;
  std::vector<Activation> activations;  ///< those of each direction in turn
  size_t each;                          ///< activations of one direction
};

Result<Options> read_options(const Node& node, Cell cell) {
  Options o;
  const std::string direction = node.string_attribute("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return node_error(node, fmt::format("direction '{}'", direction));
  }
  o.directions = direction == "bidirectional" ? 2 : 1;
  o.first_reversed = direction == "reverse";
  const int64_t layout = node.int_attribute("layout", 0);
  if (layout != 0 && layout != 1) return node_error(node, fmt::format("layout {}", layout));
  o.batch_first = layout == 1;
  o.clip = node.float_attribute("clip", std::numeric_limits<float>::infinity());
  if (!(o.clip > 0)) return node_error(node, "clip must be positive");
  std::vector<std::string> defaults = {"Tanh"};
  if (cell == Cell::kGru) defaults = {"Sigmoid", "Tanh"};
  if (cell == Cell::kLstm) defaults = {"Sigmoid", "Tanh", "Tanh"};
  o.each = defaults.size();
  std::vector<std::string> names;
  if (const auto* list = node.attribute<std::vector<std::string>>("activations")) names = *list;
  while (names.size() < o.each * static_cast<size_t>(o.directions)) {
    if (names.size() % o.each != 0 ||
        (!names.empty() && node.attribute<std::vector<std::string>>("activations")))
      return node_error(node, fmt::format("{} activations for {} directions", names.size(), o.directions));
    names.insert(names.end(), defaults.begin(), defaults.end());
  }
  const auto* alphas = node.attribute<std::vector<float>>("activation_alpha");
  const auto* betas = node.attribute<std::vector<float>>("activation_beta");
  size_t alpha = 0, beta = 0;
  for (std::string name : names) {
    for (char& c : name) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    const auto* row = std::find_if(std::begin(kActivations), std::end(kActivations),
                                   [&](const ActivationRow& r) { return r.name == name; });
    if (row == std::end(kActivations)) return node_error(node, fmt::format("activation '{}'", name));
    Activation a{row->f, row->alpha, row->beta};
    // The lists hold values for those activations only that take one.
    if (row->has_alpha && alphas != nullptr && alpha < alphas->size()) a.alpha = (*alphas)[alpha++];
    if (row->has_beta && betas != nullptr && beta < betas->size()) a.beta = (*betas)[beta++];
    o.activations.push_back(a);
  }
  return o;
}

template <Cell cell>
Status infer_recurrent(InferContext& context) {
  const Node& node = context.node();
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, 4));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 5, context.input_count()));
  for (size_t i : {0, 1, 2}) DECANT_RETURN_IF_ERROR(require_rank(context, i, 3));
  DECANT_ASSIGN(const Options o, read_options(node, cell));
  Dim hidden = node.int_attribute("hidden_size", 0);
  if (context.shape(2)) {
    const Dim& columns = (*context.shape(2))[2];
    if (hidden == Dim(0)) {
      hidden = columns;
    } else {
      DECANT_ASSIGN(hidden, merge_dims(context, hidden, columns));
    }
  }
  if (hidden == Dim(0)) hidden = context.fresh_symbol("hidden");
  Shape x = context.shape(0) ? *context.shape(0) : context.fresh_shape(3, "rnn");
  const Dim steps = x[o.batch_first ? 1 : 0], batch = x[o.batch_first ? 0 : 1], directions = o.directions;
  const Shape state = o.batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  context.set_output(
      0, context.dtype(0),
      o.batch_first ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden});
  context.set_output(1, context.dtype(0), state);
  if (cell == Cell::kLstm) context.set_output(2, context.dtype(0), state);
  return ok_status();
}

/// Everything of one run, as doubles.
struct Problem {
  Options options;
  int64_t steps, batch, inputs, hidden, gates;
  std::vector<double> x, w, r, b, p;
  std::vector<int64_t> lengths;
  std::vector<double> h, c;  ///< [direction][batch][hidden]
};

/// A state [directions, batch, hidden], or with batch first, read as directions first; zeros when left out.
Result<std::vector<double>> read_state(const Node& node, const Problem& p, const Tensor* t) {
  std::vector<double> out(static_cast<size_t>(p.options.directions * p.batch * p.hidden), 0.0);
  if (t == nullptr) return out;
  const Dims wanted = p.options.batch_first ? Dims{p.batch, p.options.directions, p.hidden}
                                            : Dims{p.options.directions, p.batch, p.hidden};
  if (t->dims() != wanted || !is_float(t->dtype())) {
    return node_error(node, fmt::format("the initial state {} does not fit", describe(*t)));
  }
  for (int64_t i = 0; i < t->elements(); ++i) {
    const int64_t row = i / p.hidden;
    const int64_t to =
        p.options.batch_first ? row % p.options.directions * p.batch + row / p.options.directions : row;
    out[static_cast<size_t>(to * p.hidden + i % p.hidden)] = t->double_at(i);
  }
  return out;
}

Result<Problem> plan(const Node& node, Cell cell, EvalInputs inputs) {
  Problem p;
  DECANT_ASSIGN(p.options, read_options(node, cell));
  const Tensor &x = *inputs[0], &w = *inputs[1], &r = *inputs[2];
  p.gates = gates_of(cell);
  if (!is_float(x.dtype()) || x.rank() != 3 || w.rank() != 3 || r.rank() != 3) {
    return node_error(node, "needs float tensors of rank 3");
  }
  p.steps = x.dims()[p.options.batch_first ? 1 : 0];
  p.batch = x.dims()[p.options.batch_first ? 0 : 1];
  p.inputs = x.dims()[2];
  p.hidden = r.dims()[2];
  const int64_t directions = p.options.directions;
  if (p.hidden < 1 || p.hidden > (int64_t{1} << 40) ||
      w.dims() != Dims{directions, p.gates * p.hidden, p.inputs} ||
      r.dims() != Dims{directions, p.gates * p.hidden, p.hidden}) {
    return node_error(node, fmt::format("{}, {} and {} do not fit", describe(x), describe(w), describe(r)));
  }
  const int64_t given = node.int_attribute("hidden_size", p.hidden);
  if (given != p.hidden)
    return node_error(node, fmt::format("hidden_size {} does not fit the weights", given));
  const auto list = [&](size_t i, int64_t each, std::vector<double>* out) -> Status {
    out->assign(static_cast<size_t>(directions * each), 0.0);
    const Tensor* t = optional_input(inputs, i);
    if (t == nullptr) return ok_status();
    if (!is_float(t->dtype()) || t->dims() != Dims{directions, each}) {
      return node_error(node,
                        fmt::format("{} does not fit {} values for each direction", describe(*t), each));
    }
    *out = read<double>(*t);
    return ok_status();
  };
  DECANT_RETURN_IF_ERROR(list(3, 2 * p.gates * p.hidden, &p.b));
  if (cell == Cell::kLstm) DECANT_RETURN_IF_ERROR(list(7, 3 * p.hidden, &p.p));
  p.lengths.assign(static_cast<size_t>(p.batch), p.steps);
  if (const Tensor* t = optional_input(inputs, 4)) {
    if (t->dims() != Dims{p.batch} || !is_index(t->dtype())) {
      return node_error(node, fmt::format("the sequence lengths {} do not fit", describe(*t)));
    }
    p.lengths = t->to_ints();
    for (int64_t length : p.lengths) {
      if (length < 0 || length > p.steps)
        return node_error(node, fmt::format("a sequence length of {}", length));
    }
  }
  p.x = read<double>(x);
  p.w = read<double>(w);
  p.r = read<double>(r);
  DECANT_ASSIGN(p.h, read_state(node, p, optional_input(inputs, 5)));
  DECANT_ASSIGN(p.c, read_state(node, p, cell == Cell::kLstm ? optional_input(inputs, 6) : nullptr));
  return p;
}

/// One sequence of one direction: hidden and cell state move along; pre-activations come from `input` and
/// `recur`.
class Steps {
 public:
  Steps(const Node& node, Cell cell, Problem& p, int64_t direction, int64_t entry)
      : cell_(cell), p_(p), direction_(direction) {
    const int64_t at = (direction * p.batch + entry) * p.hidden;
    h_ = p.h.data() + at;
    c_ = p.c.data() + at;
    linear_before_reset_ = node.int_attribute("linear_before_reset", 0) != 0;
    input_forget_ = node.int_attribute("input_forget", 0) != 0;
    sums_.resize(static_cast<size_t>(p.gates * p.hidden));
  }

  const double* hidden() const { return h_; }

  void step(const double* x) {
    for (int64_t row = 0; row < p_.gates * p_.hidden; ++row) {
      const double* weights = p_.w.data() + (direction_ * p_.gates * p_.hidden + row) * p_.inputs;
      double sum = bias(row);
      for (int64_t i = 0; i < p_.inputs; ++i) sum += weights[i] * x[i];
      sums_[static_cast<size_t>(row)] = sum;
    }
    if (cell_ == Cell::kRnn) rnn();
    if (cell_ == Cell::kGru) gru();
    if (cell_ == Cell::kLstm) lstm();
  }

 private:
  double bias(int64_t row) const {
    return p_.b[static_cast<size_t>(direction_ * 2 * p_.gates * p_.hidden + row)];
  }
  double recurrent_bias(int64_t row) const { return bias(p_.gates * p_.hidden + row); }

  /// Row `row` of R times a state.
  double recur(int64_t row, const double* state) const {
    const double* weights = p_.r.data() + (direction_ * p_.gates * p_.hidden + row) * p_.hidden;
    double sum = 0;
    for (int64_t i = 0; i < p_.hidden; ++i) sum += weights[i] * state[i];
    return sum;
  }

  double activate(size_t which, double x) const {
    const Activation& a = p_.options.activations[static_cast<size_t>(direction_) * p_.options.each + which];
    return a.f(std::clamp(x, -p_.options.clip, p_.options.clip), a.alpha, a.beta);
  }

  double& sum(int64_t gate, int64_t i) { return sums_[static_cast<size_t>(gate * p_.hidden + i)]; }
  double full(int64_t gate, int64_t i) {
    const int64_t row = gate * p_.hidden + i;
    return sum(gate, i) + recur(row, h_) + recurrent_bias(row);
  }

  void rnn() {
    std::vector<double> next;
    for (int64_t i = 0; i < p_.hidden; ++i) next.push_back(activate(0, full(0, i)));
    std::copy(next.begin(), next.end(), h_);
  }

  /// Gates: update z, reset r, candidate h.
  void gru() {
    std::vector<double> z, r, reset, next;
    for (int64_t i = 0; i < p_.hidden; ++i) {
      z.push_back(activate(0, full(0, i)));
      r.push_back(activate(0, full(1, i)));
      reset.push_back(r.back() * h_[i]);
    }
    for (int64_t i = 0; i < p_.hidden; ++i) {
      const auto at = static_cast<size_t>(i);
      const int64_t row = 2 * p_.hidden + i;
      const double part = linear_before_reset_ ? r[at] * (recur(row, h_) + recurrent_bias(row))
                                               : recur(row, reset.data()) + recurrent_bias(row);
      next.push_back((1 - z[at]) * activate(1, sum(2, i) + part) + z[at] * h_[i]);
    }
    std::copy(next.begin(), next.end(), h_);
  }

  /// Gates: input i, output o, forget f, cell c; peepholes in the order i, o, f.
  void lstm() {
    const double* peep = p_.p.data() + direction_ * 3 * p_.hidden;
    std::vector<double> next;
    for (int64_t i = 0; i < p_.hidden; ++i) {
      const double in = activate(0, full(0, i) + peep[i] * c_[i]);
      const double forget =
          input_forget_ ? 1 - in : activate(0, full(2, i) + peep[2 * p_.hidden + i] * c_[i]);
      const double cell = forget * c_[i] + in * activate(1, full(3, i));
      const double out = activate(0, full(1, i) + peep[p_.hidden + i] * cell);
      c_[i] = cell;
      next.push_back(out * activate(2, cell));
    }
    std::copy(next.begin(), next.end(), h_);
  }

  Cell cell_;
  Problem& p_;
  int64_t direction_;
  double *h_, *c_;
  bool linear_before_reset_, input_forget_;
  std::vector<double> sums_;
};

/// Outputs behind a sequence's end are 0; its states are those of its last step.
template <Cell cell>
EvalResult eval_recurrent(const Node& node, EvalInputs inputs) {
  DECANT_ASSIGN(Problem p, plan(node, cell, inputs));
  const Options& o = p.options;
  const DType dtype = inputs[0]->dtype();
  const Dims y_dims = o.batch_first ? Dims{p.batch, p.steps, o.directions, p.hidden}
                                    : Dims{p.steps, o.directions, p.batch, p.hidden};
  DECANT_ASSIGN(Tensor y, Tensor::allocate(dtype, y_dims));
  std::vector<double> values(static_cast<size_t>(y.elements()), 0.0);
  for (int64_t d = 0; d < o.directions; ++d) {
    const bool reversed = o.first_reversed || d == 1;
    for (int64_t n = 0; n < p.batch; ++n) {
      Steps steps(node, cell, p, d, n);
      const int64_t length = p.lengths[static_cast<size_t>(n)];
      for (int64_t s = 0; s < length; ++s) {
        const int64_t t = reversed ? length - 1 - s : s;
        steps.step(p.x.data() + (o.batch_first ? n * p.steps + t : t * p.batch + n) * p.inputs);
        const int64_t row =
            o.batch_first ? (n * p.steps + t) * o.directions + d : (t * o.directions + d) * p.batch + n;
        std::copy(steps.hidden(), steps.hidden() + p.hidden, values.begin() + row * p.hidden);
      }
    }
  }
  write_range<double>(y, 0, std::span<const double>(values));
  std::vector<Tensor> out(std::max<size_t>(1, node.outputs().size()));
  out[0] = std::move(y);
  for (size_t i = 1; i < out.size() && i < 3; ++i) {
    const std::vector<double>& state = i == 1 ? p.h : p.c;
    std::vector<double> ordered = state;
    for (int64_t row = 0; o.batch_first && row < o.directions * p.batch; ++row) {
      const int64_t to = row % p.batch * o.directions + row / p.batch;
      std::copy_n(state.begin() + row * p.hidden, p.hidden, ordered.begin() + to * p.hidden);
    }
    const Dims dims =
        o.batch_first ? Dims{p.batch, o.directions, p.hidden} : Dims{o.directions, p.batch, p.hidden};
    DECANT_ASSIGN(out[i], make_tensor<double>(dtype, dims, ordered));
  }
  return out;
}

}  // namespace

DECANT_OP(RNN) {
  return {.name = "RNN",
          .doc = "Elman recurrence; directions, layouts, activations, clip, sequence lengths",
          .min_inputs = 3,
          .max_inputs = 6,
          .max_outputs = 2,
          .infer = infer_recurrent<Cell::kRnn>,
          .eval = eval_recurrent<Cell::kRnn>};
}

DECANT_OP(GRU) {
  return {.name = "GRU",
          .doc = "Gated recurrent unit, the reset before or after the product",
          .min_inputs = 3,
          .max_inputs = 6,
          .max_outputs = 2,
          .infer = infer_recurrent<Cell::kGru>,
          .eval = eval_recurrent<Cell::kGru>};
}

DECANT_OP(LSTM) {
  return {.name = "LSTM",
          .doc = "Long short-term memory with peepholes and coupled gates",
          .min_inputs = 3,
          .max_inputs = 8,
          .max_outputs = 3,
          .infer = infer_recurrent<Cell::kLstm>,
          .eval = eval_recurrent<Cell::kLstm>};
}

}  // namespace decant::ir
