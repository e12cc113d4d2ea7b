#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes networks whose inputs have sizes that are chosen when they are compiled (torch.export's dynamic_shapes), and
beside each what PyTorch makes of inputs of several sizes.

usage: dynamic_shapes.py OUT_DIR

NAME.npz holds, for every choice of sizes, TAG.in0, ... and TAG.out0, ... with the sizes in the order of the inputs as
TAG ("16", "2_12_16"), and calib0, ...: samples of the largest choice. Needs torch >= 2.9 (Debian: python3-torch).
"""
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim


class Length(nn.Module):
    """A sequence of even length: sums, products and quotients of it."""

    def __init__(self):
        super().__init__()
        self.conv, self.linear = nn.Conv1d(4, 8, 3, padding=1), nn.Linear(8, 6)

    def forward(self, x):
        y = torch.relu(self.conv(x)).transpose(1, 2)
        b, t, c = y.shape
        z = self.linear(y.reshape(b * t, c)).view(b, t, -1)
        z = z + torch.arange(t).float().view(1, t, 1) / (t + 1)
        longer = torch.cat([z, torch.zeros(b, t + 1, 6)], dim=1)
        return torch.cat([z, z[:, : t // 2]], dim=1), longer, F.avg_pool1d(x, 2), t * 2


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.out = nn.Linear(8, 8), nn.Linear(8, 8)
        self.register_buffer("positions", torch.randn(64, 8))

    def forward(self, x):
        t = x.shape[1]
        x = x + self.positions[:t]
        mask = torch.tril(torch.ones(t, t)).bool()
        scores = (self.q(x) @ x.transpose(1, 2) / math.sqrt(8)).masked_fill(~mask, -100.0)
        return self.out(scores.softmax(-1) @ x)


class Picture(nn.Module):
    """Batch, height and width."""

    def __init__(self):
        super().__init__()
        self.conv, self.linear = nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.Linear(4, 5)

    def forward(self, x):
        y = torch.relu(self.conv(x))
        z = F.interpolate(y, scale_factor=2)
        return self.linear(F.adaptive_avg_pool2d(z, 1).flatten(1)), F.max_pool2d(y, 2)


class Pair(nn.Module):
    """The second input is longer by one."""

    def forward(self, x, y):
        return x + y[:, 1:] * 2


class Fours(nn.Module):
    """Takes multiples of four only, and even numbers of those."""

    def forward(self, x):
        t = x.shape[1]
        y = x.view(1, t // 4, 4).sum(-1)
        return y[:, ::2] - y[:, 1::2] if (t // 4) % 2 == 0 else y[:, :1]


class Number(nn.Module):
    """A number is an input and takes part."""

    def forward(self, x, n):
        return F.relu(x) * n


class Choice(nn.Module):
    """Sizes inside of regions."""

    def forward(self, x):
        def yes(x):
            return torch.relu(x) * x.shape[1]

        def no(x):
            return x - torch.arange(x.shape[1])

        return torch.cond(x.sum() > 0, yes, no, (x,))


def networks():
    half = Dim("half", min=2, max=32)
    t = Dim("t", min=3, max=30)
    return {
        "length": (Length(), lambda n: (torch.randn(1, 4, n * 2),), [(8,), (2,), (20,)], {"x": {2: half * 2}}),
        "attention": (Attention(), lambda n: (torch.randn(1, n, 8),), [(16,), (4,), (64,)], {"x": {1: Dim("t", min=2, max=64)}}),
        "picture": (Picture(), lambda b, h, w: (torch.randn(b, 3, h, w),), [(2, 12, 16), (1, 8, 8), (3, 17, 31)],
                    {"x": {0: Dim("batch", min=1, max=8), 2: Dim("height", min=8, max=64), 3: Dim("width", min=8, max=64)}}),
        "pair": (Pair(), lambda n: (torch.randn(1, n), torch.randn(1, n + 1)), [(5,), (3,), (30,)], {"x": {1: t}, "y": {1: t + 1}}),
        "fours": (Fours(), lambda n: (torch.randn(1, n),), [(16,), (32,), (64,)], {"x": {1: Dim.AUTO(min=8, max=64)}}),
        "number": (Number(), lambda n, k: (torch.randn(1, n), k), [(8, 3), (4, 9)], {"x": {1: Dim("t", min=2, max=64)}, "n": Dim.DYNAMIC(min=1, max=9)}),
        "choice": (Choice(), lambda n: (torch.randn(1, n * 2),), [(4,), (6,)], {"x": {1: half * 2}}),
        "unbounded": (Pair(), lambda n: (torch.randn(1, n), torch.randn(1, n + 1)), [(5,)],
                      {"x": {1: (u := Dim("u", min=3))}, "y": {1: u + 1}}),
    }


def tensors(values):
    values = values if isinstance(values, (tuple, list)) else [values]
    return [value.detach().numpy() for value in values if isinstance(value, torch.Tensor)]


def main():
    torch.manual_seed(5)
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    for name, (module, inputs, choices, shapes) in networks().items():
        module = module.eval().requires_grad_(False)
        program = torch.export.export(module, inputs(*choices[0]), dynamic_shapes=shapes)
        torch.export.save(program, os.path.join(out, name + ".pt2"))
        arrays = {}
        for choice in choices:
            tag = "_".join(map(str, choice))
            given = inputs(*choice)
            arrays.update({f"{tag}.in{i}": a for i, a in enumerate(tensors(given))})
            arrays.update({f"{tag}.out{i}": a for i, a in enumerate(tensors(module(*given)))})
        samples = [tensors(inputs(*choices[-1])) for _ in range(4)]
        arrays.update({f"calib{i}": np.stack(parts) for i, parts in enumerate(zip(*samples))})
        np.savez_compressed(os.path.join(out, name + ".npz"), **arrays)


if __name__ == "__main__":
    main()
