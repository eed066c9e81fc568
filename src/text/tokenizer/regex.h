#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer/aligned_text.h"

namespace decant::text::bpe {

/// A compiled Oniguruma pattern (Ruby syntax, UTF-8), the dialect that tokenizer.json patterns are written
/// in. Searches are bounded in backtracking steps and stack, so a hostile pattern ends in an error.
/// Immutable, thread-safe.
class Regex {
 public:
  static Result<Regex> compile(const std::string& pattern);

  /// Appends matches and the gaps between them, covering `text` from end to end. `base` is added to every
  /// offset. Precondition: valid UTF-8.
  Status find_all(std::string_view text, size_t base, std::vector<Match>& out) const;

 private:
  struct Program;
  std::shared_ptr<const Program> program_;
};

}  // namespace decant::text::bpe
