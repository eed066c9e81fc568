#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/text_files.h"
#include "cli/command.h"
#include "cli/json_lines.h"
#include "cli/resolve_model.h"

namespace decant::cli {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string model;
  bool decode = false, offsets = false, pieces = false, no_special = false, skip_special = false;
};

void print(const ordered_json& line) {
  std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

Status encode_line(const text::Tokenizer& tokenizer, const Options& o, const nlohmann::json& in) {
  if (!in.contains("text") || !in["text"].is_string())
    return invalid_argument("expected {\"text\": \"...\"}");
  text::EncodeOptions options;
  options.add_special = !o.no_special;
  options.offsets = o.offsets;
  DECANT_ASSIGN(const text::Encoding encoding, tokenizer.encode(in["text"].get<std::string>(), options));
  ordered_json out;
  out["ids"] = encoding.ids;
  if (o.offsets) {
    out["offsets"] = ordered_json::array();
    for (const auto& [b, e] : encoding.offsets) out["offsets"].push_back({b, e});
  }
  print(out);
  return ok_status();
}

Status decode_line(const text::Tokenizer& tokenizer, const Options& o, const nlohmann::json& in) {
  if (!in.contains("ids") || !in["ids"].is_array()) return invalid_argument("expected {\"ids\": [...]}");
  std::vector<int32_t> ids;
  for (const auto& id : in["ids"]) {
    if (!id.is_number_integer()) return invalid_argument("ids are integers");
    const int64_t value = id.get<int64_t>();
    ids.push_back(value < 0 || value > INT32_MAX ? -1 : static_cast<int32_t>(value));
  }
  ordered_json out;
  out["text"] = tokenizer.decode(ids, o.skip_special);
  if (o.pieces) {
    text::DecodeStream stream(tokenizer, o.skip_special);
    out["pieces"] = ordered_json::array();
    for (int32_t id : ids) out["pieces"].push_back(stream.push(id));
    out["pieces"].push_back(stream.flush());
  }
  print(out);
  return ok_status();
}

}  // namespace

Run add_tokenize(CLI::App& app, Common& common) {
  auto o = std::make_shared<Options>();
  app.add_option("MODEL", o->model, "a model, or a tokenizer.json")->required();
  app.add_flag("--decode", o->decode, "ids to text");
  app.add_flag("--offsets", o->offsets, "where each id stands in the text, in code points");
  app.add_flag("--pieces", o->pieces, "with --decode: the text as it streams");
  app.add_flag("--no-special", o->no_special, "do not add special tokens around the text");
  app.add_flag("--skip-special", o->skip_special, "leave special tokens out of decoded text");
  return [o, &common]() -> Status {
    DECANT_ASSIGN(const std::string path, resolve_model(o->model, common));
    DECANT_ASSIGN(const text::Tokenizer tokenizer, app::open_tokenizer(path));
    return for_each_line([&](const std::string& line) -> Status {
      const auto in = nlohmann::json::parse(line, nullptr, false);
      if (in.is_discarded() || !in.is_object()) return invalid_argument("not a JSON object");
      return o->decode ? decode_line(tokenizer, *o, in) : encode_line(tokenizer, *o, in);
    });
  };
}

}  // namespace decant::cli
