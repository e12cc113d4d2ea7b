#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes small networks that come quantized, as ExecuTorch's Arm quantizer leaves them.

usage: qdq_forms.py OUT_DIR [NAME...]

Needs torch >= 2.9 and NumPy (Debian: python3-torch, python3-numpy). Writes NAME.pt2 (its members compressed) and NAME.npz for
every form: calib0.. holds samples of the inputs, in0.. others (stacked on a leading axis), out0.. what PyTorch computes for
those with the quantize and dequantize nodes in place. tests/data/qdq holds all of them.

What the quantizer does: convolutions and linears with the batch norm and relu behind them are one pattern, every other
operator is one; the inputs and the result of a pattern are quantized, what is inside is not. Weights have int8 codes per
output channel, biases int32 codes at input scale * weight scale. Operators that only move or pick elements give the codes of
their inputs: these have one scale together. Scales come from the smallest and largest value.
"""
import copy
import operator
import os
import sys
import zipfile

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  (defines torch.ops.quantized_decomposed)
import torch.nn.functional as F
from torch import nn

AFFINE8 = (-128, 127, torch.int8, False)
SYMMETRIC16 = (-32767, 32767, torch.int16, True)
AFFINE_U8 = (0, 255, torch.uint8, False)

LAYERS = {"conv1d", "conv2d", "conv3d", "conv_transpose2d", "linear"}
ACTIVATIONS = {"relu", "relu_", "hardtanh", "hardtanh_"}
SHARED = ACTIVATIONS | {
    "clamp", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "mean", "upsample_nearest2d", "upsample_bilinear2d", "view", "reshape",
    "permute", "transpose", "cat", "stack", "slice", "select", "chunk", "split", "split_with_sizes", "flatten", "unflatten", "unsqueeze", "squeeze",
    "expand", "contiguous", "dropout", "pad", "constant_pad_nd", "pixel_shuffle", "flip", "repeat", "clone", "t", "unbind", "getitem",
    "minimum", "maximum", "amax", "roll"}
CREATED = {"zeros", "ones", "full", "arange"}  # no separate quantization


def op_name(node):
    if node.op != "call_function":
        return ""
    if node.target is operator.getitem:
        return "getitem"
    return node.target._schema.name.split("::")[1]


def scale_of(low, high, spec):
    qmin, qmax, _, symmetric = spec
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    if symmetric:
        return max(np.float32(max(-low, high) / ((qmax - qmin) / 2)).item(), 2.0**-16), 0
    scale = max(np.float32((high - low) / (qmax - qmin)).item(), 2.0**-16)
    return scale, int(np.clip(qmin - np.rint(low / scale), qmin, qmax))


class Recorder(torch.fx.Interpreter):
    """Ranges of everything that calibration samples make."""

    def __init__(self, module):
        super().__init__(module)
        self.ranges = {}

    def run_node(self, node):
        result = super().run_node(node)
        for i, t in enumerate(result if isinstance(result, (tuple, list)) else [result]):
            if isinstance(t, torch.Tensor) and t.dtype == torch.float32 and t.numel():
                key = (node, i if isinstance(result, (tuple, list)) else None)
                low, high = self.ranges.get(key, (float("inf"), float("-inf")))
                self.ranges[key] = (min(low, t.min().item()), max(high, t.max().item()))
        return result


class Quantizer:
    def __init__(self, module, spec, bias_codes, parameters):
        self.gm, self.spec, self.bias_codes, self.parameters = module, spec, bias_codes, parameters
        self.count, self.parent = 0, {}

    def find(self, n):
        while self.parent.setdefault(n, n) is not n:
            n = self.parent[n]
        return n

    def attribute(self, node):
        value = self.gm
        for part in node.target.split("."):
            value = getattr(value, part)
        return value.detach()

    def buffer(self, tensor):
        name = f"q{self.count}"
        self.count += 1
        self.gm.register_buffer(name, tensor)
        return self.gm.graph.get_attr(name)

    def patterns(self):
        """The nodes whose results stay float: inside of a pattern."""
        inside = set()
        for node in self.gm.graph.nodes:
            if op_name(node) not in LAYERS:
                continue
            last = node
            follow = lambda names: next((u for u in last.users if len(last.users) == 1 and op_name(u) in names), None)
            norm = follow({"batch_norm"})
            if norm is not None:
                inside.add(last)
                last = norm
            act = None if self.spec[3] else follow(ACTIVATIONS)  # symmetric ranges cannot end at 0
            if act is not None:
                inside.add(last)
                self.fused_activations.add(act)
        return inside

    def fold_norms(self):
        """Batch norms go into the weights of the convolution in front of them, as prepare_pt2e does."""
        for norm in list(self.gm.graph.nodes):
            if op_name(norm) != "batch_norm" or op_name(norm.args[0]) not in LAYERS or len(norm.args[0].users) != 1:
                continue
            conv = norm.args[0]
            gamma, beta, mean, var = (self.attribute(a) for a in norm.args[1:5])
            factor = gamma / torch.sqrt(var + norm.args[7])
            weight = self.attribute(conv.args[1])
            bias = self.attribute(conv.args[2]) if len(conv.args) > 2 and conv.args[2] is not None else torch.zeros(len(factor))
            with self.gm.graph.inserting_before(conv):
                args = list(conv.args) + [None] * (3 - len(conv.args))
                args[1] = self.buffer(weight * factor.reshape([-1] + [1] * (weight.dim() - 1)))
                args[2] = self.buffer((bias - mean) * factor + beta)
                conv.args = tuple(args)
            norm.replace_all_uses_with(conv)
            self.gm.graph.erase_node(norm)
        self.gm.recompile()

    def run(self, samples):
        self.fused_activations = set()
        recorder = Recorder(self.gm)
        with torch.no_grad():
            for sample in samples:
                recorder.run(*sample)
        inside = self.patterns()
        nodes = list(self.gm.graph.nodes)
        # Values that share a scale.
        for node in nodes:
            name = op_name(node)
            if name not in SHARED or node in self.fused_activations:
                continue
            for source in node.all_input_nodes:
                if op_name(source) in CREATED or source.op == "get_attr" or (name == "getitem" and op_name(source) not in SHARED):
                    continue
                self.parent[self.find(source)] = self.find(node)
        ranges = {}
        for (node, part), (low, high) in recorder.ranges.items():
            root = self.find(node)
            known = ranges.get(root, (low, high))
            ranges[root] = (min(low, known[0]), max(high, known[1]))
        self.scales = {root: scale_of(*r, self.spec) for root, r in ranges.items()}
        for node in nodes:
            self.quantize_weights(node)
        for node in nodes:
            single = (node, None) in recorder.ranges
            if single and node.op in ("placeholder", "call_function") and node not in inside and op_name(node) not in CREATED:
                self.quantize_result(node)
        self.gm.graph.lint()
        self.gm.recompile()

    def pair(self, source, scale, zero, spec):
        low, high, dtype, _ = spec
        ops = torch.ops.quantized_decomposed
        q = self.gm.graph.call_function(ops.quantize_per_tensor.default, (source, scale, zero, low, high, dtype))
        return q, self.gm.graph.call_function(ops.dequantize_per_tensor.default, (q, scale, zero, low, high, dtype))

    def quantize_result(self, node):
        scale, zero = self.scales[self.find(node)]
        users = list(node.users)
        with self.gm.graph.inserting_after(node):
            q = self.gm.graph.call_function(torch.ops.quantized_decomposed.quantize_per_tensor.default,
                                            (node, scale, zero, *self.spec[:3]))
        with self.gm.graph.inserting_after(q):
            dq = self.gm.graph.call_function(torch.ops.quantized_decomposed.dequantize_per_tensor.default,
                                             (q, scale, zero, *self.spec[:3]))
        for user in users:
            user.replace_input_with(node, dq)

    def quantize_weights(self, node):
        name = op_name(node)
        if name in LAYERS:
            self.quantize_layer(node, 1 if name == "conv_transpose2d" else 0)
        elif name != "batch_norm" and self.parameters:
            for source in node.all_input_nodes:
                if source.op == "get_attr" and self.attribute(source).dtype == torch.float32:
                    self.quantize_parameter(node, source)

    def quantize_layer(self, node, axis):
        weight = self.attribute(node.args[1])
        dims = [d for d in range(weight.dim()) if d != axis]
        scales = torch.clamp(weight.abs().amax(dims) / 127, min=2.0**-16)
        shape = [-1 if d == axis else 1 for d in range(weight.dim())]
        codes = torch.clamp(torch.round(weight / scales.reshape(shape)), -127, 127).to(torch.int8)
        zeros = torch.zeros(len(scales), dtype=torch.int64)
        ops = torch.ops.quantized_decomposed
        with self.gm.graph.inserting_before(node):
            dq = self.gm.graph.call_function(ops.dequantize_per_channel.default,
                                             (self.buffer(codes), self.buffer(scales), self.buffer(zeros), axis, -127, 127, torch.int8))
            args = list(node.args)
            args[1] = dq
            if self.bias_codes and len(args) > 2 and args[2] is not None:
                products = (np.float32(self.scales[self.find(args[0])][0]) * scales).to(torch.float32)
                bias = torch.clamp(torch.round(self.attribute(args[2]).double() / products.double()), -2**31 + 1, 2**31 - 1).to(torch.int32)
                args[2] = self.gm.graph.call_function(
                    ops.dequantize_per_channel.default,
                    (self.buffer(bias), self.buffer(products), self.buffer(zeros), 0, -2**31 + 1, 2**31 - 1, torch.int32))
            node.args = tuple(args)

    def quantize_parameter(self, node, source):
        value = self.attribute(source)
        scale, zero = scale_of(value.min(), value.max(), self.spec)
        low, high, dtype, _ = self.spec
        codes = torch.clamp(torch.round(value * (1.0 / scale)) + zero, low, high).to(dtype)
        with self.gm.graph.inserting_before(node):
            dq = self.gm.graph.call_function(torch.ops.quantized_decomposed.dequantize_per_tensor.default,
                                             (self.buffer(codes), scale, zero, low, high, dtype))
        node.replace_input_with(source, dq)


# Networks
# ------------------------------------------------------------------------------------------------------------------------------


class Net(nn.Module):
    """Modules by name, and a function of them."""

    def __init__(self, function, **modules):
        super().__init__()
        self.function = function
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, *x):
        return self.function(self, *x)


class Parameter(nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.p = nn.Parameter(torch.randn(*shape))


def norm2d(channels):
    norm = nn.BatchNorm2d(channels)
    norm.running_mean = torch.randn(channels) * 0.3
    norm.running_var = torch.rand(channels) + 0.5
    norm.weight.data = torch.rand(channels) + 0.5
    norm.bias.data = torch.randn(channels) * 0.3
    return norm


def spread(norm):
    norm.weight.data = torch.rand_like(norm.weight) + 0.5
    if getattr(norm, "bias", None) is not None:
        norm.bias.data = torch.randn_like(norm.bias) * 0.3
    return norm


def heads(x, count):
    return x.view(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


def attention(self, x):
    q, k, v = (heads(p, 2) for p in self.qkv(x).chunk(3, -1))
    y = F.scaled_dot_product_attention(q, k, v)
    return self.out(y.transpose(1, 2).reshape(x.shape))


def block(self, x):
    x = x + attention(self, self.n1(x))
    return x + self.down(F.gelu(self.up(self.n2(x))))


def transformer():
    return Net(block, n1=spread(nn.LayerNorm(16)), n2=spread(nn.LayerNorm(16)), qkv=nn.Linear(16, 48), out=nn.Linear(16, 16), up=nn.Linear(16, 32),
               down=nn.Linear(32, 16))


def convnext(self, x):
    y = self.depthwise(x).permute(0, 2, 3, 1)
    y = self.down(F.gelu(self.up(self.norm(y)))) * self.scale.p
    return x + y.permute(0, 3, 1, 2)


def squeeze_excite(self, x):
    gate = torch.sigmoid(self.b(F.relu(self.a(F.adaptive_avg_pool2d(x, 1)))))
    return x * gate


def layer(function, shape=(1, 12, 16), **options):
    """An operator between two linears, as in most networks."""
    width = shape[-1]
    return Net(lambda self, x: self.b(function(self, self.a(x))), a=nn.Linear(width, width), b=nn.Linear(width, width),
               **options.pop("modules", {})), [shape], options


def image(function, shape=(1, 8, 8, 8), **modules):
    return Net(function, **modules), [shape], {}


def pair(function, shape=(1, 8, 8, 8), **modules):
    return Net(function, **modules), [shape, shape], {}


FORMS = {
    "conv_relu": lambda: image(lambda s, x: F.relu(s.c(x)), c=nn.Conv2d(8, 8, 3, padding=1)),
    "conv_bn_relu": lambda: image(lambda s, x: F.relu(s.n(s.c(x))), c=nn.Conv2d(8, 8, 3, stride=2, padding=1, bias=False), n=norm2d(8)),
    "conv_bn_apart": lambda: (Net(lambda s, x: F.relu(s.n(F.hardtanh(s.c(x)))), c=nn.Conv2d(8, 8, 3), n=norm2d(8)), [(1, 8, 8, 8)], {}),
    "conv_bn_unfolded": lambda: (Net(lambda s, x: F.relu(s.n(s.c(x))), c=nn.Conv2d(8, 8, 3), n=norm2d(8)), [(1, 8, 8, 8)], {"fold": False}),
    "depthwise_relu6": lambda: image(lambda s, x: F.hardtanh(s.c(x), 0, 6), c=nn.Conv2d(8, 8, 3, padding=1, groups=8)),
    "conv1d": lambda: image(lambda s, x: F.relu(s.c(x)), (1, 8, 32), c=nn.Conv1d(8, 12, 5, padding=2)),
    "conv_transpose": lambda: image(lambda s, x: s.c(x), c=nn.ConvTranspose2d(8, 4, 2, stride=2)),
    "linear": lambda: layer(lambda s, x: F.relu(x)),
    "linear_decomposed": lambda: (*layer(lambda s, x: F.relu(x))[:2], {"decompose": True, "bias_codes": False}),
    "linear_decomposed_bias": lambda: (*layer(lambda s, x: torch.tanh(x))[:2], {"decompose": True}),
    "mlp_int16": lambda: (*layer(lambda s, x: F.gelu(x))[:2], {"spec": SYMMETRIC16}),
    "mlp_uint8": lambda: (*layer(lambda s, x: F.relu(x))[:2], {"spec": AFFINE_U8}),
    "lstm": lambda: layer(lambda s, x: s.r(x)[0], modules={"r": nn.LSTM(16, 16, batch_first=True)}),
    "lstm_parameters": lambda: layer(lambda s, x: s.r(x)[0], modules={"r": nn.LSTM(16, 16, batch_first=True)}, parameters=True),
    "lstm_int16": lambda: layer(lambda s, x: s.r(x)[0], modules={"r": nn.LSTM(16, 16, batch_first=True)}, spec=SYMMETRIC16),
    "lstm_both_ways": lambda: layer(lambda s, x: s.r(x)[0][..., ::2].contiguous(), (1, 8, 16),
                                    modules={"r": nn.LSTM(16, 16, batch_first=True, bidirectional=True)}),
    "gru": lambda: layer(lambda s, x: s.r(x)[0], modules={"r": nn.GRU(16, 16, batch_first=True)}),
    "rnn": lambda: layer(lambda s, x: s.r(x)[0], modules={"r": nn.RNN(16, 16, batch_first=True)}),
    # 100 time steps or more: loops.
    "gru_long": lambda: layer(lambda s, x: s.r(x)[0], (1, 120, 8), modules={"r": nn.GRU(8, 8, batch_first=True)}),
    "gru_long_state": lambda: layer(lambda s, x: s.r(x)[1], (131, 1, 8), modules={"r": nn.GRU(8, 8, num_layers=2)}),
    "gru_long_int16": lambda: layer(lambda s, x: s.r(x)[0], (1, 120, 8), modules={"r": nn.GRU(8, 8, batch_first=True)}, spec=SYMMETRIC16),
    "lstm_long_parameters": lambda: layer(lambda s, x: s.r(x)[0], (1, 113, 8), modules={"r": nn.LSTM(8, 8, batch_first=True)}, parameters=True),
    "lstm_long_both_ways": lambda: layer(lambda s, x: s.r(x)[0][..., ::2].contiguous(), (1, 107, 8),
                                         modules={"r": nn.LSTM(8, 8, batch_first=True, bidirectional=True)}),
    "sdpa": lambda: layer(lambda s, x: F.scaled_dot_product_attention(x, x, x)),
    "sdpa_causal": lambda: (Net(attention_causal, qkv=nn.Linear(16, 48), out=nn.Linear(16, 16)), [(1, 12, 16)], {}),
    "attention_decomposed": lambda: (Net(attention, qkv=nn.Linear(16, 48), out=nn.Linear(16, 16)), [(1, 12, 16)], {"decompose": True}),
    "softmax": lambda: layer(lambda s, x: F.softmax(x * 4, -1)),
    "softmax_int16": lambda: layer(lambda s, x: F.softmax(x * 4, -1), spec=SYMMETRIC16),
    "log_softmax": lambda: layer(lambda s, x: F.log_softmax(x, -1)),
    "layer_norm": lambda: layer(lambda s, x: s.n(x), modules={"n": spread(nn.LayerNorm(16))}),
    "layer_norm_parameters": lambda: layer(lambda s, x: s.n(x), modules={"n": spread(nn.LayerNorm(16))}, parameters=True),
    "layer_norm_decomposed": lambda: layer(lambda s, x: s.n(x), modules={"n": spread(nn.LayerNorm(16))}, decompose=True),
    "layer_norm_int16": lambda: layer(lambda s, x: s.n(x), modules={"n": spread(nn.LayerNorm(16))}, spec=SYMMETRIC16),
    "rms_norm": lambda: layer(lambda s, x: s.n(x), modules={"n": spread(nn.RMSNorm(16))}),
    "group_norm": lambda: image(lambda s, x: s.n(s.c(x)), c=nn.Conv2d(8, 8, 1), n=spread(nn.GroupNorm(2, 8))),
    "instance_norm": lambda: image(lambda s, x: s.n(s.c(x)), c=nn.Conv2d(8, 8, 1), n=spread(nn.InstanceNorm2d(8, affine=True))),
    "batch_norm": lambda: image(lambda s, x: s.n(torch.sigmoid(x)), n=norm2d(8)),
    "normalize": lambda: layer(lambda s, x: F.normalize(x, dim=-1)),
    "einsum": lambda: layer(lambda s, x: torch.einsum("bij,bkj->bik", x, x)[..., :12] @ x),
    "add": lambda: pair(lambda s, x, y: x + y),
    "residual": lambda: image(lambda s, x: F.relu(x + s.c(x)), c=nn.Conv2d(8, 8, 3, padding=1)),
    "mul_sub": lambda: pair(lambda s, x, y: x * y - x),
    "div": lambda: pair(lambda s, x, y: x / (torch.sigmoid(y) + 0.5)),
    "cat": lambda: pair(lambda s, x, y: F.relu(torch.cat([s.c(x), y], 1)), c=nn.Conv2d(8, 8, 1)),
    "pools": lambda: image(lambda s, x: F.avg_pool2d(F.max_pool2d(s.c(x), 3, 1, 1), 2), c=nn.Conv2d(8, 8, 1)),
    "mean": lambda: image(lambda s, x: s.l(s.c(x).mean((2, 3))), c=nn.Conv2d(8, 8, 3), l=nn.Linear(8, 16)),
    "activations": lambda: image(lambda s, x: F.silu(F.hardswish(torch.tanh(F.elu(F.leaky_relu(x * 2)))))),
    "matmul": lambda: pair(lambda s, x, y: x @ y),
    "glu": lambda: layer(lambda s, x: F.glu(torch.cat([x, x.flip(1)], -1), -1)),
    "upsample": lambda: image(lambda s, x: F.interpolate(s.c(x), scale_factor=2, mode="bilinear"), c=nn.Conv2d(8, 4, 1)),
    "squeeze_excite": lambda: image(squeeze_excite, a=nn.Conv2d(8, 4, 1), b=nn.Conv2d(4, 8, 1)),
    "transformer": lambda: (transformer(), [(1, 12, 16)], {}),
    "transformer_decomposed": lambda: (transformer(), [(1, 12, 16)], {"decompose": True}),
    "transformer_int16": lambda: (transformer(), [(1, 12, 16)], {"spec": SYMMETRIC16}),
    "where": lambda: pair(lambda s, x, y: torch.where(x > y, x, y * 0.5)),
    "cosine_similarity": lambda: pair(lambda s, x, y: F.cosine_similarity(x, y, dim=1)),
    "linear_attention": lambda: (Net(lambda s, x: (F.elu(x) + 1) @ ((F.elu(x) + 1).transpose(-1, -2) @ x) / 12), [(1, 12, 16)], {}),
    "lstm_decomposed": lambda: layer(lambda s, x: s.r(x)[0], (1, 6, 16), modules={"r": nn.LSTM(16, 16, batch_first=True)}, decompose=True),
    "encoder": lambda: (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), [(1, 12, 16)], {}),
    "fake_quantization": lambda: (None, [(1, 8, 8, 8)], {}),
    "convnext": lambda: (Net(convnext, depthwise=nn.Conv2d(16, 16, 7, padding=3, groups=16), norm=spread(nn.LayerNorm(16)), up=nn.Linear(16, 32),
                             down=nn.Linear(32, 16), scale=Parameter(16)), [(1, 16, 8, 8)], {}),
}


def attention_causal(self, x):
    q, k, v = (heads(p, 2) for p in self.qkv(x).chunk(3, -1))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return self.out(y.transpose(1, 2).reshape(x.shape))


def trained(samples):
    """A network in quantization-aware training that nobody converted: observers with fake quantization."""
    from torch.ao.quantization import disable_observer, get_default_qat_qconfig, prepare_qat
    module = nn.Sequential(nn.Identity(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 12)).train()
    module.qconfig = get_default_qat_qconfig("fbgemm")
    module[0].qconfig = None
    module = prepare_qat(module)
    module[0] = copy.deepcopy(module[1].activation_post_process)
    for sample in samples:
        module(*sample)
    return module.eval().apply(disable_observer)


def save(program, file):
    """torch.export.save stores what is in the archive as it is; this takes a tenth of the room."""
    torch.export.save(program, file)
    with zipfile.ZipFile(file) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def make(name, folder):
    torch.manual_seed(sum(ord(c) * (i + 1) for i, c in enumerate(name)))
    module, shapes, options = FORMS[name]()
    calibration = [tuple(torch.randn(s) for s in shapes) for _ in range(4)]
    tests = [tuple(torch.randn(s) * 0.9 for s in shapes) for _ in range(8 if shapes[0][-1] == 16 else 3)]
    if name == "fake_quantization":
        write(torch.export.export(trained(calibration), calibration[0]), name, folder, calibration, tests)
        return
    module.eval()
    gm = torch.export.export(module, calibration[0]).module(check_guards=False)
    quantizer = Quantizer(gm, options.get("spec", AFFINE8), options.get("bias_codes", True), options.get("parameters", False))
    if options.get("fold", True):
        quantizer.fold_norms()
    quantizer.run(calibration)
    program = torch.export.export(gm, calibration[0])
    if options.get("decompose"):
        program = program.run_decompositions()
    write(program, name, folder, calibration, tests)


def write(program, name, folder, calibration, tests):
    run = program.module(check_guards=False)
    arrays = {}
    for i in range(len(calibration[0])):
        arrays[f"calib{i}"] = np.stack([c[i].numpy() for c in calibration])
        arrays[f"in{i}"] = np.stack([t[i].numpy() for t in tests])
    with torch.no_grad():
        results = [run(*t) for t in tests]
    results = [r if isinstance(r, (tuple, list)) else (r,) for r in results]
    for i in range(len(results[0])):
        arrays[f"out{i}"] = np.stack([r[i].numpy() for r in results])
    save(program, os.path.join(folder, name + ".pt2"))
    np.savez_compressed(os.path.join(folder, name + ".npz"), **arrays)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name in sys.argv[2:] or sorted(FORMS):
        try:
            make(name, folder)
            print(name)
        except Exception as error:
            raise RuntimeError(f"form {name}") from error


if __name__ == "__main__":
    main()
