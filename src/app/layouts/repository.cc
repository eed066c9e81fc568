#include <algorithm>
#include <set>

#include "app/layouts/layouts.h"
#include "formats/huggingface/config.h"

namespace decant::app::layouts {
namespace {

namespace fs = std::filesystem;
using Role = Component::Role;

/// Names that exporters give their graphs. What follows one of them after an underscore is the file's dtype.
constexpr const char* kGraphs[] = {"model",
                                   "decoder_model",
                                   "decoder_with_past_model",
                                   "decoder_model_merged",
                                   "encoder_model",
                                   "vision_model",
                                   "text_model",
                                   "vision_encoder",
                                   "audio_encoder",
                                   "embed_tokens",
                                   "prompt_encoder_mask_decoder",
                                   "encoder",
                                   "decoder",
                                   "decoder_with_past"};

/// Suffixes that transformers.js knows; the most exact first, which is the order of preference.
constexpr const char* kSuffixes[] = {"fp32",  "fp16", "quantized", "int8",  "uint8", "q4",
                                     "q4f16", "bnb4", "q2",        "q2f16", "q1",    "q1f16"};

struct File {
  std::string stem, graph, dtype;  ///< "model_q4", "model", "q4"; "fp32" without a suffix
};

size_t preference(const std::string& dtype) {
  return static_cast<size_t>(std::find(std::begin(kSuffixes), std::end(kSuffixes), dtype) -
                             std::begin(kSuffixes));
}

File parse(const std::string& stem) {
  File file{stem, stem, "fp32"};
  size_t known = 0;
  const auto split = [&](size_t length) {
    file.graph = stem.substr(0, length);
    file.dtype = stem.substr(length + 1);
  };
  for (const std::string graph : kGraphs) {
    if (stem == graph) return {stem, stem, "fp32"};
    if (graph.size() <= known || stem.size() <= graph.size() + 1 || stem[graph.size()] != '_' ||
        stem.compare(0, graph.size(), graph) != 0)
      continue;
    known = graph.size();
    split(known);
  }
  for (const std::string suffix : kSuffixes) {
    if (known || stem.size() < suffix.size() + 2 || !stem.ends_with("_" + suffix)) continue;
    split(stem.size() - suffix.size() - 1);
    break;
  }
  return file;
}

/// --dtype's spellings to the suffixes'.
std::string normal_dtype(const std::string& name) {
  if (name == "f32" || name == "float32") return "fp32";
  if (name == "f16" || name == "float16") return "fp16";
  if (name == "q8") return "quantized";
  return name;
}

/// "fp32" to the name people know: files ending in _quantized are transformers.js' q8.
std::string shown_dtype(const std::string& dtype) { return dtype == "quantized" ? "q8" : dtype; }

std::string join(const std::set<std::string>& names) {
  std::string out;
  for (const std::string& n : names) out += (out.empty() ? "" : ", ") + n;
  return out;
}

std::vector<File> scan(const fs::path& folder) {
  std::vector<File> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".onnx" && entry.is_regular_file(error))
      files.push_back(parse(entry.path().stem().string()));
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.stem < b.stem; });
  return files;
}

bool is_encoder_decoder(const std::string& folder) {
  auto config = huggingface::ModelConfig::load(folder);
  if (!config.ok()) return false;
  const auto flag = config->get_bool("is_encoder_decoder", false);
  return flag.ok() && *flag;
}

/// Gives the graphs their roles and says what is missing for generation.
void assign_roles(Layout& layout) {
  const auto have = [&](std::initializer_list<const char*> names) -> Component* {
    for (const char* name : names) {
      for (Component& c : layout.components) {
        if (parse(c.name).graph == name) return &c;
      }
    }
    return nullptr;
  };
  Component* encoder = have({"encoder_model", "encoder"});
  Component* merged = have({"decoder_model_merged"});
  Component* first = have({"decoder_model", "decoder"});
  Component* with_past = have({"decoder_with_past_model", "decoder_with_past"});
  Component* model = have({"model"});
  // A decoder named by its file is the one to run.
  const std::string graph = parse(layout.chosen).graph;
  if (first && graph == parse(first->name).graph) with_past = merged = nullptr;
  if (with_past && graph == parse(with_past->name).graph) merged = nullptr;
  const std::string suffix = layout.dtype == "fp32" ? "" : "_" + normal_dtype(layout.dtype);
  if (layout.components.size() == 1 && !encoder && !first && !with_past && !merged)
    model = &layout.components[0];
  const bool crossed = encoder != nullptr || is_encoder_decoder(layout.folder);
  if (model) model->role = Role::kModel;
  if (encoder) encoder->role = Role::kEncoder;
  if (merged) {
    merged->role = Role::kDecoder;
    merged->steps_only = true;
    layout.description = encoder ? "encoder with a merged decoder" : "merged decoder (use_cache_branch)";
  } else if (with_past) {
    with_past->role = Role::kDecoder;
    with_past->steps_only = true;
    layout.description =
        first ? "decoder_model with decoder_with_past_model" : "decoder_with_past_model alone";
    if (encoder) layout.description = "encoder, " + layout.description;
    if (first) first->role = Role::kFirstStep;
    if (!first && crossed)
      layout.missing =
          "decoder_model" + suffix + ".onnx, which computes the key-values of the encoder's output";
  } else if (first) {
    first->role = Role::kDecoder;
    layout.description = encoder ? "encoder with a decoder without a past" : "decoder_model alone (no past)";
  } else if (model) {
    layout.description = "single onnx file (" + model->name + ".onnx)";
  } else if (encoder && layout.components.size() == 1) {
    layout.description = "encoder alone (" + encoder->name + ".onnx)";
  } else {
    layout.description = "onnx graphs";
  }
  // A whole model beside decoders of another age: the whole one needs nothing else.
  if (model && !encoder) {
    for (Component* c : {merged, first, with_past}) {
      if (c) c->role = Role::kPart;
    }
    layout.description = "single onnx file (" + model->name + ".onnx)";
    return;
  }
  if (!model && crossed && !encoder) layout.missing = "encoder_model" + suffix + ".onnx";
  if (!model && !merged && !first && !with_past) {
    layout.missing = "a decoder: decoder_model_merged" + suffix + ".onnx, or decoder_model" + suffix +
                     ".onnx with decoder_with_past_model" + suffix + ".onnx";
  }
}

/// The layout of the files of one dtype.
Result<Layout> layout_of(const fs::path& folder, const std::vector<File>& files, const std::string& dtype,
                         const std::string& chosen) {
  Layout layout;
  layout.folder = config_folder(folder);
  layout.chosen = chosen;
  layout.dtype = shown_dtype(dtype);
  std::set<std::string> shown, unknown;
  for (const File& f : files) {
    shown.insert(shown_dtype(f.dtype));
    if (f.dtype != dtype && f.stem != chosen) continue;
    layout.components.push_back({f.stem, (folder / (f.stem + ".onnx")).string()});
    const bool known = std::find(std::begin(kGraphs), std::end(kGraphs), f.graph) != std::end(kGraphs);
    if (!known) unknown.insert(f.stem + ".onnx");
  }
  layout.dtypes.assign(shown.begin(), shown.end());
  // A whole model, or a file outside the usual names, stands for itself.
  if (!chosen.empty() && (unknown.count(chosen + ".onnx") || parse(chosen).graph == "model")) {
    std::erase_if(layout.components, [&](const Component& c) { return c.name != chosen; });
    layout.components.at(0).role = Role::kModel;
    layout.description = "single onnx file";
    return layout;
  }
  if (unknown.size() > 1 && unknown.size() == layout.components.size()) {
    return invalid_argument(folder.string() + ": several graphs and none has a usual name; give one of " +
                            join(unknown));
  }
  assign_roles(layout);
  if (folder.filename() == "onnx") layout.description += ", in a repository's onnx folder";
  return layout;
}

}  // namespace

bool has_graphs(const fs::path& folder) { return !scan(folder).empty(); }

Result<Layout> from_repository(const fs::path& folder, const std::string& dtype, const std::string& chosen) {
  const std::vector<File> files = scan(folder);
  std::set<std::string> dtypes, shown;
  for (const File& f : files) {
    dtypes.insert(f.dtype);
    shown.insert(shown_dtype(f.dtype));
  }
  std::string wanted = normal_dtype(dtype);
  if (!chosen.empty()) {
    const std::string own = parse(chosen).dtype;
    if (!dtype.empty() && wanted != own)
      return invalid_argument((folder / (chosen + ".onnx")).string() + ": --dtype " + dtype +
                              " goes with a folder; this file is " + shown_dtype(own));
    return layout_of(folder, files, own, chosen);
  }
  // q8 is int8 or uint8 where there is no file _quantized.
  for (const char* other : {"int8", "uint8"}) {
    if (wanted == "quantized" && !dtypes.count(wanted) && dtypes.count(other)) wanted = other;
  }
  if (!wanted.empty()) {
    if (!dtypes.count(wanted))
      return not_found(folder.string() + ": no graph with --dtype " + dtype + "; there are " + join(shown));
    return layout_of(folder, files, wanted, "");
  }
  // The most exact dtype whose graphs are complete; the most exact one when none is.
  std::vector<std::string> order(dtypes.begin(), dtypes.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const std::string& a, const std::string& b) { return preference(a) < preference(b); });
  for (const std::string& candidate : order) {
    auto layout = layout_of(folder, files, candidate, "");
    if (!layout.ok() || layout->missing.empty()) return layout;
  }
  return layout_of(folder, files, order.at(0), "");
}

}  // namespace decant::app::layouts
