"""Generation, tokenizers and chat templates against PyTorch, tokenizers and Jinja."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import decant
from conftest import CHAT_TEMPLATE

PROMPT = [1, 5, 9, 200, 33]


def test_greedy_ids_equal_eager(text_model, checkpoint, eager_ids):
    expected = eager_ids(PROMPT, 20)
    for prompt in (PROMPT, tuple(PROMPT), np.array(PROMPT), np.array(PROMPT, np.uint16)):
        got = text_model.generate(prompt, max_new_tokens=20, ignore_stop_tokens=True)
        assert got.ids == expected
        assert (got.finish, got.prompt_tokens) == ("length", 5)
    # The checkpoint itself, captured without an export.
    straight = decant.load(checkpoint[1], threads=1)
    assert straight.generate(PROMPT, max_new_tokens=20, ignore_stop_tokens=True).ids == expected


def test_text_and_messages(text_model, tokenizer, eager_ids):
    text = "The lighthouse keeper"
    got = text_model.generate(text, max_new_tokens=12, ignore_stop_tokens=True)
    ids = tokenizer.encode(text).ids
    assert got.ids == eager_ids(ids, 12)
    assert got.text == tokenizer.decode(got.ids)
    messages = [{"role": "user", "content": "hello"}]
    ids = tokenizer.encode("<|user|>hello\n<|assistant|>", add_special_tokens=False).ids
    assert text_model.generate(messages, max_new_tokens=12, ignore_stop_tokens=True).ids == eager_ids(ids, 12)


def test_streams_rest_between_tokens(text_model):
    options = {"max_new_tokens": 16, "ignore_stop_tokens": True}
    whole = text_model.generate(PROMPT, **options)
    with text_model.stream(PROMPT, **options) as stream:
        assert "".join(stream) == whole.text
        assert stream.result.ids == whole.ids
    steps = text_model.stream(PROMPT, **options)
    first = steps.step()
    assert first.id == whole.ids[0]
    time.sleep(0.01)
    rest = list(steps.steps())
    assert [first.id] + [s.id for s in rest if s.id is not None] == whole.ids
    assert first.text + "".join(s.text for s in rest) == whole.text
    assert steps.step() is None
    early = text_model.stream(PROMPT, **options)
    early.step()
    early.close()
    assert early.step() is None
    assert early.result.ids == whole.ids[:1]


def test_another_generation_ends_a_stream(text_model):
    stream = text_model.stream(PROMPT, max_new_tokens=8)
    stream.step()
    text_model.generate(PROMPT, max_new_tokens=1)
    with pytest.raises(decant.InvalidArgumentError, match="something else"):
        stream.step()
    assert len(text_model.generate(PROMPT, max_new_tokens=3, ignore_stop_tokens=True).ids) == 3


def test_stops(text_model):
    options = {"max_new_tokens": 30, "ignore_stop_tokens": True}
    whole = text_model.generate(PROMPT, **options)
    assert len(whole.text) > 8
    for stop in (whole.text[4:7], ["never that", whole.text[4:7]]):
        got = text_model.generate(PROMPT, stop=stop, **options)
        assert got.finish == "stop_string"
        assert whole.text.startswith(got.text)
        assert whole.text[4:7] not in got.text
    stream = text_model.stream(PROMPT, **options)
    stream.step()
    stream.stop()
    while stream.step() is not None:
        pass
    assert stream.result.finish == "interrupted"
    assert stream.result.ids == whole.ids[:1]
    late = text_model.generate(PROMPT, timeout=0, **options)
    assert (late.finish, late.ids) == ("interrupted", [])
    assert text_model.generate(PROMPT, **options).ids == whole.ids


def test_sampling_repeats_with_its_seed(text_model):
    options = {"max_new_tokens": 16, "temperature": 1.0, "top_k": 50, "top_p": 0.95, "ignore_stop_tokens": True}
    first = text_model.generate(PROMPT, seed=7, **options).ids
    assert first == text_model.generate(PROMPT, seed=7, **options).ids
    assert any(text_model.generate(PROMPT, seed=s, **options).ids != first for s in (8, 9))


FAULTS = {
    "no prompt": ([], {}, decant.InvalidArgumentError, "no token ids"),
    "negative": ([-1], {}, decant.InvalidArgumentError, "-1"),
    "beyond the vocabulary": ([5000], {}, decant.DecantError, "5000"),
    "floats": ([1.5], {}, decant.InvalidArgumentError, "float"),
    "float array": (np.zeros(3), {}, decant.InvalidArgumentError, "float64"),
    "two rows": (np.zeros((2, 3), np.int64), {}, decant.InvalidArgumentError, "row"),
    "bytes": (b"text", {}, decant.InvalidArgumentError, "bytes"),
    "number": (5, {}, decant.InvalidArgumentError, "int"),
    "too long": ([1] * 100, {}, decant.OutOfRangeError, "64"),
    "top_p": (PROMPT, {"top_p": 2.0}, decant.InvalidArgumentError, "top_p"),
    "seed": (PROMPT, {"seed": -1}, decant.InvalidArgumentError, "seed"),
    "empty stop": (PROMPT, {"stop": ""}, decant.InvalidArgumentError, "stop"),
    "option": (PROMPT, {"temprature": 1}, TypeError, "temprature.*temperature"),
    "message": ([{"role": "user", "content": object()}], {}, decant.InvalidArgumentError, "JSON"),
    "tensors": ([], {"inputs": {"input_features": np.zeros(3, np.float32)}}, decant.DecantError, "input_features"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_leave_the_model_usable(text_model, fault):
    prompt, options, kind, message = FAULTS[fault]
    expected = text_model.generate(PROMPT, max_new_tokens=4, ignore_stop_tokens=True).ids
    with pytest.raises(kind, match=message):
        text_model.generate(prompt, **options)
    assert text_model.generate(PROMPT, max_new_tokens=4, ignore_stop_tokens=True).ids == expected


def test_a_model_without_a_tokenizer(affine):
    model = decant.load(affine[0])
    with pytest.raises(decant.DecantError):
        model.generate("text")
    with pytest.raises(decant.NotFoundError, match="tokenizer"):
        _ = model.tokenizer


def test_chats_keep_their_cache(text_model, tokenizer, eager_ids):
    chat = text_model.chat(system="short")
    text = "<|system|>short\n"
    for turn, message in enumerate(("hello", "again")):
        text += f"<|user|>{message}\n<|assistant|>"
        if turn:
            with chat.stream(message, max_new_tokens=8, ignore_stop_tokens=True) as stream:
                answer = "".join(stream)
            generation = stream.result
        else:
            generation = chat.send(message, max_new_tokens=8, ignore_stop_tokens=True)
            answer = generation.text
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert generation.ids == eager_ids(ids, 8)
        if turn:
            assert generation.prompt_tokens < len(ids)
        text += answer + "\n"
    assert [m["role"] for m in chat.messages] == ["system", "user", "assistant", "user", "assistant"]
    with pytest.raises(decant.OutOfRangeError):
        chat.send("far too long " * 50)
    assert len(chat.messages) == 5


def test_threads_share_a_text_model(text_model):
    expected = text_model.generate(PROMPT, max_new_tokens=8, ignore_stop_tokens=True).ids
    got = []

    def work():
        for _ in range(5):
            try:
                got.append(text_model.generate(PROMPT, max_new_tokens=8, ignore_stop_tokens=True).ids)
            except decant.InvalidArgumentError:
                got.append(expected)  # the other thread's generation took the sequence

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [expected] * 10


def test_tokenizer(tokenizer, texts, tmp_path):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for ours in (
        decant.Tokenizer.from_file(tmp_path),
        decant.Tokenizer.from_file(tmp_path / "tokenizer.json"),
        decant.Tokenizer.from_str(tokenizer.to_str()),
    ):
        for text in texts:
            theirs = tokenizer.encode(text)
            assert ours.encode(text) == theirs.ids
            assert ours.encode(text, add_special_tokens=False) == tokenizer.encode(text, add_special_tokens=False).ids
            with_offsets = ours.encode_with_offsets(text)
            assert (with_offsets.ids, with_offsets.offsets) == (theirs.ids, theirs.offsets)
            for skip in (True, False):
                decoded = tokenizer.decode(theirs.ids, skip_special_tokens=skip)
                assert ours.decode(theirs.ids, skip_special_tokens=skip) == decoded
                decoder = ours.decoder(skip_special_tokens=skip)
                pieces = [decoder.push(i) for i in theirs.ids]
                assert "".join([*pieces, decoder.flush()]) == decoded
        assert ours.vocab_size == tokenizer.get_vocab_size()
        assert ours.token_to_id("</s>") == 2
        assert ours.token_to_id("no such token") is None
        assert (ours.id_to_token(2), ours.id_to_token(100_000)) == ("</s>", None)
        assert (ours.is_special(2), ours.is_special(200)) == (True, False)
    as_text = ours.encode("</s>", add_special_tokens=False, special_tokens_as_text=True)
    assert 2 not in as_text
    assert ours.decode(as_text) == "</s>"


def test_tokenizer_faults(tmp_path):
    with pytest.raises(decant.InvalidModelError):
        decant.Tokenizer.from_str("{")
    with pytest.raises(decant.DecantError):
        decant.Tokenizer.from_file(tmp_path)
    with pytest.raises(decant.NotFoundError):
        decant.Tokenizer.from_file(tmp_path / "none.json")


MESSAGES = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": 'quotes " and 🙂'}]


def test_chat_template(checkpoint):
    template = decant.ChatTemplate(CHAT_TEMPLATE)
    plain = '<|user|>hello\n<|assistant|>quotes " and 🙂\n'
    assert template.render(MESSAGES) == plain
    assert template.render(MESSAGES, add_generation_prompt=True) == plain + "<|assistant|>"
    assert template.render(MESSAGES, continue_final_message=True) == plain[:-1]
    assert template.source == CHAT_TEMPLATE
    beside = decant.ChatTemplate.from_file(checkpoint[1])
    assert beside.render(MESSAGES) == plain
    assert decant.ChatTemplate.from_file(checkpoint[1] / "chat_template.jinja").render(MESSAGES) == plain

    jinja2 = pytest.importorskip("jinja2.sandbox")
    source = "{{ bos_token }}{% for t in tools %}{{ t.name | upper }}{{ t | tojson }}{% endfor %}{{ x + 1 }}"
    tools = [{"name": "weather", "args": [1, 2.5, None]}]
    environment = jinja2.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
    expected = environment.from_string(source).render(tools=tools, x=2, bos_token="<s>")
    assert decant.ChatTemplate(source).render([], tools=tools, x=2, bos_token="<s>") == expected


def test_chat_template_faults(tmp_path):
    with pytest.raises(decant.DecantError, match="1:"):
        decant.ChatTemplate("{% for %}")
    with pytest.raises(decant.DecantError, match="no way"):
        decant.ChatTemplate("{{ raise_exception('no way') }}").render(MESSAGES)
    with pytest.raises(decant.InvalidArgumentError, match="JSON"):
        decant.ChatTemplate("").render(MESSAGES, x=object())
    with pytest.raises(decant.DecantError):
        decant.ChatTemplate.from_file(tmp_path)
