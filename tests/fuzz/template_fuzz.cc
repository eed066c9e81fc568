#include <string>

#include "text/template/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string source(reinterpret_cast<const char*>(data), size);
  const auto parsed = decant::text::ChatTemplate::parse(source, "chat_template.jinja");
  if (!parsed.ok()) return 0;
  const auto variables = decant::text::parse_json(
      R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}],)"
      R"( "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})");
  if (!variables.ok()) return 0;
  decant::text::RenderOptions options;
  options.limits.steps = 20'000;
  options.limits.allocated_bytes = 64u << 20;
  options.limits.output_bytes = 4u << 20;
  options.now = decant::text::CivilTime{2026, 1, 5, 9, 3, 7};
  (void)parsed->render_chat(*variables, options);
  return 0;
}
