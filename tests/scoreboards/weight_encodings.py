"""Encodings of weights that exports on the Hub have: graph in, quantized graph out."""

import pathlib
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def nbits(**options):
    """MatMulNBits, or with `qdq` DequantizeLinear in blocks, by ONNX Runtime's quantizer."""

    def quantize(model):
        from onnxruntime.quantization import QuantFormat
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

        settings = dict(options)
        if settings.pop("qdq", False):
            settings["quant_format"] = QuantFormat.QDQ
            model = onnx.version_converter.convert_version(model, 21) if opset(model) < 21 else model
        made = MatMulNBitsQuantizer(model, **settings)
        made.process()
        return made.model.model

    return quantize


def bnb4(kind, block):
    def quantize(model):
        from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer

        made = MatMulBnb4Quantizer(model, kind, block)
        made.process()
        return made.model.model

    return quantize


def dynamic(**options):
    """DynamicQuantizeLinear and MatMulInteger, by ONNX Runtime's quantizer."""

    def quantize(model):
        from onnxruntime.quantization import QuantType, quantize_dynamic

        settings = dict(options)
        settings["weight_type"] = QuantType.QUInt8 if settings.pop("unsigned", False) else QuantType.QInt8
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "in.onnx"), pathlib.Path(folder, "out.onnx")
            onnx.save(model, source)
            quantize_dynamic(source, target, op_types_to_quantize=["MatMul"],
                             extra_options={"MatMulConstBOnly": True}, **settings)
            return onnx.load(target)

    return quantize


def half(then=lambda model: model):
    """Weights and arithmetic in float16, inputs and outputs as they are."""

    def quantize(model):
        from onnxruntime.transformers.float16 import convert_float_to_float16

        return convert_float_to_float16(then(model), keep_io_types=True, disable_shape_infer=True)

    return quantize


def opset(model):
    return next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))


def weights_of_products(model):
    """{name: array} of the matrices that MatMul nodes alone multiply with."""
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    users = {}
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            users.setdefault(name, []).append((node.op_type, i))
    return {
        name: numpy_helper.to_array(tensor) for name, tensor in stored.items()
        if len(tensor.dims) == 2 and users.get(name) and all(use == ("MatMul", 1) for use in users[name])
    }


def dequantize_linear(kind, per_channel=True):
    """DequantizeLinear of codes of 8 bits (integers or float8), one scale a column or one in all."""
    largest = {TensorProto.INT8: 127, TensorProto.UINT8: 127, TensorProto.FLOAT8E4M3FN: 448, TensorProto.FLOAT8E5M2: 57344}

    def quantize(model):
        nodes = []
        for name, weights in weights_of_products(model).items():
            top = np.abs(weights).max(axis=0) if per_channel else np.abs(weights).max()
            scale = np.maximum(top / largest[kind], 1e-8).astype(np.float32)
            scaled = (weights / scale).astype(np.float32)
            inputs = [f"{name}.codes", f"{name}.scale"]
            if kind == TensorProto.INT8:
                codes = numpy_helper.from_array(np.rint(scaled).astype(np.int8), inputs[0])
            elif kind == TensorProto.UINT8:
                codes = numpy_helper.from_array((np.rint(scaled) + 128).astype(np.uint8), inputs[0])
                inputs.append(f"{name}.zero")
                zero = np.full(scale.shape, 128, np.uint8)
                model.graph.initializer.append(numpy_helper.from_array(zero, inputs[2]))
            else:
                codes = helper.make_tensor(inputs[0], kind, scaled.shape, scaled.ravel())
            model.graph.initializer.extend([codes, numpy_helper.from_array(scale, inputs[1])])
            nodes.append(helper.make_node("DequantizeLinear", inputs, [name], axis=1 if per_channel else None))
            model.graph.initializer.remove(next(t for t in model.graph.initializer if t.name == name))
        for node in reversed(nodes):
            model.graph.node.insert(0, node)
        version = max(opset(model), 19)
        return onnx.version_converter.convert_version(model, version) if version != opset(model) else model

    return quantize


ENCODINGS = {
    **{f"q4-b{block}{'' if symmetric else '-zero'}": nbits(bits=4, block_size=block, is_symmetric=symmetric)
       for block in (16, 32, 64, 128, 256) for symmetric in (True, False)},
    "q4": nbits(bits=4, block_size=32, is_symmetric=True),
    "q4-acc4": nbits(bits=4, block_size=32, is_symmetric=True, accuracy_level=4),
    **{f"q8-b{block}{'' if symmetric else '-zero'}": nbits(bits=8, block_size=block, is_symmetric=symmetric)
       for block in (32, 128) for symmetric in (True, False)},
    "q4-qdq": nbits(bits=4, block_size=32, is_symmetric=True, qdq=True),
    "q4-qdq-zero": nbits(bits=4, block_size=32, is_symmetric=False, qdq=True),
    "fp4": bnb4(0, 64),
    "nf4": bnb4(1, 64),
    "int8-weights": dequantize_linear(TensorProto.INT8),
    "int8-weights-tensor": dequantize_linear(TensorProto.INT8, per_channel=False),
    "uint8-weights": dequantize_linear(TensorProto.UINT8),
    "float8-e4m3": dequantize_linear(TensorProto.FLOAT8E4M3FN),
    "float8-e5m2": dequantize_linear(TensorProto.FLOAT8E5M2),
}
INT8 = {
    "int8": dynamic(),
    "int8-channel": dynamic(per_channel=True),
    "uint8": dynamic(unsigned=True),
    "int8-7bit": dynamic(reduce_range=True),
}
HALF = {"f16": half(), "q4-f16": half(ENCODINGS["q4"])}
