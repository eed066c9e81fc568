#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/template/value.h"

namespace decant::text {

/// Variables made ready for a template, and what to do with its output.
struct PreparedChat {
  Value variables;
  bool continues = false;  ///< continue_final_message was asked for
  std::string final_text;  ///< the text that is to be continued
};

/// The changes transformers makes to a conversation before it renders; `template_source` must mention the
/// field that is to be continued. Formula source: render_jinja_template of transformers 5.
Result<PreparedChat> prepare_chat(const Value& variables, std::string_view template_source);

/// Cuts the output where the final message ends. ValueError when it is not there.
Status cut_after_final_message(const PreparedChat& chat, std::string& text);

}  // namespace decant::text
