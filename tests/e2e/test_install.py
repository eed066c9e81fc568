"""The installed library: a project outside the tree finds it, builds the examples, and they do what decant does."""

import os
import pathlib
import shutil
import subprocess

import helpers
import numpy as np
import onnx
import pytest
from onnx import helper

IDS, COUNT = [1, 5, 9, 200, 33], 12


def run(*command, check=True, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert not check or done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done


@pytest.fixture(scope="module")
def prefix(decant, tmp_path_factory):
    """Where the build under test is installed."""
    build = pathlib.Path(decant).parent
    if not shutil.which("cmake") or not (build / "cmake_install.cmake").exists():
        pytest.skip("decant does not lie in its build folder")
    folder = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", build, "--prefix", folder)
    return folder


@pytest.fixture(scope="module")
def programs(prefix, tmp_path_factory):
    """The folder of the examples, built against the installed library by a project of their own."""
    source, build = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("build")
    for path in (helpers.ROOT / "examples").iterdir():
        shutil.copy(path, source)
    run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    run("cmake", "--build", build, "-j", str(os.cpu_count()))
    return build


def test_version(prefix, decant):
    installed = run(prefix / "bin/decant", "--version").stdout
    assert installed.startswith("decant 0.")
    assert installed == run(decant, "--version").stdout


def test_headers_stand_alone(prefix, tmp_path):
    """Each header compiles by itself, and includes nothing but decant's and the standard library's."""
    headers = sorted((prefix / "include/decant").glob("*.h"))
    assert len(headers) >= 8
    for header in headers:
        includes = [line.split()[1] for line in header.read_text().splitlines() if line.startswith("#include")]
        assert all(name.startswith('"decant/') or "." not in name for name in includes), header
    source = tmp_path / "all.cc"
    for header in headers:
        source.write_text(f"#include <decant/{header.name}>\n#include <decant/{header.name}>\n")
        run("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{prefix}/include", source)


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="no pkg-config")
def test_pkg_config(prefix, tmp_path):
    folder = next(prefix.glob("lib*/**/pkgconfig"))
    flags = run("pkg-config", "--cflags", "--libs", "decant",
                env={**os.environ, "PKG_CONFIG_PATH": str(folder)}).stdout.split()
    program = tmp_path / "version"
    (tmp_path / "version.cc").write_text(
        "#include <decant/model.h>\n#include <decant/version.h>\n#include <iostream>\n"
        'int main() { std::cout << decant::version() << decant::Model::load("none").status().to_string(); }\n'
    )
    run("c++", tmp_path / "version.cc", *flags, "-o", program)
    assert "not found: none" in run(program).stdout


def decode(program, model):
    """The ids and the number of plans that an example prints."""
    lines = run(program, model, ",".join(map(str, IDS)), COUNT).stdout.splitlines()
    return [int(i) for i in lines[0].split(",")], int(lines[1].removeprefix("plans: "))


def eager_ids(model):
    import torch

    with torch.no_grad():
        out = model.generate(torch.tensor([IDS]), max_new_tokens=COUNT, do_sample=False, eos_token_id=None,
                             pad_token_id=0)
    return out[0, len(IDS):].tolist()


def test_own_cache(programs, tiny_llama, tmp_path):
    model, checkpoint = tiny_llama
    for length in ([], ["--max-cache-len", "64"]):
        folder = tmp_path / f"static{len(length)}"
        helpers.run_decant(["export", checkpoint, "-o", folder, "--format", "onnx", "--cache", "static", *length])
        assert decode(programs / "own_cache", folder) == (eager_ids(model), 1)


def merged_decoder(source, target):
    """One file of a decoder with growing caches: a branch for the prompt, with empty caches, and one for steps."""
    single = onnx.load(source)
    graph = single.graph
    past = {i.name: i for i in graph.input if i.name.startswith("past_key_values.")}

    def branch(prefix, extra, renamed):
        names = {name: prefix + name for node in graph.node for name in node.output if name} | renamed
        nodes = []
        for node in graph.node:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.name = prefix + node.name
            copy.ClearField("input"), copy.ClearField("output")
            copy.input.extend(names.get(name, name) for name in node.input)
            copy.output.extend(names.get(name, name) for name in node.output)
            nodes.append(copy)
        outputs = [onnx.ValueInfoProto(name=names[o.name], type=o.type) for o in graph.output]
        return helper.make_graph(extra + nodes, prefix, [], outputs)

    empties, renamed = [], {}
    for name, value in past.items():
        dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
        empty = helper.make_tensor("e", 1, [1, dims[1], 0, dims[3]], [])
        renamed[name] = "empty_" + name
        empties.append(helper.make_node("Constant", [], [renamed[name]], value=empty))
    choice = helper.make_node("If", ["use_cache_branch"], [o.name for o in graph.output], "choice",
                              then_branch=branch("with_past_", [], {}),
                              else_branch=branch("no_past_", empties, renamed))
    inputs = [*graph.input, helper.make_tensor_value_info("use_cache_branch", 9, [1])]
    merged = helper.make_graph([choice], "merged", inputs, graph.output, graph.initializer)
    model = helper.make_model(merged, opset_imports=single.opset_import, ir_version=single.ir_version)
    onnx.save(model, target)


def test_static_input(programs, tiny_llama, tmp_path):
    model, checkpoint = tiny_llama
    folder = tmp_path / "dynamic"
    helpers.run_decant(["export", checkpoint, "-o", folder, "--format", "onnx", "--cache", "dynamic"])
    merged_decoder(folder / "model.onnx", tmp_path / "merged.onnx")
    merged = tmp_path / "merged.onnx"
    assert decode(programs / "static_input", merged) == (eager_ids(model), 2)


def custom_model(path, *operators):
    names = ["x", *[f"t{i}" for i in range(len(operators) - 1)], "y"]
    nodes = [helper.make_node(op, [a], [b], f"node{i}", domain="acme", **({"top": 2.5} if op == "Clamp01" else {}))
             for i, (op, a, b) in enumerate(zip(operators, names, names[1:]))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["n", 3])],
                              [helper.make_tensor_value_info("y", 1, None)])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("acme", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


def test_custom_operator(programs, tmp_path):
    program = programs / "custom_operator"
    assert run(program, custom_model(tmp_path / "m.onnx", "Clamp01")).stdout == "y: 0 0 1 2 2.5 2.5\n"
    missing = run(program, custom_model(tmp_path / "n.onnx", "Clamp01", "Fold", "Spin", "Fold"), check=False)
    assert missing.returncode == 1
    for text in ("acme::Fold", "acme::Spin", "'node1', 'node3'", "'node2'"):
        assert text in missing.stderr
    assert "Clamp01" not in missing.stderr


def test_run_model(programs, tmp_path):
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", 1, ["n", 2])],
        [helper.make_tensor_value_info("y", 1, ["n", 3])],
        [onnx.numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), tmp_path / "m.onnx")
    lines = run(programs / "run_model", tmp_path / "m.onnx", 4).stdout.splitlines()
    assert lines == ["single onnx file", "input  x: float32[n, 2]", "output y: float32[n, 3], 12 elements, sum 60"]


def test_chat(programs, smollm2_static):
    answers = run(programs / "chat", smollm2_static, 8, input="Name a river.\nAnd another.\n").stdout
    expected = helpers.run_decant(["chat", smollm2_static, "--max-new-tokens", "8", "--temperature", "0", "--quiet"],
                                  stdin="Name a river.\nAnd another.\n").stdout
    assert answers == expected and len(answers.strip()) > 10
