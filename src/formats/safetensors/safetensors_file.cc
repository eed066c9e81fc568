#include "formats/safetensors/safetensors_file.h"

#include <simdjson.h>

#include <filesystem>
#include <map>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/quote_name.h"
#include "formats/safetensors/header.h"

namespace decant::safetensors {
namespace {

constexpr const char* kSingleName = "model.safetensors";
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr uint64_t kMaxIndexBytes = 100'000'000;
constexpr size_t kMaxShards = 10000;

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

/// weight_map of an index: shard file name to the tensors it must hold.
using Shards = std::map<std::string, std::vector<std::string>>;

Result<Shards> read_index(const MappedFile& file) {
  const auto bytes = file.bytes();
  if (bytes.size() > kMaxIndexBytes) return invalid_model("is larger than an index may be (100000000 bytes)");
  const simdjson::padded_string padded(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (padded.data() == nullptr) return resource_error("no memory to read it");
  simdjson::dom::parser parser;
  simdjson::dom::object root;
  if (const auto code = parser.parse(padded).get(root)) {
    return invalid_model(std::string("is not JSON of an object: ") + simdjson::error_message(code));
  }
  simdjson::dom::object weights;
  if (root["weight_map"].get(weights)) return invalid_model("has no object \"weight_map\"");
  Shards shards;
  for (const auto& field : weights) {
    std::string_view shard;
    if (field.value.get(shard))
      return invalid_model("weight_map entry " + quote_name(field.key) + " is no file name");
    shards[std::string(shard)].emplace_back(field.key);
    if (shards.size() > kMaxShards)
      return invalid_model("names more than " + std::to_string(kMaxShards) + " shards");
  }
  if (shards.empty()) return invalid_model("names no shards");
  return shards;
}

}  // namespace

struct SafetensorsFile::Impl {
  std::string path;
  std::vector<Tensor> tensors;
  MetadataEntries metadata;
  std::unordered_map<std::string_view, size_t> index;

  Status read_file(const std::shared_ptr<const MappedFile>& file) {
    return read_header(file, tensors, metadata).with_context(file->path());
  }

  Status read_shards(const std::string& folder, const std::shared_ptr<const MappedFile>& index_file) {
    auto shards = read_index(*index_file);
    if (!shards.ok()) return std::move(shards).status().with_context(index_file->path());
    // All files are opened before any is read: with a shard missing nothing else matters.
    std::vector<std::shared_ptr<const MappedFile>> files;
    for (const auto& [name, wanted] : *shards) {
      auto file = MappedFile::open_beneath(folder, name);
      if (!file.ok()) {
        return std::move(file).status().with_context(index_file->path() + ": shard " + quote_name(name));
      }
      files.push_back(*std::move(file));
    }
    for (const auto& file : files) DECANT_RETURN_IF_ERROR(read_file(file));
    DECANT_RETURN_IF_ERROR(build_index());
    size_t i = 0;
    for (const auto& [name, wanted] : *shards) {
      for (const std::string& tensor : wanted) {
        const auto found = index.find(tensor);
        if (found == index.end() || tensors[found->second].file != files[i]) {
          return invalid_model(index_file->path() + ": tensor " + quote_name(tensor) + " is not in shard " +
                               quote_name(name) + ", where the index says it is");
        }
      }
      ++i;
    }
    return ok_status();
  }

  Status build_index() {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const auto [place, added] = index.emplace(tensors[i].name, i);
      if (!added) {
        return invalid_model("tensor " + quote_name(tensors[i].name) + " is in " +
                             tensors[place->second].file->path() + " and again in " +
                             tensors[i].file->path());
      }
    }
    return ok_status();
  }
};

SafetensorsFile::SafetensorsFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SafetensorsFile::~SafetensorsFile() = default;

Result<std::shared_ptr<const SafetensorsFile>> SafetensorsFile::open(const std::string& path) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  std::error_code ignored;
  std::shared_ptr<const MappedFile> file;
  std::string folder = folder_of(path);
  bool is_index = path.ends_with(".index.json");
  if (std::filesystem::is_directory(path, ignored)) {
    folder = path;
    auto single = MappedFile::open_beneath(folder, kSingleName);
    is_index = single.status().code() == StatusCode::kNotFound;
    if (is_index) single = MappedFile::open_beneath(folder, kIndexName);
    if (single.status().code() == StatusCode::kNotFound) {
      return not_found(path + " holds neither " + kSingleName + " nor " + kIndexName);
    }
    DECANT_ASSIGN(file, std::move(single));
  } else {
    DECANT_ASSIGN(file, MappedFile::open(path));
  }
  if (is_index) {
    DECANT_RETURN_IF_ERROR(impl->read_shards(folder, file));
  } else {
    DECANT_RETURN_IF_ERROR(impl->read_file(file));
    DECANT_RETURN_IF_ERROR(impl->build_index());
  }
  return std::shared_ptr<const SafetensorsFile>(new SafetensorsFile(std::move(impl)));
}

const std::string& SafetensorsFile::path() const { return impl_->path; }
std::span<const Tensor> SafetensorsFile::tensors() const { return impl_->tensors; }
std::span<const std::pair<std::string, std::string>> SafetensorsFile::metadata() const {
  return impl_->metadata;
}

const Tensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = impl_->index.find(name);
  return found == impl_->index.end() ? nullptr : &impl_->tensors[found->second];
}

}  // namespace decant::safetensors
