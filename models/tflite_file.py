# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite networks as values, and how they are written.

Needs NumPy, FlatBuffers and its compiler (Debian: python3-numpy, python3-flatbuffers, flatbuffers-compiler). The
compiler is run on src/tflite/tflite_schema.fbs.
"""
import importlib
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import flatbuffers
import numpy as np

SCHEMA = Path(__file__).resolve().parent.parent / "src" / "tflite" / "tflite_schema.fbs"

# Numbers of TensorFlow Lite's format for which the schema has no names.
TENSOR_TYPES = {"f32": 0, "i32": 2, "u8": 3, "i64": 4, "bool": 6, "i16": 7, "i8": 9, "resource": 13}
# fmt: off
OPERATORS = {
    "ADD": 0, "AVERAGE_POOL_2D": 1, "CONCATENATION": 2, "CONV_2D": 3, "DEPTHWISE_CONV_2D": 4, "DEPTH_TO_SPACE": 5,
    "DEQUANTIZE": 6, "FULLY_CONNECTED": 9, "LOGISTIC": 14, "MAX_POOL_2D": 17, "MUL": 18, "RELU": 19, "RELU6": 21, "RESHAPE": 22,
    "RESIZE_BILINEAR": 23, "SOFTMAX": 25, "SPACE_TO_DEPTH": 26, "SVDF": 27, "TANH": 28, "PAD": 34, "GATHER": 36,
    "BATCH_TO_SPACE_ND": 37, "SPACE_TO_BATCH_ND": 38, "TRANSPOSE": 39, "MEAN": 40, "SUB": 41, "DIV": 42, "SQUEEZE": 43,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": 44, "STRIDED_SLICE": 45, "SPLIT": 49, "LOG_SOFTMAX": 50, "CAST": 53, "PRELU": 54, "MAXIMUM": 55, "ARG_MAX": 56,
    "MINIMUM": 57, "LESS": 58, "PADV2": 60, "GREATER": 61, "GREATER_EQUAL": 62, "LESS_EQUAL": 63, "SLICE": 65,
    "TRANSPOSE_CONV": 67, "EXPAND_DIMS": 70, "EQUAL": 71, "NOT_EQUAL": 72, "SUM": 74, "RSQRT": 76, "REDUCE_MAX": 82,
    "PACK": 83, "LOGICAL_OR": 84, "LOGICAL_AND": 86, "UNPACK": 88, "REDUCE_MIN": 89, "REDUCE_ANY": 91, "RESIZE_NEAREST_NEIGHBOR": 97,
    "LEAKY_RELU": 98, "SQUARED_DIFFERENCE": 99, "MIRROR_PAD": 100, "ABS": 101, "SPLIT_V": 102, "ELU": 111,
    "QUANTIZE": 114, "HARD_SWISH": 117, "IF": 118, "WHILE": 119, "SCATTER_ND": 122, "SELECT_V2": 123, "BATCH_MATMUL": 126, "CALL_ONCE": 129, "BROADCAST_TO": 130,
    "VAR_HANDLE": 142, "READ_VARIABLE": 143, "ASSIGN_VARIABLE": 144, "REDUCE_ALL": 140, "RELU_N1_TO_1": 20,
}
# fmt: on
WIDEST_SHORT_CODE = 127
CUSTOM_CODE = 32  # for all operators that OPERATORS does not name

NUMPY_TYPES = {"f32": np.float32, "u8": np.uint8, "i32": np.int32, "i64": np.int64, "bool": np.bool_, "i16": np.int16, "i8": np.int8}


class Quantization(NamedTuple):
    """What codes stand for; scale is a number or an array with one for each index along axis."""

    scale: object
    zero_point: int = 0
    axis: int = 0


class Tensor(NamedTuple):
    type: str
    shape: list
    quantization: Quantization
    data: np.ndarray


class Operator(NamedTuple):
    name: str
    inputs: list
    outputs: list
    options: str
    fields: dict
    custom_options: bytes = b""


class Network:
    """Tensors, known by their index, and the operators between them."""

    def __init__(self):
        self.tensors = []
        self.operators = []
        self.inputs = []
        self.outputs = []
        self.variables = set()
        self.subgraphs = []  # networks that operators call, numbered 1, 2, ...
        self.metadata = {}  # bytes by name
        self.signature = None  # a name; its tensors are called x0, ... and y0, ...

    def tensor(self, type_, shape, quantization=None, data=None):
        self.tensors.append(Tensor(type_, [int(size) for size in shape], quantization, data))
        return len(self.tensors) - 1

    def input(self, type_, shape, quantization=None):
        index = self.tensor(type_, shape, quantization)
        self.inputs.append(index)
        return index

    def output(self, type_, shape, quantization=None):
        index = self.tensor(type_, shape, quantization)
        self.outputs.append(index)
        return index

    def constant(self, type_, values, quantization=None):
        data = np.asarray(values, NUMPY_TYPES[type_])
        return self.tensor(type_, data.shape, quantization, data)

    def variable(self, type_, shape, quantization=None):
        index = self.tensor(type_, shape, quantization)
        self.variables.add(index)
        return index

    def operator(self, name, inputs, outputs, options="", custom_options=b"", **fields):
        """options: a table of the schema without the "Options" at its end; fields: those of this table. A name that
        OPERATORS does not have is the code of a custom operator."""
        self.operators.append(Operator(name, inputs, outputs, options, fields, custom_options))


class Writer:
    """Writes networks with the classes that flatc makes of the schema, in folder."""

    def __init__(self, folder):
        subprocess.run(["flatc", "--python", "--gen-object-api", "-o", folder, SCHEMA], check=True)
        sys.path.insert(0, folder)
        self.option_numbers = self.generated("OperatorOptions")

    @staticmethod
    def generated(name, class_name=None):
        return getattr(importlib.import_module(f"carina.tflite.fb.{name}"), class_name or name)

    def table(self, name, /, **fields):
        """fields: as the schema spells them, stride_w; flatc makes strideW of it."""
        table = self.generated(name, name + "T")()
        for field, value in fields.items():
            first, *rest = field.split("_")
            attribute = first + "".join(word.capitalize() for word in rest)
            if not hasattr(table, attribute):
                raise AttributeError(f"{name} has no field {field}")
            setattr(table, attribute, value)
        return table

    def quantization(self, quantization):
        scales = [float(scale) for scale in np.atleast_1d(quantization.scale).astype(np.float32)]
        zero_points = [quantization.zero_point] * len(scales)
        return self.table("Quantization", scale=scales, zero_point=zero_points, quantized_dimension=quantization.axis)

    def tensor(self, network, index, buffers):
        tensor = network.tensors[index]
        entry = self.table("TensorEntry", shape=tensor.shape, type=TENSOR_TYPES[tensor.type], name=f"t{index}")
        entry.isVariable = index in network.variables
        if tensor.data is not None:
            entry.buffer = len(buffers)
            buffers.append(self.table("BufferEntry", data=list(tensor.data.tobytes())))
        if tensor.quantization is not None:
            entry.quantization = self.quantization(tensor.quantization)
        return entry

    def operator_code(self, operator):
        code = OPERATORS.get(operator.name, CUSTOM_CODE)
        entry = self.table("OperatorCode", short_builtin_code=min(code, WIDEST_SHORT_CODE), builtin_code=code, version=1)
        if code == CUSTOM_CODE:
            entry.customCode = operator.name
        return entry

    def operator(self, operator, code):
        entry = self.table("OperatorEntry", code=code, inputs=operator.inputs, outputs=operator.outputs)
        if operator.options:
            options = operator.options + "Options"
            entry.builtinOptions = self.table(options, **operator.fields)
            entry.builtinOptionsType = getattr(self.option_numbers, options)
        if operator.custom_options:
            entry.customOptions = list(operator.custom_options)
        return entry

    def subgraph(self, network, name, buffers, codes):
        subgraph = self.table("SubgraphEntry", name=name, inputs=network.inputs, outputs=network.outputs)
        subgraph.tensors = [self.tensor(network, index, buffers) for index in range(len(network.tensors))]
        subgraph.operators = []
        for operator in network.operators:
            subgraph.operators.append(self.operator(operator, len(codes)))
            codes.append(self.operator_code(operator))
        return subgraph

    def signature(self, network):
        def tensors(prefix, indices):
            return [self.table("SignatureTensor", name=f"{prefix}{i}", tensor_index=t) for i, t in enumerate(indices)]

        entry = self.table("Signature", key=network.signature)
        entry.inputs = tensors("x", network.inputs)
        entry.outputs = tensors("y", network.outputs)
        return entry

    def write(self, network, path):
        buffers = [self.table("BufferEntry")]  # the first is for tensors without data
        codes = []
        subgraphs = [self.subgraph(network, "main", buffers, codes)]
        for number, called in enumerate(network.subgraphs, 1):
            subgraphs.append(self.subgraph(called, f"subgraph{number}", buffers, codes))
        metadata = []
        for name, data in network.metadata.items():
            metadata.append(self.table("MetadataEntry", name=name, buffer=len(buffers)))
            buffers.append(self.table("BufferEntry", data=list(data)))
        root = self.table(
            "Root", version=3, description="generated", subgraphs=subgraphs, buffers=buffers, metadata=metadata
        )
        root.operatorCodes = codes
        if network.signature:
            root.signatures = [self.signature(network)]
        builder = flatbuffers.Builder(1024)
        builder.Finish(root.Pack(builder), b"TFL3")
        path.write_bytes(builder.Output())
