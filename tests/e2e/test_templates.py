"""`decant render` against Transformers' own renderer: own templates, one-line expressions, templates of installed packages."""

import copy
import datetime
import json
import pathlib

import helpers
import pytest

TEMPLATES = helpers.ROOT / "testdata" / "templates"
CONVERSATIONS = json.loads((TEMPLATES / "conversations.json").read_text(encoding="utf-8"))
NOW = datetime.datetime(2026, 1, 5, 9, 3, 7)
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


@pytest.fixture(scope="module")
def reference():
    """Renders variables with Transformers, the clock fixed; gives {"text", "generation_spans"} or {"error"}."""
    utils = pytest.importorskip("transformers.utils.chat_template_utils")

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return NOW

    original = utils.datetime
    utils.datetime = Clock

    def render(source, variables):
        arguments = copy.deepcopy(variables)
        messages = arguments.pop("messages")
        try:
            texts, spans = utils.render_jinja_template(
                [messages], chat_template=source,
                return_assistant_tokens_mask=not arguments.get("continue_final_message"), **arguments)
        except Exception as error:  # whatever a template can raise
            return {"error": f"{type(error).__name__}: {error}"}
        return {"text": texts[0], "generation_spans": [list(span) for span in spans[0]] if spans else []}

    yield render
    utils.datetime = original


def rendered(path, cases):
    """What `decant render` makes of each case."""
    lines = "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)
    run = helpers.run_decant(["render", path, "--now", NOW.isoformat()], stdin=lines, check=False)
    return [json.loads(line) for line in run.stdout.split("\n") if line]  # splitlines() would cut at U+2028 too


def compare(reference, path, cases):
    """Names of the cases that differ, each with both results."""
    source = path.read_text(encoding="utf-8")
    results = rendered(path, cases.values())
    assert len(results) == len(cases)
    differing = {}
    for (name, variables), got in zip(cases.items(), results):
        want = reference(source, variables)
        if "error" in want:
            same = "error" in got
        else:
            same = got.get("text") == want["text"] and (
                variables.get("continue_final_message") or got.get("generation_spans") == want["generation_spans"])
        if not same:
            differing[name] = {"want": want, "got": got}
    return differing


def conversations():
    cases = {}
    for name, conversation in CONVERSATIONS.items():
        cases[name] = {**SPECIAL, **conversation}
        if not conversation.get("continue_final_message"):
            cases[f"{name}, with a prompt"] = {**cases[name], "add_generation_prompt": True}
    return cases


@pytest.mark.parametrize("name", sorted(path.name for path in TEMPLATES.glob("*.jinja")))
def test_own_templates_render_as_transformers_does(decant, reference, name):
    assert compare(reference, TEMPLATES / name, conversations()) == {}


def test_expressions_evaluate_as_in_jinja(decant, reference, tmp_path):
    case = {**SPECIAL, **CONVERSATIONS["tool calls"]}
    expressions = (TEMPLATES / "expressions.txt").read_text(encoding="utf-8").splitlines()
    differing = {}
    for i, expression in enumerate(expressions):
        path = tmp_path / f"{i}.jinja"
        path.write_text("{{ (" + expression + ") }}", encoding="utf-8")
        if found := compare(reference, path, {expression: case}):
            differing.update(found)
    assert differing == {}


def test_syntax_errors_name_line_and_column(decant, tmp_path):
    path = tmp_path / "bad.jinja"
    path.write_text("one\n{% if x %}\n  {% frobnicate %}\n{% endif %}\n")
    (result,) = rendered(path, [{"messages": []}])
    assert "frobnicate" in result["error"]
    assert (result["line"], result["column"]) == (3, 6)


def test_the_template_of_smollm2_renders_as_transformers_does(decant, reference, smollm2_gguf, tmp_path):
    gguf = pytest.importorskip("gguf")
    field = gguf.GGUFReader(smollm2_gguf).get_field("tokenizer.chat_template")
    path = tmp_path / "smollm2.jinja"
    path.write_text(bytes(field.parts[field.data[0]]).decode("utf-8"), encoding="utf-8")
    assert compare(reference, path, conversations()) == {}


def package_templates():
    """Chat templates that installed packages carry as files."""
    found = []
    for package in ("trl", "axolotl", "llama_cpp", "vllm"):
        try:
            module = __import__("importlib.util").util.find_spec(package)
        except (ImportError, ValueError):
            continue
        if module is None or not module.submodule_search_locations:
            continue
        for folder in module.submodule_search_locations:
            found += sorted(pathlib.Path(folder).rglob("*.jinja"))
    return found


def test_templates_of_installed_packages_render_as_transformers_does(decant, reference):
    paths = package_templates()
    if not paths:
        pytest.skip("no installed package carries chat templates (pip install --no-deps trl)")
    differing = {str(path): found for path in paths if (found := compare(reference, path, conversations()))}
    assert differing == {}
