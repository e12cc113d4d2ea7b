#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the TensorFlow Lite networks in tests/data/tflite_mixed, of which an NPU computes some parts only.

usage: tflite_mixed.py OUT_DIR [--inputs]

Writes a .tflite for each network of NETWORKS. --inputs also writes an .npz with random inputs in0, ... beside each. The
results out0, ... in tests/data/tflite_mixed are not made here: they are what TensorFlow Lite for Microcontrollers gives
for these inputs and the network as it is here.

Needs NumPy, FlatBuffers and its compiler (Debian: python3-numpy, python3-flatbuffers, flatbuffers-compiler).
"""
import argparse
import tempfile
import zlib
from pathlib import Path

import numpy as np

from tflite_file import NUMPY_TYPES, Network, Quantization, Writer

SAME_PADDING = 0
VALID_PADDING = 1
RELU = 1


class Maker:
    """A network in the making, with the random numbers of its own."""

    def __init__(self, name):
        self.net = Network()
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def subgraph(self):
        """A maker of the next subgraph, which draws from the same random numbers. Returns its number, too."""
        inner = Maker("")
        inner.rng = self.rng
        self.net.subgraphs.append(inner.net)
        return inner, len(self.net.subgraphs)

    def codes(self):
        """Some quantization of int8 activations."""
        return Quantization(float(np.float32(self.rng.uniform(0.02, 0.06))), int(self.rng.integers(-20, 20)))

    def tensor(self, shape):
        return self.net.tensor("i8", shape, self.codes())

    def constant(self, type_, low, high, shape, quantization=None):
        return self.net.constant(type_, self.rng.integers(low, high, shape), quantization)

    def convolution(self, x, filters, result=None):
        """3x3, of a map [1, h, w, c]."""
        _, height, width, channels = self.net.tensors[x].shape
        scale = self.net.tensors[x].quantization.scale
        scales = self.rng.uniform(0.004, 0.008, filters).astype(np.float32)
        weights = self.constant("i8", -127, 128, (filters, 3, 3, channels), Quantization(scales))
        biases = self.constant("i32", -500, 500, filters, Quantization(scales * np.float32(scale)))
        y = self.tensor([1, height, width, filters]) if result is None else result
        fields = {"padding": SAME_PADDING, "stride_w": 1, "stride_h": 1, "fused_activation_function": RELU}
        self.net.operator("CONV_2D", [x, weights, biases], [y], "Conv2D", **fields)
        return y

    def connected(self, x, count, result=None):
        """Fully, of [1, n]."""
        scale = self.net.tensors[x].quantization.scale
        weights = self.constant("i8", -127, 128, (count, self.net.tensors[x].shape[1]), Quantization(0.01))
        biases = self.constant("i32", -500, 500, count, Quantization(0.01 * scale))
        y = self.tensor([1, count]) if result is None else result
        self.net.operator("FULLY_CONNECTED", [x, weights, biases], [y], "FullyConnected")
        return y

    def add(self, a, b, result=None):
        y = self.tensor(self.net.tensors[a].shape) if result is None else result
        self.net.operator("ADD", [a, b], [y], "Add")
        return y

    def dequantized(self, x):
        y = self.net.tensor("f32", self.net.tensors[x].shape)
        self.net.operator("DEQUANTIZE", [x], [y])
        return y

    def quantized(self, x, codes=None):
        y = self.net.tensor("i8", self.net.tensors[x].shape, codes or self.codes())
        self.net.operator("QUANTIZE", [x], [y])
        return y


def svdf(make, state_type="i16"):
    """A streaming layer with a state between fully connected ones."""
    net = make.net
    x = net.input("i8", [1, 16], make.codes())
    h = make.connected(x, 12)
    filters, memory = 8, 6
    wide = state_type == "i16"
    state_codes = Quantization(0.002) if wide else Quantization(0.1, -20)
    time_codes = Quantization(2**-13) if wide else Quantization(2**-7)
    feature = make.constant("i8", -127, 128, (filters, 12), Quantization(0.008))
    limit = 3000 if wide else 100
    time = make.constant(state_type, -limit, limit, (filters, memory), time_codes)
    biases = make.constant("i32", -200, 200, filters, Quantization(state_codes.scale * time_codes.scale))
    state = net.variable(state_type, [1, memory * filters], state_codes)
    y = make.tensor([1, filters])
    net.operator("SVDF", [h, feature, time, biases, state], [y], "Svdf", rank=1, fused_activation_function=RELU)
    z = make.connected(y, 5)
    net.outputs.append(z)


def svdf_bytes(make):
    """The same with a state of 8 bits that has a zero point."""
    svdf(make, "i8")


def float_island(make):
    """Floats in between, and a tensor that goes from one NPU part to the next beside them."""
    net = make.net
    x = net.input("i8", [1, 6, 6, 4], make.codes())
    a = make.convolution(x, 8)
    floats = make.dequantized(a)
    divisor = net.constant("f32", make.rng.uniform(0.5, 2, [1, 1, 1, 8]))
    quotient = net.tensor("f32", net.tensors[a].shape)
    net.operator("DIV", [floats, divisor], [quotient], "Div")
    b = make.quantized(quotient)
    c = make.convolution(b, 8)
    net.outputs.append(make.add(a, c))


def float_layers(make):
    """Float layers behind an NPU part."""
    net = make.net

    def reals(*shape):
        return net.constant("f32", make.rng.uniform(-0.5, 0.5, shape))

    x = net.input("i8", [1, 6, 6, 4], make.codes())
    a = make.dequantized(make.convolution(x, 8))
    b = net.tensor("f32", [1, 3, 3, 6])
    fields = {"padding": SAME_PADDING, "stride_w": 2, "stride_h": 2, "fused_activation_function": RELU}
    net.operator("CONV_2D", [a, reals(6, 3, 3, 8), reals(6)], [b], "Conv2D", **fields)
    c = net.tensor("f32", [1, 2, 3, 12])
    fields = {"padding": VALID_PADDING, "stride_w": 1, "stride_h": 1, "depth_multiplier": 2}
    net.operator("DEPTHWISE_CONV_2D", [b, reals(1, 2, 1, 12), reals(12)], [c], "DepthwiseConv2D", **fields)
    d = net.tensor("f32", [1, 72])
    net.operator("RESHAPE", [c], [d], "Reshape", new_shape=[1, 72])
    e = net.tensor("f32", [1, 7])
    net.operator("FULLY_CONNECTED", [d, reals(7, 72), reals(7)], [e], "FullyConnected", fused_activation_function=RELU)
    net.operator("SOFTMAX", [e], [net.output("f32", [1, 7])], "Softmax", beta=0.5)


def float_ends(make):
    """Float inputs and outputs, and a float softmax at the end."""
    net = make.net
    x = net.input("f32", [1, 20])
    codes = make.quantized(x, Quantization(1 / 64))
    h = make.connected(make.connected(codes, 12), 10)
    y = net.output("f32", [1, 10])
    net.operator("SOFTMAX", [make.dequantized(h)], [y], "Softmax", beta=1.0)
    net.signature = "serving_default"
    net.metadata = {"min_runtime_version": b"1.5.0\0\0\0\0\0\0\0\0\0\0\0", "notes": bytes(range(40))}


def byte_ends(make):
    """Inputs and outputs of uint8."""
    net = make.net
    x = net.input("u8", [1, 20], Quantization(0.03, 120))
    codes = make.tensor([1, 20])
    net.operator("QUANTIZE", [x], [codes])
    h = make.connected(make.connected(codes, 12), 10)
    codes = net.tensors[h].quantization
    y = net.output("u8", [1, 10], codes._replace(zero_point=codes.zero_point + 128))
    net.operator("QUANTIZE", [h], [y])


def two_tensors(make):
    """Two tensors from one NPU part to the next around an operator of the CPU."""
    net = make.net
    x = net.input("i8", [1, 24], make.codes())
    a = make.connected(x, 20)
    b = make.connected(a, 20)
    c = make.connected(a, 20)
    floats = make.dequantized(make.connected(b, 20))
    quotient = net.tensor("f32", [1, 20])
    net.operator("DIV", [floats, net.constant("f32", make.rng.uniform(0.5, 2, [1, 20]))], [quotient], "Div")
    d = make.quantized(quotient)
    e = make.add(make.connected(d, 20), c)
    net.outputs += [make.add(e, b), make.add(e, a)]


def input_again(make):
    """An input of the first NPU part that the second one reads, too."""
    net = make.net
    x = net.input("i8", [1, 8, 8, 8], make.codes())
    h = x
    for _ in range(3):
        h = make.convolution(h, 8)
    floats = make.dequantized(h)
    quotient = net.tensor("f32", net.tensors[h].shape)
    net.operator("DIV", [floats, net.constant("f32", make.rng.uniform(0.5, 2, [1, 1, 1, 8]))], [quotient], "Div")
    net.outputs.append(make.add(make.convolution(make.quantized(quotient), 8), x))


def branches(make):
    """An IF with subgraphs of its own."""
    net = make.net
    condition = net.input("bool", [1])
    x = net.input("i8", [1, 16], make.codes())
    h = make.connected(x, 16)
    codes = net.tensors[h].quantization
    for operator, options in (("ADD", "Add"), ("MUL", "Mul")):
        side = Network()
        a = side.input("i8", [1, 16], codes)
        number = side.constant("i8", make.rng.integers(-100, 100, [1, 16]), Quantization(0.03, 3))
        side.operator(operator, [a, number], [side.output("i8", [1, 16], codes)], options)
        net.subgraphs.append(side)
    y = net.tensor("i8", [1, 16], codes)
    net.operator("IF", [condition, h], [y], "If", then_subgraph_index=1, else_subgraph_index=2)
    net.outputs.append(make.connected(y, 6))


def divided(make, x, codes):
    """A division in float."""
    net = make.net
    quotient = net.tensor("f32", net.tensors[x].shape)
    net.operator("DIV", [make.dequantized(x), net.constant("f32", make.rng.uniform(0.5, 2, [1, 1]))], [quotient], "Div")
    return make.quantized(quotient, codes)


def sides(make):
    """An IF with layers on both sides, one of them around a float division; it stands between layers."""
    net = make.net
    condition = net.input("bool", [1])
    x = net.input("i8", [1, 16], make.codes())
    h = make.connected(x, 16)
    codes = net.tensors[h].quantization
    numbers = []
    for with_island in (False, True):
        side, number = make.subgraph()
        a = side.net.input("i8", [1, 16], codes)
        b = side.connected(a, 16)
        if with_island:
            b = divided(side, b, side.codes())
        side.net.outputs.append(side.add(side.connected(b, 16), a, side.net.tensor("i8", [1, 16], codes)))
        numbers.append(number)
    y = net.tensor("i8", [1, 16], codes)
    net.operator("IF", [condition, h], [y], "If", then_subgraph_index=numbers[0], else_subgraph_index=numbers[1])
    net.outputs.append(make.add(make.connected(y, 16), h))


def turns(make):
    """A WHILE of a number of turns that is an input, with a layer and a float division in each."""
    net = make.net
    count = net.input("i32", [1])
    x = net.input("i8", [1, 16], make.codes())
    h = make.connected(x, 16)
    codes = net.tensors[h].quantization

    asks, asks_number = make.subgraph()
    left = asks.net.input("i32", [1])
    asks.net.input("i8", [1, 16], codes)
    asks.net.operator("GREATER", [left, asks.constant("i32", 0, 1, [1])], [asks.net.output("bool", [1])])

    body, body_number = make.subgraph()
    left = body.net.input("i32", [1])
    state = body.net.input("i8", [1, 16], codes)
    one = body.constant("i32", 1, 2, [1])
    body.net.operator("SUB", [left, one], [body.net.output("i32", [1])], "Sub")
    next_state = divided(body, body.connected(state, 16), body.codes())
    body.net.outputs.append(body.add(next_state, state, body.net.tensor("i8", [1, 16], codes)))

    rest, y = net.tensor("i32", [1]), net.tensor("i8", [1, 16], codes)
    net.operator("WHILE", [count, h], [rest, y], "While", cond_subgraph_index=asks_number, body_subgraph_index=body_number)
    net.outputs += [make.connected(y, 6), rest]


def handle(maker):
    tensor = maker.net.tensor("resource", [1])
    maker.net.operator("VAR_HANDLE", [], [tensor], "VarHandle", container="", shared_name="state")
    return tensor


def remembered(make):
    """A variable that CALL_ONCE fills: each inference mixes it with its input and keeps the result. An IF inside of
    a side of an IF, which is called from two places, mixes once more."""
    net = make.net
    codes = make.codes()
    condition = net.input("bool", [1])
    x = net.input("i8", [1, 16], codes)

    first, first_number = make.subgraph()
    first.net.operator("ASSIGN_VARIABLE", [handle(first), first.constant("i8", -100, 100, [1, 16], codes)], [])

    mix, mix_number = make.subgraph()
    a, b = mix.net.input("i8", [1, 16], codes), mix.net.input("i8", [1, 16], codes)
    mix.net.outputs.append(mix.add(mix.connected(a, 16), b, mix.net.tensor("i8", [1, 16], codes)))

    plain, plain_number = make.subgraph()
    a, b = plain.net.input("i8", [1, 16], codes), plain.net.input("i8", [1, 16], codes)
    plain.net.outputs.append(plain.add(a, b, plain.net.tensor("i8", [1, 16], codes)))

    outer, outer_number = make.subgraph()
    a, b = outer.net.input("i8", [1, 16], codes), outer.net.input("i8", [1, 16], codes)
    is_more = outer.net.tensor("bool", [1, 1])
    start, size = outer.net.constant("i32", [0, 0]), outer.net.constant("i32", [1, 1])
    pick = [outer.net.tensor("i8", [1, 1], codes) for _ in range(2)]
    outer.net.operator("SLICE", [a, start, size], [pick[0]])
    outer.net.operator("SLICE", [b, start, size], [pick[1]])
    outer.net.operator("GREATER", pick, [is_more])
    c = outer.net.tensor("i8", [1, 16], codes)
    outer.net.operator("IF", [is_more, a, b], [c], "If", then_subgraph_index=mix_number, else_subgraph_index=plain_number)
    outer.net.outputs.append(outer.connected(c, 16, outer.net.tensor("i8", [1, 16], codes)))

    net.operator("CALL_ONCE", [], [], "CallOnce", init_subgraph_index=first_number)
    state = handle(make)
    before = net.tensor("i8", [1, 16], codes)
    net.operator("READ_VARIABLE", [state], [before])
    y = net.tensor("i8", [1, 16], codes)
    net.operator("IF", [condition, x, before], [y], "If", then_subgraph_index=outer_number, else_subgraph_index=mix_number)
    after = make.add(make.connected(y, 16), before, net.tensor("i8", [1, 16], codes))
    net.operator("ASSIGN_VARIABLE", [state, after], [])
    net.outputs.append(make.connected(after, 6))


def custom(make):
    """An operator that nobody here knows."""
    net = make.net
    h = make.connected(net.input("i8", [1, 16], make.codes()), 16)
    y = make.tensor([1, 16])
    net.operator("acme.mystery", [h], [y], custom_options=b"options of acme")
    net.outputs.append(make.connected(y, 6))


def nothing(make):
    """Nothing for an NPU."""
    net = make.net
    x = net.input("f32", [2, 9])
    quotient = net.tensor("f32", [2, 9])
    net.operator("DIV", [x, net.constant("f32", make.rng.uniform(0.5, 2, [1, 9]))], [quotient], "Div")
    shaped = net.tensor("f32", [3, 6])
    net.operator("RESHAPE", [quotient], [shaped], "Reshape", new_shape=[3, 6])
    net.operator("LOG_SOFTMAX", [shaped], [net.output("f32", [3, 6])])
    net.signature = "serving_default"
    net.metadata = {"notes": b"kept"}


NETWORKS = (svdf, svdf_bytes, float_island, float_layers, float_ends, byte_ends, two_tensors, input_again, branches, sides, turns,
            remembered, custom, nothing)
SAMPLES = {svdf: 3, svdf_bytes: 3, sides: 4, turns: 4, remembered: 6}  # inferences per sample, if more than one


def random_input(rng, tensor):
    if tensor.type == "f32":
        return rng.uniform(-2, 2, tensor.shape).astype(np.float32)
    if tensor.type == "bool":
        return rng.integers(0, 2, tensor.shape).astype(np.bool_)
    if tensor.type == "i32":
        return rng.integers(0, 6, tensor.shape).astype(np.int32)  # number of iterations
    limits = np.iinfo(NUMPY_TYPES[tensor.type])
    return rng.integers(limits.min, limits.max + 1, tensor.shape).astype(NUMPY_TYPES[tensor.type])


def samples(rng, tensor, count):
    """Of several inferences one after the other."""
    return np.stack([random_input(rng, tensor) for _ in range(count)]) if count > 1 else random_input(rng, tensor)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out_dir", type=Path)
    parser.add_argument("--inputs", action="store_true", help="also write .npz files with random inputs")
    arguments = parser.parse_args()
    arguments.out_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(folder)
        for fill in NETWORKS:
            make = Maker(fill.__name__)
            fill(make)
            writer.write(make.net, arguments.out_dir / f"{fill.__name__}.tflite")
            if arguments.inputs:
                rng = np.random.default_rng(7)
                count = SAMPLES.get(fill, 1)
                arrays = {f"in{i}": samples(rng, make.net.tensors[t], count) for i, t in enumerate(make.net.inputs)}
                np.savez_compressed(arguments.out_dir / f"{fill.__name__}.npz", **arrays)


if __name__ == "__main__":
    main()
