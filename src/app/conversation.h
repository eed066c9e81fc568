#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/text_model.h"
#include "text/template/value.h"

namespace decant::app {

/// A conversation on a text model, rendered with its chat template. What the sequence already holds of the
/// newly rendered conversation is not run again. The model must outlive it.
class Conversation {
 public:
  explicit Conversation(TextModel& model) : model_(model) {}

  /// Adds a message without running anything: "system", or turns from elsewhere.
  void add(const char* role, std::string_view content);

  /// Adds a user's message, generates the answer, and adds that. After an error the conversation is as
  /// before.
  Result<Generation> send(std::string_view content, const GenerateOptions& options,
                          const std::function<void(std::string_view)>& on_text = nullptr);

 private:
  Result<std::vector<int32_t>> next_ids();

  TextModel& model_;
  std::vector<text::Value> messages_;
};

}  // namespace decant::app
