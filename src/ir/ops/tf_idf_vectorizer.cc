#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

using Gram = std::vector<int64_t>;

struct Vectorizer {
  std::map<Gram, std::vector<size_t>> grams;  ///< n-gram -> its positions in ngram_indexes
  std::vector<int64_t> columns;
  std::vector<float> weights;
  std::string mode;
  int64_t shortest = 1, longest = 1, skips = 0, width = 0;
};

/// Pools are bounded by the file; n-gram lengths and skips by the pool and the input when they are used.
Result<Vectorizer> vectorizer_of(const Node& node) {
  const auto* pool = node.attribute<std::vector<int64_t>>("pool_int64s");
  const auto* counts = node.attribute<std::vector<int64_t>>("ngram_counts");
  const auto* columns = node.attribute<std::vector<int64_t>>("ngram_indexes");
  const auto* weights = node.attribute<std::vector<float>>("weights");
  if (!pool) return unsupported(node.describe() + ": only integer n-grams (pool_int64s) are supported");
  if (!counts || !columns || counts->empty())
    return node_error(node, "ngram_counts or ngram_indexes is missing");
  Vectorizer out;
  out.columns = *columns;
  out.mode = node.string_attribute("mode", "");
  if (out.mode != "TF" && out.mode != "IDF" && out.mode != "TFIDF") {
    return node_error(node, "mode must be TF, IDF or TFIDF");
  }
  if (weights && weights->size() != columns->size())
    return node_error(node, "needs one weight for each n-gram");
  out.weights = weights ? *weights : std::vector<float>(columns->size(), 1.0f);
  out.shortest = node.int_attribute("min_gram_length", 1);
  out.longest = node.int_attribute("max_gram_length", 1);
  out.skips = node.int_attribute("max_skip_count", 0);
  if (out.shortest < 1 || out.longest < out.shortest || out.skips < 0) {
    return node_error(node, "n-gram lengths or skips are out of range");
  }
  constexpr int64_t kWidest = int64_t{1} << 24;
  for (int64_t c : *columns) {
    if (c < 0 || c >= kWidest) return node_error(node, "an n-gram index is out of range");
    out.width = std::max(out.width, c + 1);
  }
  size_t gram = 0;
  for (size_t n = 0; n < counts->size(); ++n) {
    const int64_t begin = (*counts)[n];
    const int64_t end = n + 1 < counts->size() ? (*counts)[n + 1] : static_cast<int64_t>(pool->size());
    const auto length = static_cast<int64_t>(n + 1);
    if (begin < 0 || end < begin || end > static_cast<int64_t>(pool->size()) || (end - begin) % length != 0) {
      return node_error(node, "ngram_counts does not fit the pool");
    }
    for (int64_t at = begin; at < end; at += length, ++gram) {
      if (gram >= columns->size()) return node_error(node, "ngram_indexes is too short");
      out.grams[Gram(pool->begin() + at, pool->begin() + at + length)].push_back(gram);
    }
  }
  return out;
}

Status infer_tf_idf(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_index, "an integer tensor"));
  DECANT_ASSIGN(const Vectorizer vectorizer, vectorizer_of(context.node()));
  if (!context.shape(0)) {
    context.set_output(0, DType::kFloat32, std::nullopt);
    return ok_status();
  }
  Shape shape = *context.shape(0);
  if (shape.empty() || shape.size() > 2) return context.error("needs rank 1 or 2");
  shape.back() = Dim(vectorizer.width);
  context.set_output(0, DType::kFloat32, std::move(shape));
  return ok_status();
}

/// Counts n-grams of one row, whose items may be 1 to skips + 1 apart; 1-grams are counted once.
void count_grams(const Vectorizer& v, std::span<const int64_t> row, std::vector<double>& counts) {
  const auto length = static_cast<int64_t>(row.size());
  for (int64_t distance = 1; distance <= std::min(v.skips, length) + 1; ++distance) {
    const int64_t first = distance == 1 ? v.shortest : std::max<int64_t>(2, v.shortest);
    for (int64_t n = first; n <= std::min(v.longest, length); ++n) {
      for (int64_t at = 0; at + (n - 1) * distance < length; ++at) {
        Gram gram;
        for (int64_t i = 0; i < n; ++i) gram.push_back(row[static_cast<size_t>(at + i * distance)]);
        const auto it = v.grams.find(gram);
        if (it == v.grams.end()) continue;
        for (size_t g : it->second) counts[g] += 1;
      }
    }
  }
}

EvalResult eval_tf_idf(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const Vectorizer v, vectorizer_of(node));
  if (!is_index(x.dtype()) || x.rank() == 0 || x.rank() > 2)
    return node_error(node, "needs integers of rank 1 or 2");
  const int64_t rows = x.rank() == 2 ? x.dims()[0] : 1, length = x.dims().back();
  Dims dims = x.dims();
  dims.back() = v.width;
  DECANT_ASSIGN(Tensor out, Tensor::allocate(DType::kFloat32, dims));
  std::vector<double> values(static_cast<size_t>(out.elements()), 0.0);
  const std::vector<int64_t> items = read<int64_t>(x);
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<double> counts(v.columns.size(), 0.0);
    count_grams(v, std::span(items).subspan(static_cast<size_t>(r * length), static_cast<size_t>(length)),
                counts);
    for (size_t g = 0; g < counts.size(); ++g) {
      double value = v.mode == "IDF" ? std::min(counts[g], 1.0) : counts[g];
      if (v.mode != "TF") value *= v.weights[g];
      values[static_cast<size_t>(r * v.width + v.columns[g])] += value;
    }
  }
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

}  // namespace

DECANT_OP(TfIdfVectorizer) {
  return {.name = "TfIdfVectorizer",
          .doc = "Counts of n-grams of integers, weighted; mode = TF | IDF | TFIDF",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_tf_idf,
          .eval = eval_tf_idf};
}

}  // namespace decant::ir
