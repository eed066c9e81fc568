// chat MODEL [MAX_NEW_TOKENS]: a conversation. Reads a message a line; the answer appears as it is generated.

#include <decant/text.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: chat MODEL [MAX_NEW_TOKENS]\n"), 2;
  auto model = decant::TextModel::load(argv[1]);
  if (!model.ok()) return std::fprintf(stderr, "%s\n", model.status().to_string().c_str()), 1;
  decant::GenerateOptions options;
  if (argc > 2) options.max_new_tokens = std::atoll(argv[2]);

  decant::Chat chat(*model);
  std::string line;
  while (std::getline(std::cin, line)) {
    auto answer = chat.send(line, options, [](std::string_view piece) { std::cout << piece << std::flush; });
    if (!answer.ok()) return std::fprintf(stderr, "%s\n", answer.status().to_string().c_str()), 1;
    std::cout << "\n";
  }
  return 0;
}
