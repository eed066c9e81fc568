#include "text/tokenizer/component_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <utility>

#include "text/tokenizer/utf8.h"

namespace decant::text::bpe {
namespace {

using simdjson::dom::element;

constexpr int kMaxDepth = 16;
constexpr size_t kMaxSteps = 256;
constexpr size_t kMaxText = 4096;

std::string_view text_or(const element& e, std::string_view key, std::string_view fallback) {
  std::string_view value;
  return e[key].get(value) == simdjson::SUCCESS ? value : fallback;
}

bool flag_or(const element& e, std::string_view key, bool fallback) {
  bool value = false;
  return e[key].get(value) == simdjson::SUCCESS ? value : fallback;
}

Result<std::string> required_text(const element& e, std::string_view key) {
  std::string_view value;
  if (e[key].get(value) != simdjson::SUCCESS)
    return invalid_model(fmt::format("field '{}' should be a string", key));
  if (value.size() > kMaxText) return unsupported(fmt::format("field '{}' has {} bytes", key, value.size()));
  return std::string(value);
}

Result<size_t> count_field(const element& e, std::string_view key) {
  uint64_t value = 0;
  if (e[key].get(value) != simdjson::SUCCESS)
    return invalid_model(fmt::format("field '{}' should be a count", key));
  return static_cast<size_t>(value);
}

/// Calls `read(step element, type)` for every component, Sequences unrolled; `list` names the array of a
/// Sequence.
template <typename Read>
Status for_each_component(const element& e, std::string_view list, int depth, Read&& read) {
  if (e.is_null()) return ok_status();
  std::string_view type;
  if (e["type"].get(type) != simdjson::SUCCESS) return invalid_model("a component has no 'type'");
  if (type != "Sequence") {
    return read(e, type).with_context(fmt::format("component '{}'", type));
  }
  if (depth >= kMaxDepth) return unsupported(fmt::format("Sequences nested more than {} deep", kMaxDepth));
  simdjson::dom::array items;
  if (e[list].get(items) != simdjson::SUCCESS)
    return invalid_model(fmt::format("a Sequence has no array '{}'", list));
  for (const element item : items) DECANT_RETURN_IF_ERROR(for_each_component(item, list, depth + 1, read));
  return ok_status();
}

Status unknown_type(std::string_view supported) {
  return unsupported(fmt::format("has no implementation; supported: {}", supported));
}

struct Pattern {
  std::string literal;
  std::optional<std::string> regex;
};

Result<Pattern> read_pattern(const element& e) {
  Pattern p;
  element pattern;
  if (e["pattern"].get(pattern) != simdjson::SUCCESS) return invalid_model("field 'pattern' is missing");
  std::string_view text;
  if (pattern["String"].get(text) == simdjson::SUCCESS) {
    p.literal = text;
  } else if (pattern["Regex"].get(text) == simdjson::SUCCESS) {
    p.regex = std::string(text);
  } else {
    return invalid_model("field 'pattern' should hold a 'String' or a 'Regex'");
  }
  return p;
}

Result<SplitBehavior> read_behavior(const element& e, std::string_view fallback) {
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kNames = {{
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous},
  }};
  const std::string_view name = text_or(e, "behavior", fallback);
  for (const auto& [known, behavior] : kNames) {
    if (known == name) return behavior;
  }
  return invalid_model(fmt::format("unknown behavior '{}'", name));
}

/// Files of older versions have `add_prefix_space` in place of `prepend_scheme`.
Result<PrependScheme> read_prepend(const element& e) {
  const std::string_view name =
      text_or(e, "prepend_scheme", flag_or(e, "add_prefix_space", true) ? "always" : "never");
  if (name == "always") return PrependScheme::kAlways;
  if (name == "never") return PrependScheme::kNever;
  if (name == "first") return PrependScheme::kFirst;
  return invalid_model(fmt::format("unknown prepend_scheme '{}'", name));
}

Result<std::string> read_replacement(const element& e) {
  DECANT_ASSIGN(std::string text, required_text(e, "replacement"));
  if (text.empty() || text.size() != utf8_length(text[0]))
    return invalid_model("'replacement' should be one character");
  return text;
}

Status read_normalizer_step(const element& e, std::string_view type, NormalizerStep& step) {
  constexpr std::array<std::pair<std::string_view, NormalForm>, 4> kForms = {{{"NFC", NormalForm::kNfc},
                                                                              {"NFD", NormalForm::kNfd},
                                                                              {"NFKC", NormalForm::kNfkc},
                                                                              {"NFKD", NormalForm::kNfkd}}};
  for (const auto& [name, form] : kForms) {
    if (name != type) continue;
    step.kind = NormalizerStep::kUnicode;
    step.form = form;
    return ok_status();
  }
  if (type == "Replace") {
    step.kind = NormalizerStep::kReplace;
    DECANT_ASSIGN(Pattern pattern, read_pattern(e));
    DECANT_ASSIGN(step.content, required_text(e, "content"));
    step.pattern = std::move(pattern.literal);
    if (pattern.regex) {
      DECANT_ASSIGN(step.regex, Regex::compile(*pattern.regex));
    }
  } else if (type == "Prepend") {
    step.kind = NormalizerStep::kPrepend;
    DECANT_ASSIGN(step.content, required_text(e, "prepend"));
  } else if (type == "Lowercase") {
    step.kind = NormalizerStep::kLowercase;
  } else if (type == "Strip") {
    step.kind = NormalizerStep::kStrip;
    step.left = flag_or(e, "strip_left", true);
    step.right = flag_or(e, "strip_right", true);
  } else if (type == "StripAccents") {
    step.kind = NormalizerStep::kStripAccents;
  } else if (type == "ByteLevel") {
    step.kind = NormalizerStep::kByteLevel;
  } else {
    return unknown_type(
        "NFC, NFD, NFKC, NFKD, Replace, Prepend, Lowercase, Strip, StripAccents, ByteLevel, Sequence");
  }
  return ok_status();
}

Status read_pre_tokenizer_step(const element& e, std::string_view type, PreTokenizerStep& step) {
  if (type == "Split") {
    step.kind = PreTokenizerStep::kSplit;
    DECANT_ASSIGN(Pattern pattern, read_pattern(e));
    DECANT_ASSIGN(step.behavior, read_behavior(e, ""));
    step.invert = flag_or(e, "invert", false);
    step.literal = std::move(pattern.literal);
    if (pattern.regex) step.known = find_known_pattern(*pattern.regex);
    if (pattern.regex && !step.known) {
      DECANT_ASSIGN(step.regex, Regex::compile(*pattern.regex));
    }
  } else if (type == "ByteLevel") {
    step.kind = PreTokenizerStep::kByteLevel;
    step.add_prefix_space = flag_or(e, "add_prefix_space", true);
    step.use_regex = flag_or(e, "use_regex", true);
  } else if (type == "Digits") {
    step.kind = PreTokenizerStep::kDigits;
    step.behavior =
        flag_or(e, "individual_digits", false) ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
  } else if (type == "Punctuation") {
    step.kind = PreTokenizerStep::kPunctuation;
    DECANT_ASSIGN(step.behavior, read_behavior(e, "Isolated"));
  } else if (type == "WhitespaceSplit") {
    step.kind = PreTokenizerStep::kWhitespaceSplit;
    step.behavior = SplitBehavior::kRemoved;
  } else if (type == "Whitespace") {
    step.kind = PreTokenizerStep::kSplit;
    step.behavior = SplitBehavior::kRemoved;
    step.invert = true;
    DECANT_ASSIGN(step.regex, Regex::compile(R"(\w+|[^\w\s]+)"));
  } else if (type == "Metaspace") {
    step.kind = PreTokenizerStep::kMetaspace;
    DECANT_ASSIGN(step.replacement, read_replacement(e));
    DECANT_ASSIGN(step.prepend, read_prepend(e));
    step.split = flag_or(e, "split", true);
  } else {
    return unknown_type(
        "Split, ByteLevel, Digits, Punctuation, Whitespace, WhitespaceSplit, Metaspace, Sequence");
  }
  return ok_status();
}

Status read_decoder_step(const element& e, std::string_view type, DecoderStep& step) {
  if (type == "ByteLevel") {
    step.kind = DecoderStep::kByteLevel;
  } else if (type == "Replace") {
    step.kind = DecoderStep::kReplace;
    DECANT_ASSIGN(Pattern pattern, read_pattern(e));
    DECANT_ASSIGN(step.content, required_text(e, "content"));
    step.pattern = std::move(pattern.literal);
    if (pattern.regex) {
      DECANT_ASSIGN(step.regex, Regex::compile(*pattern.regex));
    }
  } else if (type == "ByteFallback") {
    step.kind = DecoderStep::kByteFallback;
  } else if (type == "Fuse") {
    step.kind = DecoderStep::kFuse;
  } else if (type == "Strip") {
    step.kind = DecoderStep::kStrip;
    DECANT_ASSIGN(step.pattern, required_text(e, "content"));
    DECANT_ASSIGN(step.start, count_field(e, "start"));
    DECANT_ASSIGN(step.stop, count_field(e, "stop"));
  } else if (type == "Metaspace") {
    step.kind = DecoderStep::kMetaspace;
    DECANT_ASSIGN(step.pattern, read_replacement(e));
    DECANT_ASSIGN(step.prepend, read_prepend(e));
  } else if (type == "WordPiece") {
    step.kind = DecoderStep::kWordPiece;
    step.pattern = text_or(e, "prefix", "##");
    step.cleanup = flag_or(e, "cleanup", true);
  } else {
    return unknown_type("ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, WordPiece, Sequence");
  }
  return ok_status();
}

Status read_special_ids(const element& e, std::string_view name, std::vector<int32_t>& ids) {
  simdjson::dom::array list;
  if (e["special_tokens"][name]["ids"].get(list) != simdjson::SUCCESS) {
    return invalid_model(fmt::format("'special_tokens' has no ids for '{}'", name));
  }
  for (const element item : list) {
    int64_t id = 0;
    if (item.get(id) != simdjson::SUCCESS || id < 0 || id > INT32_MAX) {
      return invalid_model(fmt::format("bad id of special token '{}'", name));
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return ok_status();
}

Status read_template(const element& e, PostProcessor& out) {
  simdjson::dom::array pieces;
  if (e["single"].get(pieces) != simdjson::SUCCESS) return invalid_model("field 'single' should be an array");
  std::vector<int32_t> before;
  std::vector<int32_t> after;
  bool seen = false;
  for (const element piece : pieces) {
    std::string_view name;
    if (piece["SpecialToken"]["id"].get(name) == simdjson::SUCCESS) {
      DECANT_RETURN_IF_ERROR(read_special_ids(e, name, seen ? after : before));
    } else if (piece["Sequence"]["id"].get(name) == simdjson::SUCCESS && name == "A" && !seen) {
      seen = true;
    } else {
      return unsupported("a template for one text should hold special tokens and the sequence A once");
    }
  }
  if (!seen) return unsupported("a template for one text lacks the sequence A");
  out.prefix.insert(out.prefix.begin(), before.begin(), before.end());
  out.suffix.insert(out.suffix.end(), after.begin(), after.end());
  return ok_status();
}

Status read_pair_id(const element& e, std::string_view key, int32_t& id) {
  int64_t value = 0;
  if (e[key].at(1).get(value) != simdjson::SUCCESS || value < 0 || value > INT32_MAX) {
    return invalid_model(fmt::format("field '{}' should be [token, id]", key));
  }
  id = static_cast<int32_t>(value);
  return ok_status();
}

Status read_post_step(const element& e, std::string_view type, PostProcessor& out) {
  if (type == "ByteLevel") {
    if (flag_or(e, "trim_offsets", true)) out.trims.push_back({flag_or(e, "add_prefix_space", true)});
  } else if (type == "TemplateProcessing") {
    return read_template(e, out);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    int32_t cls = 0;
    int32_t sep = 0;
    DECANT_RETURN_IF_ERROR(read_pair_id(e, "cls", cls));
    DECANT_RETURN_IF_ERROR(read_pair_id(e, "sep", sep));
    out.prefix.insert(out.prefix.begin(), cls);
    out.suffix.push_back(sep);
    if (type == "RobertaProcessing" && flag_or(e, "trim_offsets", true)) {
      out.trims.push_back({flag_or(e, "add_prefix_space", true)});
    }
  } else {
    return unknown_type("ByteLevel, TemplateProcessing, RobertaProcessing, BertProcessing, Sequence");
  }
  return ok_status();
}

template <typename Step, typename ReadStep>
Result<std::vector<Step>> read_steps(const element& section, std::string_view list, ReadStep read_step) {
  std::vector<Step> steps;
  auto read = [&](const element& e, std::string_view type) -> Status {
    if (steps.size() >= kMaxSteps) return unsupported(fmt::format("more than {} components", kMaxSteps));
    Step step{};
    DECANT_RETURN_IF_ERROR(read_step(e, type, step));
    steps.push_back(std::move(step));
    return ok_status();
  };
  DECANT_RETURN_IF_ERROR(for_each_component(section, list, 0, read));
  return steps;
}

}  // namespace

Result<std::vector<NormalizerStep>> read_normalizer(const element& section) {
  auto steps = read_steps<NormalizerStep>(section, "normalizers", read_normalizer_step);
  return steps.ok() ? std::move(steps) : std::move(steps).status().with_context("normalizer");
}

Result<std::vector<PreTokenizerStep>> read_pre_tokenizer(const element& section) {
  auto steps = read_steps<PreTokenizerStep>(section, "pretokenizers", read_pre_tokenizer_step);
  return steps.ok() ? std::move(steps) : std::move(steps).status().with_context("pre_tokenizer");
}

Result<std::vector<DecoderStep>> read_decoder(const element& section) {
  auto steps = read_steps<DecoderStep>(section, "decoders", read_decoder_step);
  return steps.ok() ? std::move(steps) : std::move(steps).status().with_context("decoder");
}

Result<PostProcessor> read_post_processor(const element& section) {
  PostProcessor out;
  Status status =
      for_each_component(section, "processors", 0, [&](const element& e, std::string_view type) -> Status {
        if (out.trims.size() + out.prefix.size() + out.suffix.size() > kMaxSteps)
          return unsupported("too many components");
        return read_post_step(e, type, out);
      });
  if (!status.ok()) return std::move(status).with_context("post_processor");
  return out;
}

void append_json_string(std::string_view text, std::string& out) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

}  // namespace decant::text::bpe
