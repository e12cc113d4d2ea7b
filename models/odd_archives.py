#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes archives that Carina must refuse with the true reason.

usage: odd_archives.py OUT_DIR     writes dynamic.pt2, complex.pt2, custom.pt2, nan_weights.pt2, scan.pt2,
vmap.pt2, deform.pt2, weight_only.pt2

Needs torch >= 2.9 and torchvision (Debian: python3-torch, python3-torchvision).
"""
import os
import sys

import torch
import torchvision
from torch import nn
from torch._higher_order_ops.scan import scan
from torch.ao.quantization.fx import _decomposed  # noqa: F401 (registers quantized_decomposed)


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(x)


class Complex(nn.Module):
    def forward(self, x):
        return torch.tanh(torch.fft.fft(x)).real


@torch.library.custom_op("odd::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


class Custom(nn.Module):
    def forward(self, x):
        return torch.ops.odd.twice(x) + 1


class Scan(nn.Module):
    def forward(self, x):
        def step(carry, row):
            total = carry + row
            return total, total * 2.0

        return scan(step, torch.zeros_like(x[0]), x)[1]


class Vmap(nn.Module):
    """torch.vmap stays in the archive as a region between calls of torch._functorch."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 4, 2))

    def forward(self, x):
        first, second = (torch.vmap(lambda w: x @ w)(self.w * k) for k in (1, 2))
        return first + second


class Deform(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torchvision.ops.DeformConv2d(1, 1, 1)

    def forward(self, x):
        return self.conv(x.reshape(1, 1, 2, 4), torch.zeros(1, 2, 2, 4))


class WeightOnly(nn.Module):
    """Quantized weights, float activations: nothing that an NPU computes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.randint(-127, 127, (3, 4), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(3) * 0.01 + 0.001)
        self.register_buffer("zeros", torch.zeros(3, dtype=torch.int64))

    def forward(self, x):
        dequantize = torch.ops.quantized_decomposed.dequantize_per_channel
        return nn.functional.linear(x, dequantize(self.w, self.scales, self.zeros, 0, -127, 127, torch.int8))


def main():
    out_dir = sys.argv[1]
    torch.manual_seed(3)
    x = torch.randn(2, 4)
    nan = Linear()
    with torch.no_grad():
        nan.fc.weight[1, 2] = float("nan")
    programs = {
        "dynamic": torch.export.export(Linear(), (x,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}}),
        "complex": torch.export.export(Complex(), (x,)),
        "custom": torch.export.export(Custom(), (x,)),
        "vmap": torch.export.export(Vmap().eval(), (x,)),
        "weight_only": torch.export.export(WeightOnly().eval(), (x,)),
        "deform": torch.export.export(Deform().eval(), (x,)),
        "nan_weights": torch.export.export(nan, (x,)),
        "scan": torch.export.export(Scan(), (x,)),
    }
    for name, program in programs.items():
        torch.export.save(program, os.path.join(out_dir, name + ".pt2"))


if __name__ == "__main__":
    main()
