#include "app/weight_sources.h"

#include <atomic>
#include <cstring>
#include <map>
#include <memory>

#include "app/gguf_names.h"
#include "base/block_formats.h"
#include "base/encoding.h"
#include "base/low_bit.h"
#include "formats/gguf/gguf_file.h"
#include "formats/safetensors/safetensors_file.h"
#include "ir/packed_constant.h"
#include "ir/tensor.h"

namespace decant::app {
namespace {

using ir::Constant;
using ir::ConstantPtr;

class SafetensorsWeights : public models::WeightSource {
 public:
  explicit SafetensorsWeights(std::shared_ptr<const safetensors::SafetensorsFile> file)
      : file_(std::move(file)) {}

  Result<ConstantPtr> find(const std::string& name) const override {
    const safetensors::Tensor* t = file_->find(name);
    if (!t) return ConstantPtr();
    return Constant::from_bytes(t->dtype, t->dims, t->bytes, t->file);
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const safetensors::Tensor& t : file_->tensors()) out.push_back(t.name);
    return out;
  }

 private:
  std::shared_ptr<const safetensors::SafetensorsFile> file_;
};

/// Block-encoded rows whose pages of the file leave memory when they have been read.
class ReadOnceRows : public LowBitRows {
 public:
  ReadOnceRows(std::unique_ptr<LowBitRows> rows, const gguf::Tensor& tensor)
      : rows_(std::move(rows)), tensor_(tensor) {
    form_ = rows_->form();
  }
  ~ReadOnceRows() override {
    if (read_) tensor_.file->release(tensor_.bytes);
  }
  ReadOnceRows(const ReadOnceRows&) = delete;
  ReadOnceRows& operator=(const ReadOnceRows&) = delete;

  void read(int64_t first, int64_t rows, uint8_t* codes, float* scales, float* zeros) const override {
    rows_->read(first, rows, codes, scales, zeros);
    read_.store(true, std::memory_order_relaxed);
  }
  LowBitSource source() const override { return rows_->source(); }

 private:
  std::unique_ptr<LowBitRows> rows_;
  const gguf::Tensor& tensor_;
  mutable std::atomic<bool> read_{false};
};

/// Rows of a GGUF tensor: decoded, and in checkpoint order. With `heads` above 0 row (head, half, i) of the
/// result is row (head, i, half) of the file, half in {0, 1}, i < rows / heads / 2.
class GgufRows : public ir::RowSource {
 public:
  GgufRows(gguf::Tensor tensor, int64_t heads) : tensor_(std::move(tensor)), heads_(heads) {
    columns_ = tensor_.dims.size() > 1 ? tensor_.dims[1] : 1;
    stored_row_ = tensor_.encoding == Encoding::kDense
                      ? static_cast<size_t>(columns_) * size_of(tensor_.dtype)
                      : static_cast<size_t>(columns_) / block_elements(tensor_.encoding) *
                            block_bytes(tensor_.encoding);
    if (tensor_.encoding == Encoding::kDense || tensor_.dims.size() != 2) return;
    packed_.rows = [this](bool columns) -> std::unique_ptr<LowBitRows> {
      if (columns) return nullptr;
      return std::make_unique<ReadOnceRows>(
          low_bit_rows(tensor_.encoding, tensor_.bytes, tensor_.dims[0], columns_,
                       [this](int64_t row) { return stored_row(row); }),
          tensor_);
    };
  }

  Status read_rows(int64_t begin, int64_t end, std::span<std::byte> out) const override {
    const size_t row_bytes = static_cast<size_t>(columns_) * size_of(tensor_.dtype);
    for (int64_t row = begin; row < end; ++row) {
      const std::byte* source = tensor_.bytes.data() + static_cast<size_t>(stored_row(row)) * stored_row_;
      std::byte* target = out.data() + static_cast<size_t>(row - begin) * row_bytes;
      if (tensor_.encoding == Encoding::kDense) {
        std::memcpy(target, source, row_bytes);
      } else {
        decode_blocks(tensor_.encoding, source, reinterpret_cast<float*>(target),
                      static_cast<size_t>(columns_) / block_elements(tensor_.encoding));
      }
    }
    return ok_status();
  }
  const ir::PackedConstant* packed() const override { return packed_.rows ? &packed_ : nullptr; }

 private:
  int64_t stored_row(int64_t row) const {
    if (heads_ == 0) return row;
    const int64_t per_head = tensor_.dims[0] / heads_, half_size = per_head / 2;
    const int64_t head = row / per_head, half = row % per_head / half_size, i = row % half_size;
    return head * per_head + i * 2 + half;
  }

  gguf::Tensor tensor_;
  int64_t heads_;
  int64_t columns_ = 1;
  size_t stored_row_ = 0;
  ir::PackedConstant packed_;
};

class GgufWeights : public models::WeightSource {
 public:
  GgufWeights(std::shared_ptr<const gguf::GgufFile> file, int64_t heads, int64_t kv_heads)
      : file_(std::move(file)), heads_(heads), kv_heads_(kv_heads) {
    const auto architecture = file_->get_string("general.architecture", "");
    for (const gguf::Tensor& t : file_->tensors()) {
      if (is_gguf_setting(t.name)) continue;
      const auto name = checkpoint_name(t.name, architecture.ok() ? *architecture : "");
      entries_.emplace(name ? name->checkpoint : t.name,
                       Entry{&t, name ? name->rows : GgufName::Rows::kPlain});
    }
  }

  Result<ConstantPtr> find(const std::string& name) const override {
    auto it = entries_.find(name);
    if (it == entries_.end()) return ConstantPtr();
    const gguf::Tensor& t = *it->second.tensor;
    const bool dense = t.encoding == Encoding::kDense;
    if (it->second.rows == GgufName::Rows::kPlain && dense) {
      return Constant::from_bytes(t.dtype, t.dims, t.bytes, t.file);
    }
    const int64_t heads = it->second.rows == GgufName::Rows::kPlain        ? 0
                          : it->second.rows == GgufName::Rows::kQueryHeads ? heads_
                                                                           : kv_heads_;
    const std::string what =
        t.name + " " + std::string(to_string(t.encoding)) + ir::describe(t.dtype, t.dims);
    if (t.dims.empty() || t.dims.size() > 2)
      return unsupported(what + ": only vectors and matrices can be decoded");
    if (heads > 0 && t.dims[0] % (heads * 2) != 0) {
      return invalid_model(what + ": rows are no multiple of twice the " + std::to_string(heads) + " heads");
    }
    const auto block = static_cast<int64_t>(block_elements(t.encoding));
    if (!dense && (t.dims.size() != 2 || t.dims[1] % block != 0)) {
      return invalid_model(what + ": rows are no multiple of the encoding's blocks of " +
                           std::to_string(block));
    }
    return Constant::from_rows(t.dtype, t.dims, std::make_shared<GgufRows>(t, heads));
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, entry] : entries_) out.push_back(name);
    return out;
  }

 private:
  struct Entry {
    const gguf::Tensor* tensor;
    GgufName::Rows rows;
  };
  std::shared_ptr<const gguf::GgufFile> file_;
  int64_t heads_, kv_heads_;
  std::map<std::string, Entry> entries_;
};

}  // namespace

std::unique_ptr<models::WeightSource> safetensors_weights(
    std::shared_ptr<const safetensors::SafetensorsFile> file) {
  return std::make_unique<SafetensorsWeights>(std::move(file));
}

Result<std::unique_ptr<models::WeightSource>> gguf_weights(std::shared_ptr<const gguf::GgufFile> file) {
  DECANT_ASSIGN(const std::string_view architecture, file->get_string("general.architecture"));
  const std::string key = std::string(architecture) + ".attention.head_count";
  DECANT_ASSIGN(const uint64_t heads, file->get_u64(key));
  DECANT_ASSIGN(const uint64_t kv_heads, file->get_u64(key + "_kv", heads));
  constexpr uint64_t kMaxHeads = 1u << 20;
  if (heads == 0 || kv_heads == 0 || heads > kMaxHeads || kv_heads > kMaxHeads) {
    return invalid_model(file->path() + ": " + key + " and " + key + "_kv are " + std::to_string(heads) +
                         " and " + std::to_string(kv_heads));
  }
  return std::unique_ptr<models::WeightSource>(std::make_unique<GgufWeights>(
      std::move(file), static_cast<int64_t>(heads), static_cast<int64_t>(kv_heads)));
}

}  // namespace decant::app
