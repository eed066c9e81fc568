"""Half-precision exports whose activations leave half precision's range: no Inf or NaN, and the f32 model's choice."""

import copy

import helpers
import numpy as np
import pytest

LENGTH = 12


def stressed_model():
    """A tiny Llama whose residual stream reaches 1e4, so that squares and scores pass 65,504."""
    import torch

    model = helpers.tiny_model("Llama", seed=3, tie_word_embeddings=False)
    with torch.no_grad():
        model.model.embed_tokens.weight *= 3e4
        for layer in model.model.layers:
            layer.self_attn.q_proj.weight *= 8
            layer.self_attn.k_proj.weight *= 8
            layer.mlp.down_proj.weight *= 1e3
    return model


@pytest.fixture(scope="module")
def stressed(tmp_path_factory):
    """(checkpoints by precision, ids, f32 logits of the weights as each precision rounds them)"""
    import torch

    model = stressed_model()
    ids = torch.from_numpy(helpers.random_ids(11, 2, LENGTH))
    seen = []
    hook = model.model.layers[0].register_forward_hook(lambda module, args, out: seen.append(args[0].abs().max()))
    hooks = [hook, model.model.norm.register_forward_hook(lambda module, args, out: seen.append(args[0].abs().max()))]
    checkpoints, logits = {}, {}
    for name in ("float16", "bfloat16", "float32"):
        rounded = copy.deepcopy(model).to(getattr(torch, name))
        folder = tmp_path_factory.mktemp("stress") / name
        helpers.save_checkpoint(rounded, folder)
        checkpoints[name] = folder
        with torch.no_grad():
            logits[name] = rounded.float()(ids).logits.numpy()
    for h in hooks:
        h.remove()
    assert max(seen) > 1e4, "the model is not stressed"
    return checkpoints, ids.numpy(), logits


def check(got, expected):
    assert np.isfinite(got).all()
    np.testing.assert_array_equal(got.argmax(-1), expected.argmax(-1))


@pytest.mark.parametrize("precision, name", [("fp16", "float16"), ("bf16", "bfloat16")])
@pytest.mark.parametrize("compute_type", ["f32", "f16", "bf16"])
def test_half_export_of_a_stressed_model(stressed, tmp_path, precision, name, compute_type):
    checkpoints, ids, logits = stressed
    if (name, compute_type) == ("float16", "bf16"):
        pytest.skip("bf16 weights are another model's")
    folder = tmp_path / "export"
    helpers.run_decant(["export", checkpoints[name], "-o", folder, "--precision", precision, "--cache", "none"])
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids),
              "position_ids": np.broadcast_to(np.arange(LENGTH), ids.shape).astype(np.int64)}
    graph = helpers.run_decant(["inspect", folder, "--json"]).json()["components"][0]
    names = [value["name"] for value in graph["inputs"]]
    got = helpers.forward(folder, {k: inputs[k] for k in names}, "--compute-type", compute_type)
    check(got["logits"].astype(np.float32), logits[name])


def test_half_module_of_torchs_exporter(stressed, tmp_path):
    """The same with every operator of the file in half precision, as an exporter writes model.half()."""
    import torch
    import transformers

    checkpoints, ids, logits = stressed
    model = transformers.LlamaForCausalLM.from_pretrained(checkpoints["float16"], dtype=torch.float16)
    model.set_attn_implementation("eager")
    model.eval()

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids):
            return self.model(input_ids=input_ids, use_cache=False).logits

    path = tmp_path / "model.onnx"
    with torch.no_grad():
        torch.onnx.export(Logits(), (torch.from_numpy(ids),), str(path), input_names=["input_ids"],
                          output_names=["logits"], opset_version=20, dynamo=True, verbose=False)
    got = helpers.forward(path, {"input_ids": ids})
    check(got["logits"].astype(np.float32), logits["float16"])


@pytest.mark.parametrize("compute_type", ["f16", "bf16"])
def test_f32_model_with_half_weights(tiny_llama, tmp_path, compute_type):
    model, checkpoint = tiny_llama
    folder = tmp_path / "export"
    helpers.run_decant(["export", checkpoint, "-o", folder])
    ids = helpers.random_ids(21, 7).tolist()
    exact = helpers.generate_ids(folder, ids, 8)
    half = helpers.generate_ids(folder, ids, 8, "--compute-type", compute_type)
    assert len(half) == len(exact) == 8
