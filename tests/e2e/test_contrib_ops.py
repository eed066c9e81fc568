"""com.microsoft operators against ONNX Runtime on the same one-node models."""

import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
import safetensors.numpy
from onnx import TensorProto, helper

import helpers

F32, F16, I32, I64, U8, I8 = (
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.INT8
)
RNG = np.random.default_rng


def build(tmp_path, op, inputs, outputs=1, constants=(), domain="com.microsoft", dims=None, **attributes):
    """A model of one node. `inputs`: arrays (None: left out) by position, those listed in `constants` as initializers;
    `outputs`: how many, or their names ("": left out). Returns (path, feeds)."""
    names, feeds, infos, initializers = [], {}, [], []
    for i, value in enumerate(inputs):
        name = "" if value is None else f"x{i}"
        names.append(name)
        if value is None:
            continue
        value = np.asarray(value)
        if i in constants:
            initializers.append(onnx.numpy_helper.from_array(value, name))
            continue
        feeds[name] = value
        shape = (dims or {}).get(i, [f"{name}_{d}" if value.shape[d] != 1 else None for d in range(value.ndim)])
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape))
    if isinstance(outputs, int):
        outputs = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, outputs, domain=domain, name="node", **attributes)
    results = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
    graph = helper.make_graph([node], "g", infos, results, initializers)
    model = helper.make_model(
        graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    )
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    return path, feeds


def reference(path, feeds, names=None):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))


def forward(path, feeds, backend="cpu"):
    """helpers.forward without its measurements: there are hundreds of calls here."""
    source, target = path.parent / "in.safetensors", path.parent / "out.safetensors"
    safetensors.numpy.save_file({name: np.array(value, order="C") for name, value in feeds.items()}, source)
    command = [helpers.find_binary(), "forward", path, "--inputs", source, "--outputs", target, "--backend", backend]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return safetensors.numpy.load_file(target)


def check(tmp_path, op, inputs, outputs=1, atol=2e-5, only=None, **kwargs):
    """decant, on fast and on reference kernels, equals ONNX Runtime. `only`: {output: index of what counts}."""
    path, feeds = build(tmp_path, op, inputs, outputs, **kwargs)
    want = reference(path, feeds)
    for backend in ("cpu", "reference"):
        got = forward(path, feeds, backend)
        assert got.keys() == want.keys()
        for name, expected in want.items():
            assert got[name].shape == expected.shape and got[name].dtype == expected.dtype, (backend, name)
            a, b = got[name].astype(np.float64), expected.astype(np.float64)
            if only and name in only:
                a, b = a[only[name]], b[only[name]]
            np.testing.assert_allclose(a, b, atol=atol, rtol=atol, err_msg=f"{backend}: {name}")
    return want


def pack(codes, bits):
    """Codes as one bit stream along the last axis, low bits first."""
    stream = ((codes[..., None] >> np.arange(bits)) & 1).reshape(*codes.shape[:-1], -1).astype(np.uint8)
    return np.packbits(stream, axis=-1, bitorder="little")


# ---------------------------------------------------------------------------------------------------- weights


def nbits(rng, n, k, block, bits, zero, dtype=np.float32):
    blocks = -(-k // block)
    codes = rng.integers(0, 2**bits, (n, blocks, block)).astype(np.int64)
    scales = (rng.standard_normal((n, blocks)) * 0.1).astype(dtype)
    points = None
    if zero == "packed":
        points = pack(rng.integers(0, 2**bits, (n, blocks)), bits)
    elif zero == "float":
        points = rng.uniform(0, 2**bits, (n, blocks)).astype(dtype)
    return pack(codes, bits), scales, points


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("block", [16, 32, 128])
@pytest.mark.parametrize("zero", [None, "packed", "float"])
def test_matmul_nbits(tmp_path, bits, block, zero, dtype):
    rng = RNG(bits * 1000 + block)
    n, k = 7, 80
    if bits == 8 and zero == "float":
        pytest.skip("ONNX Runtime has no kernel")
    weights, scales, points = nbits(rng, n, k, block, bits, zero, dtype)
    bias = rng.standard_normal(n).astype(dtype)
    x = rng.standard_normal((2, 3, k)).astype(dtype)
    check(tmp_path, "MatMulNBits", [x, weights, scales, points, None, bias], constants=(1, 2, 3, 5), K=k, N=n,
          bits=bits, block_size=block, atol=1e-4 if dtype == np.float32 else 2e-2)


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 7, 8])
def test_matmul_nbits_formula(tmp_path, bits):
    """All widths, against the formula: ONNX Runtime runs only some of them."""
    rng = RNG(bits)
    n, k, block = 5, 72, 32
    blocks = -(-k // block)
    codes = rng.integers(0, 2**bits, (n, blocks, block))
    zeros = rng.integers(0, 2**bits, (n, blocks))
    scales = rng.standard_normal((n, blocks)).astype(np.float32)
    x = rng.standard_normal((3, k)).astype(np.float32)
    path, feeds = build(tmp_path, "MatMulNBits", [x, pack(codes, bits), scales, pack(zeros, bits)], constants=(1, 2, 3),
                        K=k, N=n, bits=bits, block_size=block)
    weights = ((codes - zeros[..., None]) * scales[..., None].astype(np.float64)).reshape(n, -1)[:, :k]
    np.testing.assert_allclose(forward(path, feeds)["y0"], x @ weights.T, rtol=1e-4, atol=1e-4 * 2**bits)


def test_matmul_nbits_group_index(tmp_path):
    rng = RNG(3)
    n, k, block = 6, 64, 16
    weights, scales, _ = nbits(rng, n, k, block, 4, None)
    groups = rng.permutation(np.repeat(np.arange(k // block), block)).astype(np.int32)
    x = rng.standard_normal((5, k)).astype(np.float32)
    check(tmp_path, "MatMulNBits", [x, weights, scales, None, groups], constants=(1, 2, 4), K=k, N=n, bits=4,
          block_size=block, atol=1e-4)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("n,k", [(6, 64), (5, 48)])
def test_matmul_bnb4(tmp_path, kind, n, k):
    rng = RNG(n)
    block = 32
    codes = rng.integers(0, 256, (n * k + 1) // 2).astype(np.uint8)
    scales = rng.uniform(0.1, 1, -(-n * k // block)).astype(np.float32)
    x = rng.standard_normal((4, k)).astype(np.float32)
    check(tmp_path, "MatMulBnb4", [x, codes, scales], constants=(1, 2), K=k, N=n, block_size=block, quant_type=kind)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zero", [False, True])
def test_gather_block_quantized(tmp_path, bits, zero, dtype):
    rng = RNG(bits)
    rows, width, block = 11, 64, 16
    codes = pack(rng.integers(0, 2**bits, (rows, width)), bits)
    scales = rng.standard_normal((rows, width // block)).astype(dtype)
    points = pack(rng.integers(0, 2**bits, (rows, width // block)), bits) if zero else None
    indices = rng.integers(-rows, rows, (2, 5))
    check(tmp_path, "GatherBlockQuantized", [codes, indices, scales, points], constants=(0, 2, 3), bits=bits,
          block_size=block, gather_axis=0, quantize_axis=1, atol=1e-6)


def small_tensor(name, kind, codes):
    """A tensor of int4 or uint4 from the low bits of `codes`."""
    packed = np.packbits(((codes.reshape(-1)[:, None] >> np.arange(4)) & 1).astype(np.uint8).reshape(-1), bitorder="little")
    return helper.make_tensor(name, kind, codes.shape, packed.tobytes(), raw=True)


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("op", ["GatherBlockQuantized", "DequantizeLinear"])
@pytest.mark.parametrize("zero", [False, True])
def test_four_bit_tensors(tmp_path, kind, op, zero):
    rng = RNG(21)
    gather = op == "GatherBlockQuantized"
    rows, width, block = (11, 64, 16) if gather else (64, 6, 16)
    blocks = (rows, width // block) if gather else (rows // block, width)
    codes = rng.integers(0, 16, (rows, width))
    tensors = [small_tensor("codes", kind, codes),
               onnx.numpy_helper.from_array(rng.standard_normal(blocks).astype(np.float32), "scales")]
    if zero:
        tensors.append(small_tensor("zeros", kind, rng.integers(0, 16, blocks)))
    names = (["codes", "x"] if gather else ["codes"]) + [t.name for t in tensors[1:]]
    nodes = [helper.make_node(op, names, ["w"], "node", domain="com.microsoft" if gather else "", block_size=block,
                              **({"gather_axis": 0, "quantize_axis": 1} if gather else {"axis": 0}))]
    feeds = {"x": rng.integers(0, rows, (2, 3)) if gather else normal(rng, 3, rows)}
    nodes.append(helper.make_node("Identity" if gather else "MatMul", ["w"] if gather else ["x", "w"], ["y0"]))
    inputs = [helper.make_tensor_value_info("x", I64 if gather else F32, ["a", "b" if gather else rows])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y0")], tensors)
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21),
                                                                     helper.make_opsetid("com.microsoft", 1)]), path)
    np.testing.assert_allclose(forward(path, feeds)["y0"], reference(path, feeds)["y0"], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("form", ["tensor", "columns", "rows"])
def test_dequantized_weights(tmp_path, dtype, form):
    """DequantizeLinear of a constant, read as a packed constant."""
    rng = RNG(1)
    info = np.iinfo(dtype)
    weights = rng.integers(info.min, info.max, (6, 10)).astype(dtype)
    count = {"tensor": (), "columns": (10,), "rows": (6,)}[form]
    scale = rng.uniform(0.01, 0.1, count).astype(np.float32)
    zero = rng.integers(info.min, info.max, count).astype(dtype)
    check(tmp_path, "DequantizeLinear", [weights, scale, zero], constants=(0, 1, 2), domain="",
          axis=0 if form == "rows" else 1)


# ------------------------------------------------------------------------------------------------------ int8


@pytest.mark.parametrize("m,k,n", [(1, 64, 32), (3, 37, 5), (70, 130, 67), (2, 20000, 3)])
@pytest.mark.parametrize("a,b", [(np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8)])
@pytest.mark.parametrize("constant", [False, True])
def test_matmul_integer(tmp_path, m, k, n, a, b, constant):
    rng = RNG(m + k)
    draw = lambda dtype, *dims: rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, dims, endpoint=True).astype(dtype)
    check(tmp_path, "MatMulInteger", [draw(a, 2, m, k), draw(b, k, n), draw(a, 1)[0], draw(b, n)], domain="", atol=0,
          constants=(1, 3) if constant else ())


@pytest.mark.parametrize("low,high", [(-3, 5), (0.5, 4), (-4, -1), (0, 0)])
@pytest.mark.parametrize("size", [1, 17, 5000])
def test_dynamic_quantize_linear(tmp_path, low, high, size):
    x = RNG(size).uniform(low, high, size).astype(np.float32)
    check(tmp_path, "DynamicQuantizeLinear", [x], 3, domain="", atol=0)


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_dynamic_quantize_matmul(tmp_path, columns, bias):
    rng = RNG(2)
    k, n = 24, 10
    count = (n,) if columns else (1,)
    inputs = [rng.standard_normal((3, 5, k)).astype(np.float32), rng.integers(-128, 128, (k, n)).astype(np.int8),
              rng.uniform(0.01, 0.1, count).astype(np.float32), rng.integers(-5, 5, count).astype(np.int8)]
    check(tmp_path, "DynamicQuantizeMatMul", inputs + ([rng.standard_normal(n).astype(np.float32)] if bias else []),
          constants=(1, 2, 3))


def test_matmul_integer_to_float(tmp_path):
    rng = RNG(2)
    k, n = 24, 10
    check(tmp_path, "MatMulIntegerToFloat",
          [rng.integers(0, 256, (4, k)).astype(np.uint8), rng.integers(-128, 128, (k, n)).astype(np.int8),
           np.float32([0.02]), rng.uniform(0.01, 0.1, n).astype(np.float32), np.uint8([120]), np.int8([3]),
           rng.standard_normal(n).astype(np.float32)], constants=(1, 3))


def scalar(value, dtype):
    return np.array(value, dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_qlinear_binary(tmp_path, op, dtype):
    rng = RNG(2)
    info = np.iinfo(dtype)
    x, y = (rng.integers(info.min, info.max, dims).astype(dtype) for dims in ((3, 5), (5,)))
    check(tmp_path, op, [x, scalar(0.02, "f"), scalar(7, dtype), y, scalar(0.03, "f"), scalar(9, dtype),
                         scalar(0.07, "f"), scalar(11, dtype)], atol=1)


@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_qlinear_unary(tmp_path, op):
    x = np.arange(256, dtype=np.uint8).reshape(16, 16)
    extra = {"alpha": 0.1} if op == "QLinearLeakyRelu" else {}
    check(tmp_path, op, [x, scalar(0.05, "f"), scalar(128, np.uint8), scalar(0.01, "f"), scalar(3, np.uint8)], atol=1,
          constants=(1, 2, 3, 4), **extra)


@pytest.mark.parametrize("quantized", [False, True])
def test_qgemm(tmp_path, quantized):
    rng = RNG(4)
    m, k, n = 3, 20, 7
    inputs = [rng.integers(0, 256, (m, k)).astype(np.uint8), scalar(0.02, "f"), scalar(128, np.uint8),
              rng.integers(-128, 128, (n, k)).astype(np.int8), scalar(0.01, "f"), scalar(2, np.int8),
              rng.integers(-1000, 1000, n).astype(np.int32)]
    if quantized:
        inputs += [scalar(0.05, "f"), scalar(100, np.uint8)]
    check(tmp_path, "QGemm", inputs, transB=1, atol=1 if quantized else 1e-4)


# ------------------------------------------------------------------------------------------- norms, activations


def normal(rng, *dims, dtype=np.float32):
    return rng.standard_normal(dims).astype(dtype)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
@pytest.mark.parametrize("skip", [(2, 3, 10), (1, 3, 10), (3, 10)])
def test_skip_norms(tmp_path, op, skip, bias):
    rng = RNG(5)
    inputs = [normal(rng, 2, 3, 10), normal(rng, *skip), normal(rng, 10)]
    if op == "SkipLayerNormalization":
        inputs.append(normal(rng, 10))
    inputs.append(normal(rng, 10) if bias else None)
    while inputs[-1] is None:
        inputs.pop()
    check(tmp_path, op, inputs, ["y0", "", "", "y3"], epsilon=1e-5)


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("positions", [False, True])
def test_embed_layer_norm(tmp_path, segments, mask, positions):
    rng = RNG(6)
    ids = rng.integers(0, 9, (2, 5)).astype(np.int32)
    inputs = [ids, rng.integers(0, 2, (2, 5)).astype(np.int32) if segments else None, normal(rng, 9, 8),
              normal(rng, 6, 8), normal(rng, 2, 8) if segments else None, normal(rng, 8), normal(rng, 8),
              np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32) if mask else None,
              rng.integers(0, 6, (2, 5)).astype(np.int32) if positions else None]
    while inputs[-1] is None:
        inputs.pop()
    check(tmp_path, "EmbedLayerNormalization", inputs, 2, epsilon=1e-5, constants=(2, 3, 4, 5, 6))


@pytest.mark.parametrize("op,bias,extra", [
    ("Gelu", False, {}), ("BiasGelu", True, {}), ("FastGelu", False, {}), ("FastGelu", True, {}),
    ("QuickGelu", False, {}), ("QuickGelu", False, {"alpha": 1.3}),
])
def test_gelu(tmp_path, op, bias, extra):
    rng = RNG(7)
    check(tmp_path, op, [3 * normal(rng, 4, 9)] + ([normal(rng, 9)] if bias else []), atol=1e-4, **extra)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", ["ids", "first"])
@pytest.mark.parametrize("partial", [False, True])
def test_rotary_embedding(tmp_path, flat, interleaved, positions, partial):
    rng = RNG(8)
    batch, heads, length, size = 2, 3, 5, 8
    rotated = 4 if partial else size
    x = normal(rng, batch, heads, length, size)
    if flat:
        x = x.transpose(0, 2, 1, 3).reshape(batch, length, -1).copy()
    ids = rng.integers(0, 16, (batch, length)) if positions == "ids" else np.array([4])
    extra = {"num_heads": heads, "rotary_embedding_dim": rotated} if partial else {}
    check(tmp_path, "RotaryEmbedding", [x, ids.astype(np.int64), normal(rng, 16, rotated // 2), normal(rng, 16, rotated // 2)],
          constants=(2, 3), interleaved=interleaved, **extra)


@pytest.mark.parametrize("attributes", [
    {"transA": 1}, {"transB": 1}, {"alpha": 0.3}, {"transA": 1, "transB": 1, "alpha": 2.0}, {"transBatchA": 1},
    {"transBatchB": 1, "transB": 1},
])
def test_fused_matmul(tmp_path, attributes):
    rng = RNG(9)
    a, b = normal(rng, 4, 3, 5), normal(rng, 4, 5, 6)
    if attributes.get("transA"):
        a = a.transpose(0, 2, 1).copy()
    if attributes.get("transB"):
        b = b.transpose(0, 2, 1).copy()
    if attributes.get("transBatchA"):
        a = np.moveaxis(a, 0, 1).copy()
    if attributes.get("transBatchB"):
        b = np.moveaxis(b, 0, 1).copy()
    check(tmp_path, "FusedMatMul", [a, b], atol=1e-4, **attributes)


@pytest.mark.parametrize("activation,extra", [("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("Tanh", {})])
def test_fused_gemm(tmp_path, activation, extra):
    rng = RNG(10)
    check(tmp_path, "FusedGemm", [normal(rng, 3, 5), normal(rng, 5, 4), normal(rng, 4)], activation=activation, **extra)


def test_inverse(tmp_path):
    check(tmp_path, "Inverse", [normal(RNG(1), 3, 5, 5)], atol=1e-3)


def test_expand_dims(tmp_path):
    check(tmp_path, "ExpandDims", [normal(RNG(1), 3, 4), scalar(1, np.int32)], constants=(1,))


# ------------------------------------------------------------------------------------------------- attention


def tables(rng, positions, half):
    angles = rng.uniform(0, 6, (positions, half))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


GQA = {
    "plain": {},
    "packed": {"packed": True},
    "rotary": {"rotary": True, "packed": True},
    "interleaved": {"rotary": True, "interleaved": True},
    "partial rotary": {"rotary": True, "half": 8},
    "window": {"window": 3},
    "softcap": {"softcap": 5.0},
    "scale": {"scale": 0.3},
    "sinks": {"sinks": True, "rotary": True},
    "smooth": {"smooth": True},
    "bias": {"bias": True},
    "all": {"packed": True, "rotary": True, "window": 4, "softcap": 8.0, "sinks": True},
}


@pytest.mark.parametrize("name", GQA)
@pytest.mark.parametrize("past,length,capacity,batch", [
    (0, 6, 0, 1),  # a prompt, growing cache
    (0, 6, 16, 2),  # a prompt, shared buffer
    (5, 1, 5, 2),  # one token, growing
    (5, 1, 16, 2),  # one token, shared
    (4, 3, 16, 1),  # several tokens behind others
])
def test_group_query_attention(tmp_path, name, past, length, capacity, batch):
    case = GQA[name]
    rng = RNG(11)
    heads, kv_heads, size = 4, 2, 32
    total = past + length
    q, k, v = (normal(rng, batch, length, h * size) for h in (heads, kv_heads, kv_heads))
    if case.get("packed"):
        q, k, v = np.concatenate([q, k, v], -1), None, None
    caches = [normal(rng, batch, kv_heads, capacity, size) for _ in range(2)]
    lengths = np.full(batch, total - 1, np.int32)
    valid = np.full(batch, length)
    if batch > 1 and length > 1:  # padded on the right
        lengths[1] -= 2
        valid[1] -= 2
    elif batch > 1 and capacity > total:  # rows of unequal lengths
        lengths[1] -= 2
    cos, sin = tables(rng, 32, case.get("half", size // 2)) if case.get("rotary") else (None, None)
    bias = normal(rng, batch, heads, length, total) if case.get("bias") else None
    sinks = normal(rng, heads) if case.get("sinks") else None
    attributes = {"num_heads": heads, "kv_num_heads": kv_heads, "do_rotary": int(bool(case.get("rotary"))),
                  "rotary_interleaved": int(bool(case.get("interleaved"))), "local_window_size": case.get("window", -1),
                  "softcap": case.get("softcap", 0.0), "scale": case.get("scale", 0.0),
                  "smooth_softmax": int(bool(case.get("smooth")))}
    inputs = [q, k, v, *caches, lengths, scalar(total, np.int32), cos, sin, None, bias, sinks]
    while inputs[-1] is None:
        inputs.pop()
    path, feeds = build(tmp_path, "GroupQueryAttention", inputs, 3, constants=(7, 8, 11), **attributes)
    want = reference(path, feeds)
    for backend in ("cpu", "reference"):
        got = forward(path, feeds, backend)
        for output, expected in want.items():
            assert got[output].shape == expected.shape, (backend, output)
            for b in range(batch):
                rows = slice(0, valid[b]) if output == "y0" else slice(0, lengths[b] + 1)
                pick = (b, rows) if output == "y0" else (b, slice(None), rows)
                np.testing.assert_allclose(got[output][pick], expected[pick], atol=2e-5, rtol=2e-5,
                                           err_msg=f"{backend}: {output} row {b}")


@pytest.mark.parametrize("capacity,window,past,length", [
    (8, 8, 0, 5), (8, 8, 0, 20), (11, 8, 0, 12), (8, 8, 8, 1), (8, 8, 30, 1), (11, 8, 30, 1), (11, 8, 9, 5), (11, 8, 30, 17),
])
def test_sliding_window_cache(tmp_path, capacity, window, past, length):
    rng = RNG(12)
    heads, kv_heads, size = 4, 2, 16

    def resident(tokens):
        step = capacity - window + 1
        return tokens if tokens <= capacity else tokens - step * -(-(tokens - capacity) // step)

    inputs = [normal(rng, 1, length, h * size) for h in (heads, kv_heads, kv_heads)]
    inputs += [normal(rng, 1, kv_heads, capacity, size) for _ in range(2)]
    inputs += [np.array([past + length - 1], np.int32), scalar(past + length, np.int32), *tables(rng, 64, size // 2)]
    kept = resident(past + length)
    check(tmp_path, "GroupQueryAttention", inputs, 3, constants=(7, 8), num_heads=heads, kv_num_heads=kv_heads,
          local_window_size=window, sliding_window_cache=1, do_rotary=1,
          only={"y1": np.s_[:, :, :kept], "y2": np.s_[:, :, :kept]})


@pytest.mark.parametrize("past", [0, 4])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("mask", [None, "lengths", "keys", "queries"])
@pytest.mark.parametrize("causal", [0, 1])
def test_multi_head_attention(tmp_path, past, bias, mask, causal):
    if mask == "lengths" and past:
        pytest.skip("lengths count new keys only")
    if mask == "queries" and causal:
        pytest.skip("one or the other")
    rng = RNG(13)
    batch, heads, length, size = 2, 3, 5, 8
    width, total = heads * size, past + length
    inputs = [normal(rng, batch, length, width) for _ in range(3)]
    inputs.append(normal(rng, 3 * width) if bias else None)
    keys = (rng.uniform(size=(batch, total)) < 0.7).astype(np.int32)
    keys[:, 0] = 1
    inputs.append({None: None, "lengths": np.array([3, 5], np.int32), "keys": keys,
                   "queries": (rng.uniform(size=(batch, length, total)) < 0.7).astype(np.int32)}[mask])
    inputs.append(None)
    if past:
        inputs += [normal(rng, batch, heads, past, size) for _ in range(2)]
    while inputs[-1] is None:
        inputs.pop()
    dims = {0: ["batch", "sequence", width], 1: ["batch", "sequence", width], 2: ["batch", "sequence", width]}
    if mask == "lengths":
        dims[4] = ["batch"]
    check(tmp_path, "MultiHeadAttention", inputs, 3 if past else 1, num_heads=heads, unidirectional=causal,
          constants=(3,), dims=dims, atol=5e-5)


def test_multi_head_cross_attention(tmp_path):
    rng = RNG(14)
    heads, size = 3, 8
    inputs = [normal(rng, 2, 4, heads * size), normal(rng, 2, heads, 7, size), normal(rng, 2, heads, 7, size)]
    check(tmp_path, "MultiHeadAttention", inputs, num_heads=heads, scale=0.3, dims={0: ["b", "s", heads * size]})


@pytest.mark.parametrize("past", [0, 4])
@pytest.mark.parametrize("mask", [None, "ends", "ends and starts", "keys"])
@pytest.mark.parametrize("causal", [0, 1])
def test_attention(tmp_path, past, mask, causal):
    if past and mask and mask != "keys":
        pytest.skip("not with a past")
    rng = RNG(15)
    batch, heads, length, size = 2, 3, 5, 8
    width = heads * size
    keys = np.ones((batch, past + length), np.int32)
    keys[0, -2:] = 0
    inputs = [normal(rng, batch, length, 10), 0.3 * normal(rng, 10, 3 * width), normal(rng, 3 * width),
              {None: None, "ends": np.array([3, 5], np.int32), "ends and starts": np.array([4, 5, 1, 2], np.int32),
               "keys": keys}[mask],
              normal(rng, 2, batch, heads, past, size) if past else None]
    while inputs[-1] is None:
        inputs.pop()
    dims = {0: ["batch", "sequence", 10]}
    if mask == "ends":
        dims[3] = ["batch"]
    if mask == "ends and starts":
        dims[0], dims[3] = [2, "sequence", 10], [4]
    # A query that sees masked keys only: scores around -10000 have few digits left in float32.
    check(tmp_path, "Attention", inputs, 2 if past else 1, num_heads=heads, unidirectional=causal, constants=(1, 2),
          dims=dims, atol=1e-3 if causal and mask == "ends and starts" else 5e-5)


def test_quantized_attention(tmp_path):
    rng = RNG(16)
    heads, size = 2, 8
    width = heads * size
    inputs = [rng.integers(0, 256, (2, 5, 12)).astype(np.uint8), rng.integers(-128, 128, (12, 3 * width)).astype(np.int8),
              normal(rng, 3 * width), scalar(0.01, "f"), scalar(0.01, "f"), None, scalar(128, np.uint8), scalar(1, np.int8)]
    check(tmp_path, "QAttention", inputs, num_heads=heads, unidirectional=1, constants=(1, 2, 3, 4, 6, 7))


# --------------------------------------------------------------------------------------------------- experts


@pytest.mark.parametrize("kind,fusion", [("relu", 0), ("gelu", 0), ("silu", 0), ("swiglu", 1)])
@pytest.mark.parametrize("normalize", [0, 1])
def test_mixture_of_experts(tmp_path, kind, fusion, normalize):
    rng = RNG(17)
    tokens, hidden, inner, experts = 7, 16, 12, 4
    wide = inner * (2 if fusion else 1)
    inputs = [normal(rng, tokens, hidden), normal(rng, tokens, experts), 0.3 * normal(rng, experts, wide, hidden),
              normal(rng, experts, wide), 0.3 * normal(rng, experts, hidden, inner), normal(rng, experts, hidden)]
    extra = {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 7.0} if fusion else {}
    check(tmp_path, "MoE", inputs, constants=(2, 3, 4, 5), k=2, activation_type=kind,
          normalize_routing_weights=normalize, atol=1e-4, **extra)


@pytest.mark.parametrize("block", [0, 32])
def test_quantized_experts(tmp_path, block):
    rng = RNG(18)
    tokens, hidden, inner, experts = 5, 64, 32, 4

    def stack(n, k):
        codes = pack(rng.integers(0, 16, (experts, n, k)), 4)
        scales = (0.02 * rng.standard_normal((experts, n, k // block) if block else (experts, n))).astype(np.float32)
        return codes, scales

    fc1, fc2 = stack(2 * inner, hidden), stack(hidden, inner)
    inputs = [normal(rng, tokens, hidden), normal(rng, tokens, experts), *fc1, normal(rng, experts, 2 * inner), *fc2,
              normal(rng, experts, hidden)]
    extra = {"block_size": block} if block else {}
    check(tmp_path, "QMoE", inputs, constants=(2, 3, 4, 5, 6, 7), k=2, activation_type="swiglu", expert_weight_bits=4,
          normalize_routing_weights=1, swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0,
          atol=1e-4, **extra)


# ----------------------------------------------------------------------------------------------- generation


def tiny_decoder(path, sliding=0, packed_weights=False, dtype=np.float32):
    """Two layers of attention without norms, as onnxruntime-genai writes them: lengths from the mask, caches with a
    named last dim. `sliding`: capacity of the first layer's window cache of 6."""
    rng = RNG(20)
    vocabulary, heads, kv_heads, size = 40, 4, 2, 16
    hidden, element = heads * size, helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    tensors, nodes = [], []

    def constant(name, value):
        tensors.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(op, inputs, output, domain="", **attributes):
        nodes.append(helper.make_node(op, inputs, output if isinstance(output, list) else [output], domain=domain,
                                      name=f"{op}_{len(nodes)}", **attributes))
        return output

    def linear(x, n, k, output):
        if not packed_weights:
            return node("MatMul", [x, constant(output + ".weight", normal(rng, k, n, dtype=dtype))], output)
        codes, scales, _ = nbits(rng, n, k, 16, 4, None, dtype)
        return node("MatMulNBits", [x, constant(output + "_Q4", codes), constant(output + "_scales", scales)], output,
                    domain="com.microsoft", K=k, N=n, bits=4, block_size=16)

    total = node("ReduceSum", ["attention_mask", constant("one_axis", np.array([1]))], "total", keepdims=0)
    less = node("Sub", [total, constant("one", np.array([1]))], "less")
    seqlens = node("Cast", [less], "seqlens", to=I32)
    width = node("Gather", [node("Shape", ["attention_mask"], "mask_shape"), constant("at", np.array(1))], "width")
    width = node("Cast", [width], "width32", to=I32)
    cos, sin = (constant(n, t.astype(dtype)) for n, t in zip(("cos", "sin"), tables(rng, 64, size // 2)))
    x = node("Gather", [constant("table", normal(rng, vocabulary, hidden, dtype=dtype)), "input_ids"], "embedded")
    inputs = [helper.make_tensor_value_info("input_ids", I64, ["batch_size", "sequence_length"]),
              helper.make_tensor_value_info("attention_mask", I64, ["batch_size", "total_sequence_length"])]
    outputs = []
    for layer in range(2):
        qkv = linear(x, hidden + 2 * kv_heads * size, hidden, f"qkv{layer}")
        names = [f"{when}.{layer}.{kind}" for when in ("past_key_values", "present") for kind in ("key", "value")]
        window = sliding and layer == 0
        extra = {"local_window_size": 6, "sliding_window_cache": 1} if window else {}
        y = node("GroupQueryAttention", [qkv, "", "", *names[:2], seqlens, width, cos, sin], [f"attended{layer}", *names[2:]],
                 domain="com.microsoft", num_heads=heads, kv_num_heads=kv_heads, do_rotary=1, **extra)[0]
        x = node("Add", [x, linear(y, hidden, hidden, f"out{layer}")], f"sum{layer}")
        for i, name in enumerate(names):
            length = ("past_" if i < 2 else "total_") + ("sliding_length" if window else "sequence_length")
            info = helper.make_tensor_value_info(name, element, ["batch_size", kv_heads, length, "kv_cache_dim"])
            (inputs if i < 2 else outputs).append(info)
    linear(x, vocabulary, hidden, "logits")
    outputs.insert(0, helper.make_tensor_value_info("logits", element, ["batch_size", "sequence_length", vocabulary]))
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, tensors)
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21),
                                                                     helper.make_opsetid("com.microsoft", 1)]), path)
    return kv_heads, size


@pytest.mark.parametrize("sliding", [0, 6, 9])
@pytest.mark.parametrize("packed", [False, True])
def test_generation_in_place(tmp_path, sliding, packed):
    """Greedy ids of ONNX Runtime; decant turns the caches into buffers that it writes in place."""
    path = tmp_path / "model.onnx"
    kv_heads, size = tiny_decoder(path, sliding, packed)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    prompt, count = [3, 1, 4, 1, 5], 20
    ids = list(prompt)
    caches = {f"past_key_values.{l}.{k}": np.zeros((1, kv_heads, sliding if l == 0 and sliding else 0, size), np.float32)
              for l in range(2) for k in ("key", "value")}
    fresh = prompt
    for _ in range(count):
        feeds = {"input_ids": np.array([fresh]), "attention_mask": np.ones((1, len(ids)), np.int64), **caches}
        results = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
        fresh = [int(results["logits"][0, -1].argmax())]
        ids += fresh
        caches = {name: results[name.replace("past_key_values", "present")] for name in caches}
    assert helpers.generate_ids(path, prompt, count) == ids[len(prompt):]
