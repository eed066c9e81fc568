"""Writes the seeds that the fuzz targets start from, below tests/fuzz/seeds. Needs onnx, numpy, safetensors, tokenizers."""

import json
import pathlib

import numpy as np
import onnx
import safetensors.numpy
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

HERE = pathlib.Path(__file__).parent / "seeds"


def write(name, data):
    (HERE / name).parent.mkdir(parents=True, exist_ok=True)
    (HERE / name).write_bytes(data)


def onnx_model(nodes, inputs, outputs, weights, opset=18):
    graph = helper.make_graph(nodes, "seed", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def main():
    f32, i64, boolean = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    info = helper.make_tensor_value_info
    weights = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "b"], ["y"])]
    write("onnx/matmul", onnx_model(nodes, [info("x", f32, ["n", 4])], [info("y", f32, ["n", 3])], weights))
    shape = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "axes"], ["u"]),
        helper.make_node("Concat", ["u", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    constants = {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([2, -1])}
    write("onnx/shape", onnx_model(shape, [info("x", f32, ["n", 4])], [info("y", f32, ["n", 2, 2])], constants))
    branch = [
        helper.make_graph([helper.make_node(op, ["x"], [f"{op}_y"])], op, [], [info(f"{op}_y", f32, ["n"])])
        for op in ("Neg", "Abs")
    ]
    choose = [helper.make_node("If", ["c"], ["y"], then_branch=branch[0], else_branch=branch[1])]
    write("onnx/if", onnx_model(choose, [info("c", boolean, []), info("x", f32, ["n"])], [info("y", f32, ["n"])], {}))
    old = [
        helper.make_node("Softmax", ["x"], ["p"], axis=1),
        helper.make_node("Unsqueeze", ["p"], ["u"], axes=[0]),
        helper.make_node("Cast", ["u"], ["y"], to=i64),
    ]
    write("onnx/old", onnx_model(old, [info("x", f32, ["n", 4])], [info("y", i64, [1, "n", 4])], {}, opset=11))

    tensors = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.zeros((0, 4), np.int64), "c": np.array(True)}
    write("safetensors/three", safetensors.numpy.save(tensors, {"format": "pt"}))

    words = [*"abcdeĠ0123456789<>s/.!", "ab", "abc"]
    tokenizer = Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, [("a", "b"), ("ab", "c")]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<s>"])
    text = b"<s> abc 12"
    compact = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False).encode()
    write("tokenizer/bpe", bytes([len(text)]) + compact + text)

    templates = {
        "chatml": "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n'}}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
        "macro": "{%- macro f(x, n=2) -%}{{ x|upper ~ n }}{%- endmacro -%}{% set ns = namespace(i=0) %}"
        "{% for m in messages if m.role == 'user' %}{% set ns.i = ns.i + 1 %}{{ f(m.content) }}{{ loop.index }}"
        "{% else %}none{% endfor %}{{ ns.i }}{{ messages[-1]['content'][1:]|trim|tojson }}",
        "raise": "{{ bos_token }}{% if messages|length % 2 != 1 %}{{ raise_exception('odd') }}{% endif %}"
        "{{ strftime_now('%d %b %Y') }}{{ '%s' % [1, 2.5, none, true] }}{{ 'a,b'.split(',')|join('-') }}",
    }
    for name, source in templates.items():
        write(f"template/{name}", source.encode())


if __name__ == "__main__":
    main()
