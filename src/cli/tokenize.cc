#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/load_tokenizer.h"
#include "cli/command.h"
#include "text/tokenizer/tokenizer.h"

namespace decant::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model;
  bool decode = false;
  bool offsets = false;
  bool pieces = false;
  bool no_special = false;
  bool skip_special = false;
};

Result<Json> encode_line(const text::Tokenizer& tokenizer, const Options& o, const nlohmann::json& line) {
  if (!line.contains("text") || !line["text"].is_string()) return invalid_model("a line should be {\"text\": \"...\"}");
  const text::EncodeOptions options{.add_special = !o.no_special, .offsets = o.offsets};
  DECANT_ASSIGN(const text::Encoding encoding, tokenizer.encode(line["text"].get_ref<const std::string&>(), options));
  Json out;
  out["ids"] = encoding.ids;
  if (o.offsets) out["offsets"] = encoding.offsets;
  return out;
}

Result<Json> decode_line(const text::Tokenizer& tokenizer, const Options& o, const nlohmann::json& line) {
  if (!line.contains("ids") || !line["ids"].is_array()) return invalid_model("a line should be {\"ids\": [...]}");
  std::vector<int32_t> ids;
  for (const auto& id : line["ids"]) {
    if (!id.is_number_integer()) return invalid_model("'ids' should hold integers");
    const auto value = id.get<int64_t>();
    ids.push_back(value < 0 || value > INT32_MAX ? -1 : static_cast<int32_t>(value));
  }
  Json out;
  out["text"] = tokenizer.decode(ids, o.skip_special);
  if (!o.pieces) return out;
  text::DecodeStream stream(tokenizer, o.skip_special);
  out["pieces"] = Json::array();
  for (const int32_t id : ids) out["pieces"].push_back(stream.push(id));
  if (std::string rest = stream.flush(); !rest.empty()) out["pieces"].push_back(std::move(rest));
  return out;
}

Status tokenize(const Options& o) {
  DECANT_ASSIGN(const text::Tokenizer tokenizer, app::load_tokenizer(o.model));
  std::string text;
  for (size_t number = 1; std::getline(std::cin, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string place = "standard input, line " + std::to_string(number);
    const auto line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object()) return invalid_model(place + ": not a JSON object");
    auto out = o.decode ? decode_line(tokenizer, o, line) : encode_line(tokenizer, o, line);
    if (!out.ok()) return std::move(out).status().with_context(place);
    std::printf("%s\n", out->dump().c_str());
    std::fflush(stdout);
  }
  return ok_status();
}

}  // namespace

Run add_tokenize(CLI::App& app, Common&) {
  auto o = std::make_shared<Options>();
  app.add_option("MODEL", o->model, "a model's folder or file, or a tokenizer.json")->required();
  app.add_flag("--decode", o->decode, "lines of ids in, text out");
  app.add_flag("--offsets", o->offsets, "also print the code points that each id covers");
  app.add_flag("--pieces", o->pieces, "with --decode: also print the text as it is streamed");
  app.add_flag("--no-special", o->no_special, "put no BOS, EOS or the like around the text");
  app.add_flag("--skip-special", o->skip_special, "with --decode: leave special tokens out");
  return [o]() -> Status { return tokenize(*o); };
}

}  // namespace decant::cli
