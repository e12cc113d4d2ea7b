#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes networks of N nodes in a few regular forms, to measure how compile time and memory grow with N.

usage: growth.py KIND N OUT_PREFIX        OUT_PREFIX.pt2 and OUT_PREFIX.npz (calib0)

KIND: tanh      a chain of tanh and sigmoid in turn
      relu      a chain of relu
      add       y[i] = y[i-1] + y[i-2]
      conv      a chain of 3x3 convolutions that share one weight
      weights   a chain of 1x1 convolutions, each with a weight of its own
      inputs    N inputs, a sigmoid of each, and all concatenated
      fan       N sigmoids of one input, all of them outputs
      tree      the same N sigmoids, added in pairs down to one output
      concat    the same N sigmoids, concatenated by one node
      repeat    the input N times, concatenated by one node
      chain     y = cat([y, sigmoid(x)]) N times
      slices    one input of N columns, each sliced off, and all concatenated again
      gru       a GRU over N steps of 40 numbers with 64 hidden ones, and a linear layer to 10 behind the last step

Needs nothing but Python: the JSON of the archive (PT2 of torch 2.9) is written directly.
"""
import io
import json
import struct
import sys
import zipfile


def tensor(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, {"as_int": step})
        step *= size
    return {"dtype": 7, "sizes": [{"as_int": size} for size in shape], "requires_grad": False,
            "device": {"type": "cpu", "index": None}, "strides": strides, "storage_offset": {"as_int": 0}, "layout": 7}


class Network:
    def __init__(self, shape):
        self.nodes, self.inputs, self.outputs, self.weights = [], [], [], {}
        self.tensors, self.shapes = {}, {}
        self.input("x", shape)

    def input(self, name, shape):
        self.inputs.append(name)
        self.tensors[name] = tensor(shape)
        self.shapes[name] = shape
        return name

    def add(self, op, arguments, shape):
        name = f"v{len(self.nodes)}"
        self.nodes.append({
            "target": "torch.ops.aten." + op,
            "inputs": [{"name": key, "arg": value, "kind": 1} for key, value in arguments.items()],
            "outputs": [{"as_tensor": {"name": name}}], "is_hop_single_tensor_return": None, "name": name,
            "metadata": {"nn_module_stack": "L__self__,,M", "stack_trace": ""}})
        self.tensors[name] = tensor(shape)
        self.shapes[name] = shape
        return name

    def unary(self, op, x):
        return self.add(op + ".default", {"self": one(x)}, self.shapes[x])

    def sum(self, a, b):
        return self.add("add.Tensor", {"self": one(a), "other": one(b)}, self.shapes[a])

    def cat(self, names):
        shape = list(self.shapes[names[0]])
        shape[-1] = sum(self.shapes[name][-1] for name in names)
        return self.add("cat.default", {"tensors": {"as_tensors": [{"name": name} for name in names]},
                                        "dim": {"as_int": len(shape) - 1}}, shape)

    def save(self, path):
        state = [{"as_tensor": {"name": name}} for name in self.weights]
        inputs = state + [one(name) for name in self.inputs]
        outputs = [one(name) for name in self.outputs]
        specs = [{"parameter": {"arg": {"name": name}, "parameter_name": name}} for name in self.weights]
        document = {
            "graph_module": {
                "graph": {"inputs": inputs, "outputs": outputs, "nodes": self.nodes, "tensor_values": self.tensors,
                          "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": False,
                          "custom_obj_values": {}, "sym_float_values": {}},
                "signature": {"input_specs": specs + [{"user_input": {"arg": one(name)}} for name in self.inputs],
                              "output_specs": [{"user_output": {"arg": output}} for output in outputs]},
                "module_call_graph": []},
            "opset_version": {"aten": 10}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 14},
            "verifiers": ["ATEN"], "torch_version": "2.9.0"}
        config = {"config": {name: {"path_name": name, "is_param": True, "use_pickle": False,
                                    "tensor_meta": self.tensors[name]} for name in self.weights}}
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in {"archive_format": "pt2", "archive_version": "0", "byteorder": "little",
                               "models/model.json": json.dumps(document),
                               "data/weights/model_weights_config.json": json.dumps(config),
                               "data/constants/model_constants_config.json": '{"config": {}}'}.items():
                archive.writestr("growth/" + name, data)
            for name, values in self.weights.items():
                archive.writestr("growth/data/weights/" + name, struct.pack(f"<{len(values)}f", *values))


def one(name):
    return {"as_tensor": {"name": name}}


def ints(*values):
    return {"as_ints": list(values)}


def chain(kind, n):
    if kind in ("conv", "weights"):
        net = Network([1, 8, 4, 4])
        size = 3 if kind == "conv" else 1
        last = "x"
        for i in range(n):
            name = "w" if kind == "conv" else f"w{i}"
            if name not in net.weights:
                net.tensors[name] = tensor([8, 8, size, size])
                net.weights[name] = [((k * 7919 + i * 31) % 101 - 50) / (600 if size == 3 else 200)
                                     for k in range(8 * 8 * size * size)]
            last = net.add("conv2d.default", {"input": one(last), "weight": one(name), "bias": {"as_none": True},
                                              "stride": ints(1, 1), "padding": ints(size // 2, size // 2)}, [1, 8, 4, 4])
        net.outputs = [last]
        return net
    net = Network([1, 8])
    values = ["x", "x"]
    for i in range(n):
        if kind == "add":
            values.append(net.sum(values[-1], values[-2]))
        else:
            values.append(net.unary("relu" if kind == "relu" else ("tanh", "sigmoid")[i % 2], values[-1]))
    net.outputs = values[-1:]
    return net


def branches(kind, n):
    net = Network([1, 8])
    if kind == "repeat":
        net.outputs = [net.cat(["x"] * n)]
        return net
    if kind == "chain":
        net = Network([1, 2])
        last = "x"
        for _ in range(n // 2):
            last = net.cat([last, net.unary("sigmoid", "x")])
        net.outputs = [last]
        return net
    if kind == "inputs":
        open_ends = [net.unary("sigmoid", "x" if i == 0 else net.input(f"x{i}", [1, 8])) for i in range(n)]
    else:
        open_ends = [net.unary("sigmoid", "x") for _ in range(n)]
    if kind in ("concat", "inputs"):
        open_ends = [net.cat(open_ends)]
    while kind == "tree" and len(open_ends) > 1:
        pairs = [net.sum(a, b) for a, b in zip(open_ends[::2], open_ends[1::2])]
        open_ends = pairs + open_ends[len(pairs) * 2:]
    net.outputs = open_ends
    return net


def slices(n):
    net = Network([1, n])
    parts = [net.add("slice.Tensor", {"self": one("x"), "dim": {"as_int": 1}, "start": {"as_int": i},
                                      "end": {"as_int": i + 1}, "step": {"as_int": 1}}, [1, 1]) for i in range(n)]
    net.outputs = [net.cat(parts)]
    return net


def recurrent(steps):
    inputs, hidden, results = 40, 64, 10
    net = Network([1, steps, inputs])

    def parameter(name, shape):
        count = 1
        for size in shape:
            count *= size
        net.tensors[name] = tensor(shape)
        net.weights[name] = [((i * 7919 + len(name) * 31) % 101 - 50) / 400 for i in range(count)]
        return {"name": name}

    weights = [parameter("w_ih", [3 * hidden, inputs]), parameter("w_hh", [3 * hidden, hidden]),
               parameter("b_ih", [3 * hidden]), parameter("b_hh", [3 * hidden])]
    start = parameter("h0", [1, 1, hidden])
    sequence = net.add("gru.input", {
        "input": one("x"), "hx": {"as_tensor": start}, "params": {"as_tensors": weights}, "has_biases": {"as_bool": True},
        "num_layers": {"as_int": 1}, "dropout": {"as_float": 0.0}, "train": {"as_bool": False},
        "bidirectional": {"as_bool": False}, "batch_first": {"as_bool": True}}, [1, steps, hidden])
    net.nodes[-1]["outputs"].append(one("state"))
    net.tensors["state"] = tensor([1, 1, hidden])
    last = net.add("select.int", {"self": one(sequence), "dim": {"as_int": 1}, "index": {"as_int": -1}}, [1, hidden])
    matrix, bias = parameter("w_fc", [results, hidden]), parameter("b_fc", [results])
    net.outputs = [net.add("linear.default", {"input": one(last), "weight": {"as_tensor": matrix},
                                              "bias": {"as_tensor": bias}}, [1, results])]
    return net


def calibration(shapes, path):
    with zipfile.ZipFile(path, "w") as archive:
        for number, shape in enumerate(shapes):
            count = 1
            for size in shape:
                count *= size
            values = [((i * 7919) % 2001 - 1000) / 500 for i in range(2 * count)]
            header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {(2, *shape)}, }}"
            header += " " * (-(len(header) + 11) % 64) + "\n"
            data = io.BytesIO()
            data.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            data.write(struct.pack(f"<{len(values)}f", *values))
            archive.writestr(f"calib{number}.npy", data.getvalue())


def main():
    kind, n, prefix = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    make = {"fan": branches, "tree": branches, "concat": branches, "repeat": branches, "chain": branches, "inputs": branches,
            "slices": lambda _, count: slices(count), "gru": lambda _, count: recurrent(count)}.get(kind, chain)
    net = make(kind, n)
    net.save(prefix + ".pt2")
    calibration([net.shapes[name] for name in net.inputs], prefix + ".npz")


if __name__ == "__main__":
    main()
