#include <cstdio>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/layout.h"
#include "app/text_files.h"
#include "base/file_writer.h"
#include "cli/command.h"
#include "cli/json_lines.h"
#include "cli/resolve_model.h"

namespace decant::cli {
namespace {

struct Options {
  std::string model, now;
};

/// "2026-01-05T09:03:07".
Result<text::CivilTime> parse_time(const std::string& text) {
  text::CivilTime t;
  char rest = 0;
  const int n = std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%d%c", &t.year, &t.month, &t.day, &t.hour,
                            &t.minute, &t.second, &rest);
  if (n != 6 || t.month < 1 || t.month > 12 || t.day < 1 || t.day > 31)
    return invalid_argument("--now takes a time like 2026-01-05T09:03:07, not '" + text + "'");
  return t;
}

using Render = std::function<Result<text::Rendered>(const text::Value&, text::TemplateError*)>;

Result<Render> open_template(const Options& o, const text::RenderOptions& options) {
  if (std::filesystem::path(o.model).extension() == ".jinja") {
    DECANT_ASSIGN(std::string source, read_file(o.model, uint64_t{64} << 20));
    return Render([source, path = o.model, options](const text::Value& variables,
                                                    text::TemplateError* error) -> Result<text::Rendered> {
      DECANT_ASSIGN(const text::ChatTemplate chat, text::ChatTemplate::parse(source, path, error));
      return chat.render_chat(variables, options, error);
    });
  }
  DECANT_ASSIGN(const app::Layout layout, app::find_layout(o.model));
  DECANT_ASSIGN(app::TextFiles files, app::TextFiles::load(layout));
  return Render([files = std::make_shared<app::TextFiles>(std::move(files)), options](
                    const text::Value& variables, text::TemplateError* error) {
    return files->render_chat(variables, options, error);
  });
}

}  // namespace

Run add_render(CLI::App& app, Common& common) {
  auto o = std::make_shared<Options>();
  app.add_option("MODEL", o->model, "a model, or a .jinja file")->required();
  app.add_option("--now", o->now, "fixes the clock: 2026-01-05T09:03:07");
  return [o, &common]() -> Status {
    text::RenderOptions options;
    if (!o->now.empty()) {
      DECANT_ASSIGN(options.now, parse_time(o->now));
    }
    DECANT_ASSIGN(o->model, resolve_model(o->model, common));
    DECANT_ASSIGN(const Render render, open_template(*o, options));
    return for_each_line([&](const std::string& line) -> Status {
      DECANT_ASSIGN(const text::Value variables, text::parse_json(line));
      text::TemplateError error;
      const auto rendered = render(variables, &error);
      nlohmann::ordered_json out;
      if (rendered.ok()) {
        out["text"] = rendered->text;
        out["generation_spans"] = nlohmann::ordered_json::array();
        for (const auto& [b, e] : rendered->generation_spans) out["generation_spans"].push_back({b, e});
      } else {
        out["error"] = rendered.status().message();
        out["kind"] = error.kind;
        out["line"] = error.at.line;
        out["column"] = error.at.column;
      }
      std::printf("%s\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
      return ok_status();
    });
  };
}

}  // namespace decant::cli
