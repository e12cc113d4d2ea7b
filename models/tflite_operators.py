#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the TensorFlow Lite networks of one operator in tests/data/tflite.

usage: tflite_operators.py OUT_DIR [--inputs] [--cpu | --loops] [CASE_SEED ...]

Writes CASE_SEED.tflite, such as conv8_3.tflite, for each network named: a case of the table CASES and a number that
seeds its sizes, scales, zero points, options and weights. Without names it makes those of tests/data/tflite, byte for
byte. --inputs also writes CASE_SEED.npz, over one that is there, with random inputs in0, ... for the network. The
results out0, ... in tests/data/tflite are not made here: they are what the reference kernels of TensorFlow Lite for
Microcontrollers, which are no part of this repository, give for these inputs.

Needs NumPy, FlatBuffers and its compiler (Debian: python3-numpy, python3-flatbuffers, flatbuffers-compiler). The
compiler is run on src/tflite/tflite_schema.fbs.

A case draws its random numbers in a fixed order: another order makes other networks.
"""
import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tflite_draw import NO_TENSOR, TANH, Draw
from tflite_file import NUMPY_TYPES, Network, Quantization, Writer
from tflite_windows import convolution, fully_connected, padded_convolution, pool, resize, transposed_convolution

INPUT_SEED = 7


def broadcast_shapes(draw):
    """Two shapes and the one that both stretch to."""
    shape = [draw.number(1, 3), draw.number(1, 6), draw.number(1, 6), draw.number(1, 20)]
    channels_only = [1, 1, 1, shape[3]]
    one_channel = shape[:3] + [1]
    pairs = [(shape, channels_only), (shape, [1, 1, 1, 1]), (channels_only, shape), (shape, one_channel)]
    choice = draw.number(0, 6)
    left, right = pairs[choice] if choice < len(pairs) else (shape, shape)
    return left, right, shape


def scale_of_result(operator, type_, left, right):
    """A scale with which few results saturate."""
    if operator == "MUL":
        return left * right * (16000 if type_ == "i16" else 60)
    if operator == "SQUARED_DIFFERENCE":
        return max(left, right) ** 2 * (200 if type_ == "i8" else 40000)
    return max(left, right) * 1.5


def binary(net, draw, operator, type_, options="", same=False):
    """same: the operator wants one quantization for all its tensors."""
    left_shape, right_shape, shape = broadcast_shapes(draw)
    left = draw.quantization(type_)
    right = draw.quantization(type_) if draw.number(0, 3) else left
    if same:
        right = left
    x = net.input(type_, left_shape, left)
    if draw.number(0, 3):
        y = net.input(type_, right_shape, right)
    else:
        limits = np.iinfo(NUMPY_TYPES[type_])
        y = net.constant(type_, draw.numbers(limits.min, limits.max + 1, right_shape), right)
    if same:
        result = left
    else:
        scale = scale_of_result(operator, type_, left.scale, right.scale) * draw.real(0.6, 1.6)
        result = Quantization(scale, draw.zero_point(type_))
    z = net.output(type_, shape, result)
    fields = {"fused_activation_function": draw.activation()} if options else {}
    net.operator(operator, [x, y], [z], options, **fields)


def arithmetic_i32(net, draw):
    shape = [2, 3, 4]
    x = net.input("i32", shape)
    y = net.input("i32", [1, 3, 1] if draw.flag() else shape)
    z = net.output("i32", shape)
    operator = draw.one_of(["ADD", "SUB", "MUL"])
    net.operator(operator, [x, y], [z], operator.capitalize())


def logical(net, draw):
    shape = [2, 5]
    x = net.input("bool", shape)
    y = net.input("bool", shape)
    z = net.output("bool", shape)
    net.operator(draw.one_of(["LOGICAL_AND", "LOGICAL_OR"]), [x, y], [z])


def comparison(net, draw, type_="i8"):
    left_shape, right_shape, shape = broadcast_shapes(draw)
    left = draw.quantization(type_)
    right = draw.quantization(type_)
    x = net.input(type_, left_shape, left)
    y = net.input(type_, right_shape, left if draw.flag() else right)
    z = net.output("bool", shape)
    operators = ["LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL"]
    net.operator(draw.one_of(operators), [x, y], [z])


def select(net, draw):
    shape = [1, 4, 5, 6]
    quantization = draw.quantization("i8")
    condition = net.input("bool", shape)
    x = net.input("i8", shape, quantization)
    y = net.input("i8", shape, quantization)
    z = net.output("i8", shape, quantization)
    net.operator("SELECT_V2", [condition, x, y], [z])


def unary(net, draw, operator, type_, source=None, result=None, options="", **fields):
    """source, result: quantizations, drawn where they are not given."""
    shape = [1, draw.number(1, 6), draw.number(1, 6), draw.number(1, 60)]
    x = net.input(type_, shape, source or draw.quantization(type_))
    y = net.output(type_, shape, result or draw.quantization(type_))
    net.operator(operator, [x], [y], options, **fields)


def softmax(net, draw, type_="i8"):
    beta = draw.one_of([1.0, 1.0, 0.5, 2.0])
    result = Quantization(1 / 256, 0 if type_ == "u8" else -128)
    unary(net, draw, "SOFTMAX", type_, result=result, options="Softmax", beta=beta)


def softmax_i16(net, draw):
    source = Quantization(draw.real(1e-4, 2e-3))
    unary(net, draw, "SOFTMAX", "i16", source, Quantization(1 / 32768), "Softmax", beta=1.0)


def curve_i16(net, draw, operator, scales):
    """LOGISTIC or TANH, whose kernels shift where the scale is a power of two."""
    unary(net, draw, operator, "i16", Quantization(draw.one_of(scales)), Quantization(1 / 32768))


def hard_swish(net, draw, type_="i8"):
    scale = draw.scale(0.01, 0.1)
    source = Quantization(scale, draw.zero_point(type_))
    result_scale = scale * draw.real(0.5, 1.0)
    unary(net, draw, "HARD_SWISH", type_, source, Quantization(result_scale, draw.zero_point(type_)))


def leaky_relu(net, draw, type_="i8"):
    alpha = draw.real(0, 1)
    unary(net, draw, "LEAKY_RELU", type_, options="LeakyRelu", alpha=alpha)


def leaky_relu_i16(net, draw):
    scale = draw.scale(1e-5, 1e-3)
    result = Quantization(scale * draw.one_of([1.0, 0.7, 1.3]))
    alpha = draw.real(0, 1)
    unary(net, draw, "LEAKY_RELU", "i16", Quantization(scale), result, "LeakyRelu", alpha=alpha)


def relu(net, draw):
    type_ = draw.type()
    scale = draw.scale()
    draw.number(0, 2)  # not used, but the numbers below come after it
    source = Quantization(scale, draw.zero_point(type_))
    result_scale = scale * draw.real(0.5, 2)
    unary(net, draw, "RELU", type_, source, Quantization(result_scale, draw.zero_point(type_)))


def relu6(net, draw):
    quantization = draw.quantization("i8")
    unary(net, draw, "RELU6", "i8", quantization, quantization)


def rsqrt(net, draw):
    unary(net, draw, "RSQRT", "i8", Quantization(draw.scale(), -128))


def requantize(net, draw, source_type, result_type):
    """Codes of one byte with or without a sign, half of the time the same numbers."""
    source = draw.quantization(source_type)
    result = draw.quantization(result_type)
    if draw.flag():
        result = Quantization(source.scale, source.zero_point + (128 if result_type == "u8" else -128))
    x = net.input(source_type, [1, 3, 4, 7], source)
    net.operator("QUANTIZE", [x], [net.output(result_type, [1, 3, 4, 7], result)])


def quantize(net, draw):
    """From codes to other codes."""
    shape = [1, 3, 4, 7]
    source_type = draw.type()
    result_type = draw.type()
    scale = draw.scale() if source_type == "i8" else draw.scale(1e-5, 1e-3)
    x = net.input(source_type, shape, Quantization(scale, draw.zero_point(source_type)))
    result_scale = scale * draw.real(0.3, 3)
    if source_type != result_type:
        result_scale *= 256 if result_type == "i8" else 1 / 256
    y = net.output(result_type, shape, Quantization(result_scale, draw.zero_point(result_type)))
    net.operator("QUANTIZE", [x], [y])


def prelu(net, draw, type_="i8"):
    channels = draw.number(1, 20)
    shape = [1, 4, 5, channels]
    x = net.input(type_, shape, draw.quantization(type_))
    limits = np.iinfo(NUMPY_TYPES[type_])
    slopes = draw.numbers(limits.min, limits.max + 1, [1, 1, channels])
    alpha = net.constant(type_, slopes, Quantization(0.01, draw.zero_point(type_)))
    y = net.output(type_, shape, draw.quantization(type_))
    net.operator("PRELU", [x, alpha], [y])


def without_axes(shape, axes, keep):
    if keep:
        return [1 if axis in axes else size for axis, size in enumerate(shape)]
    return [size for axis, size in enumerate(shape) if axis not in axes]


def reduction(net, draw, operator, type_):
    shape = [draw.number(1, 3), draw.number(1, 9), draw.number(1, 9), draw.number(1, 20)]
    axes = [1, 2]
    if draw.flag():
        count = draw.number(1, 4)
        axes = sorted(draw.rng.choice(4, count, replace=False).tolist())
    keep = draw.flag()
    source = draw.quantization(type_)
    result = source
    if operator in ("MEAN", "SUM"):
        draw.quantization(type_)  # not used, but the numbers below come after it
        scale = source.scale * draw.real(0.4, 1.5) * (10 if operator == "SUM" else 1)
        result = Quantization(scale, draw.zero_point(type_))
    x = net.input(type_, shape, source)
    constant = net.constant("i32", axes)
    y = net.output(type_, without_axes(shape, axes, keep), result)
    net.operator(operator, [x, constant], [y], "Reducer", keep_dims=keep)


def arg_max(net, draw):
    shape = [draw.number(1, 3), draw.number(1, 9), draw.number(2, 20)]
    axis = draw.number(0, 3)
    x = net.input("i8", shape, draw.quantization("i8"))
    constant = net.constant("i32", [axis])
    y = net.output("i32", without_axes(shape, [axis], keep=False))
    net.operator("ARG_MAX", [x, constant], [y])


def batch_matmul(net, draw):
    type_ = draw.type()
    batch = draw.number(1, 4)
    rows = draw.number(1, 9)
    inner = draw.number(1, 20)
    columns = draw.number(1, 9)
    adj_x = draw.flag()
    adj_y = draw.flag()
    left = draw.quantization(type_)
    x = net.input(type_, [batch, inner, rows] if adj_x else [batch, rows, inner], left)
    right = draw.quantization(type_)
    y = net.input(type_, [batch, columns, inner] if adj_y else [batch, inner, columns], right)
    scale = left.scale * right.scale * np.sqrt(inner) * (70 if type_ == "i8" else 18000)
    z = net.output(type_, [batch, rows, columns], Quantization(scale, draw.zero_point(type_)))
    net.operator("BATCH_MATMUL", [x, y], [z], "BatchMatMul", adj_x=adj_x, adj_y=adj_y)


def lstm(net, draw, steps=None):
    batch = draw.number(1, 3)
    steps = steps or draw.number(2, 5)
    inputs = draw.number(2, 9)
    units = draw.number(2, 9)
    scale = draw.scale(0.01, 0.05)
    hidden_scale = float(np.float32(1 / 128 * draw.real(0.6, 1)))
    time_major = draw.flag()
    first_sizes = [steps, batch] if time_major else [batch, steps]
    x = net.input("i8", first_sizes + [inputs], Quantization(scale, draw.zero_point("i8")))
    hidden_quantization = Quantization(hidden_scale, draw.number(-20, 20))
    scales = [draw.scale(0.002, 0.02) for _ in range(8)]
    tensors = [x]
    for weight_scale in scales[:4]:
        tensors.append(net.constant("i8", draw.numbers(-127, 128, (units, inputs)), Quantization(weight_scale)))
    for weight_scale in scales[4:]:
        tensors.append(net.constant("i8", draw.numbers(-127, 128, (units, units)), Quantization(weight_scale)))
    tensors += [NO_TENSOR] * 3  # peepholes
    for weight_scale in scales[:4]:
        bias_scale = np.float32(weight_scale) * np.float32(scale)
        tensors.append(net.constant("i32", draw.numbers(-3000, 3000, units), Quantization(bias_scale)))
    tensors += [NO_TENSOR] * 2  # projection
    tensors.append(net.variable("i8", [batch, units], hidden_quantization))
    tensors.append(net.variable("i16", [batch, units], Quantization(2.0 ** -draw.number(9, 14))))
    tensors += [NO_TENSOR] * 4  # layer norms
    y = net.output("i8", first_sizes + [units], hidden_quantization)
    net.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        tensors,
        [y],
        "UnidirectionalSequenceLstm",
        fused_activation_function=TANH,
        time_major=time_major,
        cell_clip=draw.one_of([0.0, 0.0, 2.5]),
    )


def move(net, draw, operator, shape, result_shape, constants=(), options="", **fields):
    """An operator of fixed sizes that only moves codes; constants are its further inputs."""
    quantization = draw.quantization("i8")
    x = net.input("i8", shape, quantization)
    y = net.output("i8", result_shape, quantization)
    further = [net.constant("i32", values) for values in constants]
    net.operator(operator, [x] + further, [y], options, **fields)


def slice_(net, draw):
    move(net, draw, "SLICE", [1, 6, 7, 8], [1, 3, 4, 5], constants=[[0, 2, 1, 3], [1, 3, 4, -1]])


def depth_to_space(net, draw):
    move(net, draw, "DEPTH_TO_SPACE", [1, 3, 4, 12], [1, 6, 8, 3], options="DepthToSpace", block_size=2)


def space_to_depth(net, draw):
    move(net, draw, "SPACE_TO_DEPTH", [1, 6, 8, 3], [1, 3, 4, 12], options="SpaceToDepth", block_size=2)


def space_to_batch(net, draw):
    blocks_and_padding = [[2, 2], [[0, 1], [1, 1]]]
    move(net, draw, "SPACE_TO_BATCH_ND", [1, 5, 8, 3], [4, 3, 5, 3], blocks_and_padding)


def batch_to_space(net, draw):
    blocks_and_crops = [[2, 2], [[0, 1], [1, 1]]]
    move(net, draw, "BATCH_TO_SPACE_ND", [4, 3, 5, 3], [1, 5, 8, 3], blocks_and_crops)


def reshape(net, draw):
    move(net, draw, "RESHAPE", [1, 4, 6], [2, 12], [[2, 12]], "Reshape", new_shape=[2, 12])


def squeeze(net, draw):
    move(net, draw, "SQUEEZE", [1, 4, 1, 6], [4, 6], options="Squeeze", squeeze_dims=[0, 2])


def expand_dims(net, draw):
    move(net, draw, "EXPAND_DIMS", [4, 6], [4, 1, 6], constants=[[1]])


def broadcast_to(net, draw):
    move(net, draw, "BROADCAST_TO", [1, 3, 1, 5], [2, 3, 4, 5], constants=[[2, 3, 4, 5]])


def scaled_concatenation(net, draw):
    """Parts of uint8 with codes of their own."""
    shape = [1, 3, 4, 5]
    scale = draw.scale()
    codes = [Quantization(scale * draw.real(0.4, 2), draw.zero_point("u8")) for _ in range(4)]
    inputs = [net.input("u8", shape, quantization) for quantization in codes[:3]]
    y = net.output("u8", [1, 3, 4, 15], codes[3])
    net.operator("CONCATENATION", inputs, [y], "Concatenation", axis=3)


def concatenation(net, draw):
    quantization = draw.quantization("i8")
    axis = draw.number(1, 4)
    shape = [1, 3, 4, 5]
    inputs = []
    total = 0
    for _ in range(draw.number(2, 5)):
        shape[axis] = draw.number(1, 5)
        total += shape[axis]
        inputs.append(net.input("i8", shape, quantization))
    shape[axis] = total
    y = net.output("i8", shape, quantization)
    net.operator("CONCATENATION", inputs, [y], "Concatenation", axis=axis if draw.flag() else axis - len(shape))


def pad(net, draw, operator):
    quantization = draw.quantization("i8")
    shape = [1, 3, 4, 5]
    amounts = draw.numbers(0, 3, (4, 2))
    amounts[0] = 0
    inputs = [net.input("i8", shape, quantization), net.constant("i32", amounts)]
    if operator == "PADV2":
        inputs.append(net.constant("i8", [draw.number(-100, 100)], quantization))
    y = net.output("i8", shape + amounts.sum(1), quantization)
    if operator == "MIRROR_PAD":
        net.operator(operator, inputs, [y], "MirrorPad", mode=draw.number(0, 2))
    else:
        net.operator(operator, inputs, [y])


def strided_slice(net, draw):
    quantization = draw.quantization("i8")
    shape = [1, 6, 7, 8]
    begin = [0, 0, 0, 0]
    end = list(shape)
    strides = [1, 1, 1, 1]
    result_shape = [1, 0, 0, 0]
    for axis in range(1, 4):
        strides[axis] = draw.one_of([1, 1, 2, 3, -1])
        if strides[axis] > 0:
            begin[axis] = draw.number(0, 3)
            end[axis] = draw.number(begin[axis] + 1, shape[axis] + 1)
            result_shape[axis] = len(range(begin[axis], end[axis], strides[axis]))
        else:
            begin[axis] = shape[axis] - 1
            end[axis] = -shape[axis] - 1
            result_shape[axis] = shape[axis]
    x = net.input("i8", shape, quantization)
    y = net.output("i8", result_shape, quantization)
    constants = [net.constant("i32", values) for values in (begin, end, strides)]
    net.operator("STRIDED_SLICE", [x] + constants, [y], "StridedSlice")


def transpose(net, draw):
    quantization = draw.quantization("i8")
    shape = [2, 3, 4, 5]
    order = draw.rng.permutation(4).tolist()
    x = net.input("i8", shape, quantization)
    y = net.output("i8", [shape[axis] for axis in order], quantization)
    net.operator("TRANSPOSE", [x, net.constant("i32", order)], [y])


def split(net, draw):
    quantization = draw.quantization("i8")
    shape = [1, 4, 6, 8]
    x = net.input("i8", shape, quantization)
    axis = draw.number(1, 4)
    shape[axis] //= 2
    halves = [net.output("i8", shape, quantization) for _ in range(2)]
    net.operator("SPLIT", [net.constant("i32", [axis]), x], halves, "Split", num_splits=2)


def split_v(net, draw):
    quantization = draw.quantization("i8")
    sizes = [1, 3, 2]
    x = net.input("i8", [1, 4, 6, 8], quantization)
    parts = [net.output("i8", [1, 4, size, 8], quantization) for size in sizes]
    inputs = [x, net.constant("i32", sizes), net.constant("i32", [2])]
    net.operator("SPLIT_V", inputs, parts, "SplitV", num_splits=len(sizes))


def pack(net, draw):
    quantization = draw.quantization("i8")
    shape = [3, 4]
    inputs = [net.input("i8", shape, quantization) for _ in range(3)]
    axis = draw.number(0, 3)
    shape.insert(axis, len(inputs))
    y = net.output("i8", shape, quantization)
    net.operator("PACK", inputs, [y], "Pack", values_count=len(inputs), axis=axis)


def unpack(net, draw):
    quantization = draw.quantization("i8")
    shape = [3, 4, 5]
    x = net.input("i8", shape, quantization)
    axis = draw.number(0, 3)
    count = shape.pop(axis)
    outputs = [net.output("i8", shape, quantization) for _ in range(count)]
    net.operator("UNPACK", [x], outputs, "Unpack", num=count, axis=axis)


def gather(net, draw):
    quantization = draw.quantization("i8")
    shape = [5, 4, 6]
    x = net.input("i8", shape, quantization)
    axis = draw.number(0, 3)
    size = shape[axis]
    shape[axis] = 3
    y = net.output("i8", shape, quantization)
    indices = net.constant("i32", draw.numbers(0, size, 3))
    net.operator("GATHER", [x, indices], [y], "Gather", axis=axis)


def division(net, draw, type_):
    """By a constant without zeros; a kernel divides codes less their zero points. The factor between the scales is so
    large that no quotient is shifted by more than 31 bits, which the kernel does not define."""
    left_shape, right_shape, shape = broadcast_shapes(draw)
    if type_ == "i32":
        x = net.input("i32", left_shape)
        numbers = draw.numbers(1, 2000, right_shape) * draw.rng.choice([-1, 1], right_shape)
        net.operator("DIV", [x, net.constant("i32", numbers)], [net.output("i32", shape)], "Div")
        return
    left, right = draw.quantization(type_), draw.quantization(type_)
    limits = np.iinfo(NUMPY_TYPES[type_])
    codes = draw.numbers(limits.min, limits.max + 1, right_shape)
    codes = np.where(codes == right.zero_point, right.zero_point + (1 if right.zero_point < limits.max else -1), codes)
    y = net.constant(type_, codes, right)
    result = Quantization(left.scale / right.scale / 256 * draw.real(0.6, 1), draw.zero_point(type_))
    x = net.input(type_, left_shape, left)
    z = net.output(type_, shape, result)
    net.operator("DIV", [x, y], [z], "Div", fused_activation_function=draw.activation())


def log_softmax(net, draw):
    source = Quantization(draw.scale(0.01, 0.5), draw.zero_point("i8"))
    unary(net, draw, "LOG_SOFTMAX", "i8", source, Quantization(1 / 16, 127))


def cast(net, draw):
    shape = [2, draw.number(1, 9), draw.number(1, 9)]
    x = net.input(draw.one_of(["i8", "i16", "i32", "bool"]), shape)
    net.operator("CAST", [x], [net.output(draw.one_of(["i8", "i16", "i32"]), shape)])


def scatter(net, draw):
    """Slices that several indices name add up."""
    rows, columns, depth = draw.number(2, 6), draw.number(2, 6), draw.number(1, 9)
    count = draw.number(2, 12)
    named = draw.number(1, 3)
    indices = np.stack([draw.numbers(0, size, count) for size in (rows, columns)[:named]], 1)
    shape = [rows, columns, depth]
    updates = net.input("i8", [count] + shape[named:])
    inputs = [net.constant("i32", indices), updates, net.constant("i32", shape)]
    net.operator("SCATTER_ND", inputs, [net.output("i8", shape)])


def truth(net, draw, operator):
    shape = [draw.number(1, 4), draw.number(1, 4), draw.number(1, 3)]
    axes = sorted(draw.rng.choice(3, draw.number(1, 3), replace=False).tolist())
    keep = draw.flag()
    x = net.input("bool", shape)
    y = net.output("bool", without_axes(shape, axes, keep))
    net.operator(operator, [x, net.constant("i32", axes)], [y], "Reducer", keep_dims=keep)


class Case(NamedTuple):
    """tested: the seeds of the networks in tests/data/tflite."""

    tested: tuple
    make: object


CASES = {
    "conv8": Case((3, 4), partial(convolution, type_="i8")),
    "conv16": Case((3, 4), partial(convolution, type_="i16")),
    "convgroup": Case((3, 4), partial(convolution, type_="i8", groups=2)),
    "dw8": Case((3, 4), partial(convolution, type_="i8", depthwise=True)),
    "dw16": Case((3, 4), partial(convolution, type_="i16", depthwise=True)),
    "padconv": Case((), padded_convolution),
    "fc": Case((3, 4), fully_connected),
    "tconv": Case((3, 4), transposed_convolution),
    "add8": Case((3, 4), partial(binary, operator="ADD", type_="i8", options="Add")),
    "add16": Case((3, 4), partial(binary, operator="ADD", type_="i16", options="Add")),
    "sub8": Case((3, 4), partial(binary, operator="SUB", type_="i8", options="Sub")),
    "sub16": Case((3, 4), partial(binary, operator="SUB", type_="i16", options="Sub")),
    "mul8": Case((3, 4), partial(binary, operator="MUL", type_="i8", options="Mul")),
    "mul16": Case((3, 4), partial(binary, operator="MUL", type_="i16", options="Mul")),
    "maxi": Case((3, 4), partial(binary, operator="MAXIMUM", type_="i8", same=True)),
    "maxi16": Case((), partial(binary, operator="MAXIMUM", type_="i16", same=True)),
    "mini": Case((3, 4), partial(binary, operator="MINIMUM", type_="i8", same=True)),
    "sqd8": Case((3, 4), partial(binary, operator="SQUARED_DIFFERENCE", type_="i8")),
    "sqd16": Case((3, 4), partial(binary, operator="SQUARED_DIFFERENCE", type_="i16")),
    "arith32": Case((), arithmetic_i32),
    "logic": Case((), logical),
    "cmp": Case((3, 4), comparison),
    "select": Case((3,), select),
    "avg8": Case((3, 4), partial(pool, operator="AVERAGE_POOL_2D", type_="i8")),
    "avg16": Case((3, 4), partial(pool, operator="AVERAGE_POOL_2D", type_="i16")),
    "max8": Case((3, 4), partial(pool, operator="MAX_POOL_2D", type_="i8")),
    "max16": Case((3, 4), partial(pool, operator="MAX_POOL_2D", type_="i16")),
    "softmax8": Case((3, 4), softmax),
    "softmax16": Case((3, 4), softmax_i16),
    "logistic8": Case((3, 4), partial(unary, operator="LOGISTIC", type_="i8", result=Quantization(1 / 256, -128))),
    "logistic16": Case((3, 4), partial(curve_i16, operator="LOGISTIC", scales=[2**-12, 2**-13, 3e-4, 1e-3, 2e-4])),
    "tanh8": Case((3, 4), partial(unary, operator="TANH", type_="i8", result=Quantization(1 / 128))),
    "tanh16": Case((3, 4), partial(curve_i16, operator="TANH", scales=[2**-12, 2**-11, 2**-13, 3e-4, 1e-3])),
    "hswish": Case((3, 4), hard_swish),
    "leaky8": Case((3, 4), leaky_relu),
    "leaky16": Case((3, 4), leaky_relu_i16),
    "relu": Case((3,), relu),
    "relu6": Case((3, 4), relu6),
    "elu": Case((3, 4), partial(unary, operator="ELU", type_="i8")),
    "abs8": Case((3, 4), partial(unary, operator="ABS", type_="i8")),
    "abs16": Case((), partial(unary, operator="ABS", type_="i16")),
    "rsqrt": Case((3, 4), rsqrt),
    "quant": Case((3,), quantize),
    "prelu": Case((3,), prelu),
    "mean8": Case((3, 4), partial(reduction, operator="MEAN", type_="i8")),
    "mean16": Case((3, 4), partial(reduction, operator="MEAN", type_="i16")),
    "sum8": Case((3, 4), partial(reduction, operator="SUM", type_="i8")),
    "sum16": Case((), partial(reduction, operator="SUM", type_="i16")),
    "rmax": Case((3, 4), partial(reduction, operator="REDUCE_MAX", type_="i8")),
    "rmin": Case((3, 4), partial(reduction, operator="REDUCE_MIN", type_="i8")),
    "argmax": Case((3, 4), arg_max),
    "bmm": Case((3, 4), batch_matmul),
    "lstm": Case((1, 4), lstm),
    "concat": Case((3, 4), concatenation),
    "pad": Case((3, 4), partial(pad, operator="PAD")),
    "padv2": Case((), partial(pad, operator="PADV2")),
    "mirror": Case((3, 4), partial(pad, operator="MIRROR_PAD")),
    "sslice": Case((3, 4), strided_slice),
    "slic": Case((3,), slice_),
    "transpose": Case((3, 4), transpose),
    "split": Case((3,), split),
    "splitv": Case((3,), split_v),
    "pack": Case((3, 4), pack),
    "unpack": Case((3,), unpack),
    "gather": Case((3, 4), gather),
    "d2s": Case((3,), depth_to_space),
    "s2d": Case((3,), space_to_depth),
    "s2b": Case((), space_to_batch),
    "b2s": Case((3,), batch_to_space),
    "bilinear": Case((3, 4), partial(resize, operator="RESIZE_BILINEAR", options="ResizeBilinear")),
    "nearest": Case((3, 4), partial(resize, operator="RESIZE_NEAREST_NEIGHBOR", options="ResizeNearestNeighbor")),
    "reshape": Case((3,), reshape),
    "squeeze": Case((), squeeze),
    "expand": Case((), expand_dims),
    "bcast": Case((3,), broadcast_to),
    "u8conv": Case((3, 4, 5), partial(convolution, type_="u8")),
    "u8dw": Case((3, 4, 5), partial(convolution, type_="u8", depthwise=True)),
    "u8fc": Case((3, 4), partial(fully_connected, type_="u8")),
    "u8avg": Case((3, 4, 5), partial(pool, operator="AVERAGE_POOL_2D", type_="u8")),
    "u8max": Case((3,), partial(pool, operator="MAX_POOL_2D", type_="u8")),
    "u8add": Case((3, 4), partial(binary, operator="ADD", type_="u8", options="Add")),
    "u8mul": Case((3, 4), partial(binary, operator="MUL", type_="u8", options="Mul")),
    "u8softmax": Case((3, 4), partial(softmax, type_="u8")),
    "u8logistic": Case((3, 4), partial(unary, operator="LOGISTIC", type_="u8", result=Quantization(1 / 256))),
    "u8tanh": Case((3, 4), partial(unary, operator="TANH", type_="u8", result=Quantization(1 / 128, 128))),
    "u8hswish": Case((3, 4), partial(hard_swish, type_="u8")),
    "u8leaky": Case((3, 4), partial(leaky_relu, type_="u8")),
    "u8mean": Case((3, 4), partial(reduction, operator="MEAN", type_="u8")),
    "u8concat": Case((3, 4), scaled_concatenation),
    "u8sub": Case((3, 4), partial(binary, operator="SUB", type_="u8", options="Sub")),
    "u8min": Case((3,), partial(binary, operator="MINIMUM", type_="u8", same=True)),
    "u8maxi": Case((3,), partial(binary, operator="MAXIMUM", type_="u8", same=True)),
    "u8prelu": Case((3, 4), partial(prelu, type_="u8")),
    "u8cmp": Case((3, 4, 5), partial(comparison, type_="u8")),
    "u8relu": Case((3,), partial(unary, operator="RELU", type_="u8")),
    "u8relu6": Case((3,), partial(unary, operator="RELU6", type_="u8")),
    "u8relun1": Case((3,), partial(unary, operator="RELU_N1_TO_1", type_="u8")),
    "u8sum": Case((3, 4), partial(reduction, operator="SUM", type_="u8")),
    "u8rmax": Case((3,), partial(reduction, operator="REDUCE_MAX", type_="u8")),
    "u8rmin": Case((3,), partial(reduction, operator="REDUCE_MIN", type_="u8")),
    "u8nearest": Case((3,), partial(resize, operator="RESIZE_NEAREST_NEIGHBOR", options="ResizeNearestNeighbor", type_="u8")),
    "u8i8quant": Case((3, 4, 5), partial(requantize, source_type="u8", result_type="i8")),
    "i8u8quant": Case((3, 4, 5), partial(requantize, source_type="i8", result_type="u8")),
}


# Operators that run on the CPU here: those of tests/data/tflite_cpu.
CPU_CASES = {
    "div8": Case((3, 4, 5), partial(division, type_="i8")),
    "u8div": Case((3, 4), partial(division, type_="u8")),
    "div32": Case((3,), partial(division, type_="i32")),
    "logsm": Case((3, 4, 5), log_softmax),
    "cast": Case((3, 4, 5, 6, 7), cast),
    "scatter": Case((3, 4), scatter),
    "all": Case((3, 4), partial(truth, operator="REDUCE_ALL")),
    "any": Case((3, 4), partial(truth, operator="REDUCE_ANY")),
}

# Recurrences over many time steps, which become loops (--loops).
LOOP_CASES = {
    "lstm600": Case((1, 4), partial(lstm, steps=600)),
    "lstm521": Case((2,), partial(lstm, steps=521)),
}
ALL_CASES = CASES | CPU_CASES | LOOP_CASES


def random_input(rng, tensor):
    if tensor.type == "bool":
        return rng.integers(0, 2, tensor.shape).astype(np.bool_)
    limits = np.iinfo(NUMPY_TYPES[tensor.type])
    return rng.integers(limits.min, limits.max + 1, tensor.shape).astype(NUMPY_TYPES[tensor.type])


def random_inputs(network):
    rng = np.random.default_rng(INPUT_SEED)
    return {f"in{i}": random_input(rng, network.tensors[index]) for i, index in enumerate(network.inputs)}


def make(case, seed):
    network = Network()
    ALL_CASES[case].make(network, Draw(case, seed))
    return network


def case_and_seed(name):
    case, _, seed = name.rpartition("_")
    if case not in ALL_CASES or not seed.isdecimal():
        raise argparse.ArgumentTypeError(f"{name} is not one of the cases, _ and a number")
    return case, int(seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out_dir", type=Path)
    parser.add_argument("networks", nargs="*", type=case_and_seed, metavar="CASE_SEED")
    parser.add_argument("--inputs", action="store_true", help="also write CASE_SEED.npz with random inputs")
    parser.add_argument("--cpu", action="store_true", help="operators that an Ethos-U does not compute")
    parser.add_argument("--loops", action="store_true", help="recurrences over many steps")
    arguments = parser.parse_intermixed_args()
    cases = CPU_CASES if arguments.cpu else LOOP_CASES if arguments.loops else CASES
    tested = [(case, seed) for case in cases for seed in cases[case].tested]
    arguments.out_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(folder)
        for case, seed in arguments.networks or tested:
            network = make(case, seed)
            writer.write(network, arguments.out_dir / f"{case}_{seed}.tflite")
            if arguments.inputs:
                np.savez_compressed(arguments.out_dir / f"{case}_{seed}.npz", **random_inputs(network))


if __name__ == "__main__":
    main()
