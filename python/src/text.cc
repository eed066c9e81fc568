#include "decant/text.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>

#include "bindings.h"
#include "decant/chat_template.h"
#include "decant/tokenizer.h"

namespace decant::python {
namespace {

using Ids = std::vector<int32_t>;

/// A text model that several Python threads may hold: its calls take turns.
struct Generator {
  TextModel model;
  std::mutex lock;

  explicit Generator(TextModel m) : model(std::move(m)) {}
};

struct Stream {
  Generator* owner;
  std::stop_source stop;
  std::optional<TokenStream> stream;
};

const char* name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kStopString:
      return "stop_string";
    case FinishReason::kInterrupted:
      return "interrupted";
  }
  return "";
}

std::unique_ptr<Generator> load(const std::string& path, const std::string& dtype, int threads,
                                const std::string& isa, int64_t max_cache_len) {
  LoadOptions options;
  options.dtype = dtype;
  options.threads = threads;
  options.isa = isa;
  options.max_cache_len = max_cache_len;
  return unlocked([&] { return std::make_unique<Generator>(unwrap(TextModel::load(path, options))); });
}

/// `held`: the prompt is a whole sequence, of which the beginning that is held is not run again; otherwise it
/// starts a new one. `inputs`: tensors for an encoder; the prompt is the decoder's then.
std::unique_ptr<Stream> start(Generator& g, const Ids& prompt, const std::map<std::string, Tensor>& inputs,
                              bool held, int64_t max_new_tokens, bool ignore_stop_tokens,
                              std::vector<std::string> stop, std::optional<float> temperature, int64_t top_k,
                              float top_p, float min_p, float repetition_penalty, uint64_t seed,
                              std::optional<double> timeout) {
  auto stream = std::make_unique<Stream>();
  stream->owner = &g;
  GenerateOptions options;
  options.max_new_tokens = max_new_tokens;
  options.ignore_stop_tokens = ignore_stop_tokens;
  options.stop_strings = std::move(stop);
  options.sampling = {temperature, top_k, top_p, min_p, repetition_penalty, seed};
  options.limits = limits(timeout);
  options.limits.stop = stream->stop.get_token();
  return unlocked([&] {
    const std::lock_guard lock(g.lock);
    if (!inputs.empty()) {
      stream->stream.emplace(unwrap(g.model.start({inputs.begin(), inputs.end()}, prompt, options)));
      return std::move(stream);
    }
    int64_t kept = 0;
    if (held) {
      kept = unwrap(g.model.keep_prefix(prompt));
    } else {
      check(g.model.rewind(0));
    }
    const auto rest = std::span(prompt).subspan(static_cast<size_t>(kept));
    stream->stream.emplace(unwrap(g.model.start(rest, options)));
    return std::move(stream);
  });
}

nb::object next(Stream& s) {
  const auto step = unlocked([&] {
    const std::lock_guard lock(s.owner->lock);
    return unwrap(s.stream->next());
  });
  if (!step) return nb::none();
  return nb::make_tuple(step->id, step->text);
}

/// (ids, text, finish, stop_id, prompt_tokens, prefill_seconds, decode_seconds)
nb::tuple generation(Stream& s) {
  const Generation g = unlocked([&] {
    const std::lock_guard lock(s.owner->lock);
    return s.stream->generation();
  });
  return nb::make_tuple(g.ids, g.text, name_of(g.finish), g.stop_id, g.prompt_tokens, g.prefill_seconds,
                        g.decode_seconds);
}

std::pair<Ids, std::vector<std::pair<uint32_t, uint32_t>>> encode(const Tokenizer& tokenizer,
                                                                  const std::string& text, bool add_special,
                                                                  bool special_as_text, bool offsets) {
  EncodeOptions options;
  options.add_special = add_special;
  options.special_as_text = special_as_text;
  options.offsets = offsets;
  return unlocked([&] {
    Encoding encoding = unwrap(tokenizer.encode(text, options));
    return std::pair(std::move(encoding.ids), std::move(encoding.offsets));
  });
}

}  // namespace

void bind_text(nb::module_& m) {
  nb::class_<Generator>(m, "TextModel")
      .def_static("load", &load, nb::arg("path"), nb::arg("dtype"), nb::arg("threads"), nb::arg("isa"),
                  nb::arg("max_cache_len"))
      .def("start", &start, nb::arg("prompt"), nb::arg("inputs"), nb::arg("held"), nb::arg("max_new_tokens"),
           nb::arg("ignore_stop_tokens"), nb::arg("stop"), nb::arg("temperature").none(), nb::arg("top_k"),
           nb::arg("top_p"), nb::arg("min_p"), nb::arg("repetition_penalty"), nb::arg("seed"),
           nb::arg("timeout").none(), nb::keep_alive<0, 1>())
      .def(
          "encode",
          [](const Generator& g, const std::string& text, bool add_special) {
            return unlocked([&] { return unwrap(g.model.encode(text, add_special)); });
          },
          nb::arg("text"), nb::arg("add_special"))
      .def(
          "render_chat",
          [](const Generator& g, const std::string& json) {
            return unlocked([&] { return unwrap(g.model.render_chat(json)); });
          },
          nb::arg("json"))
      .def_prop_ro("capacity", [](const Generator& g) { return g.model.capacity(); });

  nb::class_<Stream>(m, "TokenStream")
      .def("next", &next)
      .def("generation", &generation)
      .def("stop", [](Stream& s) { s.stop.request_stop(); });

  nb::class_<Tokenizer>(m, "Tokenizer")
      .def_static(
          "load",
          [](const std::string& path) { return unlocked([&] { return unwrap(Tokenizer::load(path)); }); },
          nb::arg("path"))
      .def_static(
          "from_json",
          [](const std::string& json) {
            return unlocked([&] { return unwrap(Tokenizer::from_json(json)); });
          },
          nb::arg("json"))
      .def("encode", &encode, nb::arg("text"), nb::arg("add_special"), nb::arg("special_as_text"),
           nb::arg("offsets"))
      .def(
          "decode",
          [](const Tokenizer& t, const Ids& ids, bool skip_special) {
            return unlocked([&] { return t.decode(ids, skip_special); });
          },
          nb::arg("ids"), nb::arg("skip_special"))
      .def(
          "token_to_id", [](const Tokenizer& t, const std::string& token) { return t.token_to_id(token); },
          nb::arg("token"))
      .def("id_to_token", &Tokenizer::id_to_token, nb::arg("id"))
      .def("is_special", &Tokenizer::is_special, nb::arg("id"))
      .def_prop_ro("vocab_size", &Tokenizer::vocab_size);

  nb::class_<TokenDecoder>(m, "TokenDecoder")
      .def(nb::init<const Tokenizer&, bool>(), nb::arg("tokenizer"), nb::arg("skip_special"))
      .def("push", &TokenDecoder::push, nb::arg("id"))
      .def("flush", &TokenDecoder::flush);

  nb::class_<ChatTemplate>(m, "ChatTemplate")
      .def_static(
          "load",
          [](const std::string& path) { return unlocked([&] { return unwrap(ChatTemplate::load(path)); }); },
          nb::arg("path"))
      .def_static(
          "parse",
          [](std::string source, std::string name) {
            return unlocked([&] { return unwrap(ChatTemplate::parse(std::move(source), std::move(name))); });
          },
          nb::arg("source"), nb::arg("name"))
      .def(
          "render",
          [](const ChatTemplate& t, const std::string& variables) {
            return unlocked([&] { return unwrap(t.render(variables)); });
          },
          nb::arg("variables"))
      .def_prop_ro("source", [](const ChatTemplate& t) { return t.source(); });
}

}  // namespace decant::python
