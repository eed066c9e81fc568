#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/file_writer.h"
#include "cli/generation_options.h"
#include "cli/resolve_model.h"

namespace decant::cli {
namespace {

struct Options : GenerationOptions {
  std::string prompt, messages, inputs;
  std::vector<int32_t> ids;
};

/// The prompt's ids, from whichever of the three forms was given.
Result<std::vector<int32_t>> prompt_ids(const Options& o, const app::TextFiles& files) {
  if (!o.ids.empty()) return o.ids;
  DECANT_ASSIGN(const text::Tokenizer* tokenizer, files.tokenizer());
  if (o.messages.empty()) return tokenizer->encode(o.prompt, true);
  DECANT_ASSIGN(const std::string json, read_file(o.messages, uint64_t{256} << 20));
  DECANT_ASSIGN(const text::Rendered rendered, files.render_conversation(json));
  // The template wrote the special tokens; encoding must not add them again.
  return tokenizer->encode(rendered.text, false);
}

void print_json(const app::TextModel& model, const app::Generation& g) {
  nlohmann::ordered_json line;
  line["ids"] = g.ids;
  line["text"] = g.text;
  line["finish"] = app::to_string(g.finish);
  line["prompt_tokens"] = g.prompt_tokens;
  line["load_ms"] = model.load_seconds() * 1e3;
  line["prefill_tokens_per_s"] =
      g.prefill_seconds > 0 ? static_cast<double>(g.prompt_tokens) / g.prefill_seconds : 0.0;
  line["decode_tokens_per_s"] =
      g.decode_seconds > 0 ? static_cast<double>(g.decode_steps) / g.decode_seconds : 0.0;
  line["peak_rss_bytes"] = app::peak_rss_bytes();
  std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

}  // namespace

Run add_generate(CLI::App& app, Common& common) {
  auto o = std::make_shared<Options>();
  o->add_to(app);
  auto* source = app.add_option_group("prompt", "one of these");
  source->add_option("--prompt", o->prompt, "text to continue");
  source->add_option("--messages", o->messages,
                     "JSON file: a list of messages, or an object with one; the chat template renders it");
  source->add_option("--ids", o->ids, "token ids, separated by commas")->delimiter(',');
  app.add_option(
      "--inputs", o->inputs,
      "safetensors file with tensors for the encoder, such as a speech model's input_features; --ids then "
      "gives what the decoder starts with");
  source->require_option(0, 1);
  return [o, &common]() -> Status {
    DECANT_ASSIGN(const std::string path, resolve_model(o->model, common, o->dtype));
    DECANT_ASSIGN(auto model, app::TextModel::load(path, o->load_options(common)));
    const bool has_prompt = !o->ids.empty() || !o->messages.empty() || !o->prompt.empty();
    if (!has_prompt && o->inputs.empty())
      return invalid_argument("give one of --prompt, --messages and --ids");
    std::vector<int32_t> ids;
    if (has_prompt) {
      DECANT_ASSIGN(ids, prompt_ids(*o, model->files()));
    }
    std::function<void(std::string_view)> stream;
    if (!common.json) {
      stream = [](std::string_view piece) {
        std::fwrite(piece.data(), 1, piece.size(), stdout);
        std::fflush(stdout);
      };
    }
    app::NamedTensors inputs;
    if (!o->inputs.empty()) {
      DECANT_ASSIGN(inputs, app::read_tensors(o->inputs));
    }
    auto generated = inputs.empty() ? model->generate(ids, o->generate_options(), stream)
                                    : model->generate(inputs, ids, o->generate_options(), stream);
    if (!generated.ok()) return std::move(generated).status();
    const app::Generation& g = *generated;
    if (common.json) {
      print_json(*model, g);
    } else {
      std::printf("\n");
    }
    return ok_status();
  };
}

}  // namespace decant::cli
