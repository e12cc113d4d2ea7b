#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the networks of a program with several methods on one buffer: write.pt2 fills it, read.pt2 uses it, reset.pt2
clears it, narrow.pt2 has another shape for it. Beside each its calibration samples and what PyTorch makes of them; the
samples are calls in this order: write and read in turns, reset behind them, read once more (read.npz has that call last).

usage: method_networks.py OUT_DIR

The .npz hold calib0 (samples on the leading axis) and out0 (their results). Needs torch >= 2.9 (Debian: python3-torch).
"""
import os
import sys

import numpy as np
import torch
from torch import nn

WIDTH, CALLS = 16, 6


class Shared(nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(8, width), nn.Linear(8, width)
        self.register_buffer("memory", torch.linspace(-1, 1, width)[None])


class Method(nn.Module):
    """The same names in all of them."""

    def __init__(self, shared):
        super().__init__()
        self.m = shared


class Write(Method):
    """No result depends on what it writes."""

    def forward(self, x):
        self.m.memory.copy_(torch.tanh(self.m.encoder(x)))
        return x * 2


class Read(Method):
    """Writes nothing."""

    def forward(self, x):
        return torch.relu(self.m.decoder(x) + self.m.memory)


class Reset(Method):
    def forward(self):
        self.m.memory.zero_()


def main():
    torch.manual_seed(3)
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    shared = Shared().eval().requires_grad_(False)
    methods = {"write": Write(shared), "read": Read(shared), "reset": Reset(shared)}
    example = (torch.randn(1, 8),)
    programs = {name: torch.export.export(method, () if name == "reset" else example) for name, method in methods.items()}
    programs["narrow"] = torch.export.export(Write(Shared(WIDTH // 2).eval().requires_grad_(False)), example)
    for name, program in programs.items():
        torch.export.save(program, os.path.join(out, name + ".pt2"))
    xs, ys = torch.randn(CALLS, 1, 8), torch.randn(CALLS + 1, 1, 8)
    written, read = [], []
    for x, y in zip(xs, ys):
        written.append(methods["write"](x))
        read.append(methods["read"](y))
    methods["reset"]()
    read.append(methods["read"](ys[-1]))
    np.savez(os.path.join(out, "write.npz"), calib0=xs.numpy(), out0=torch.stack(written).numpy())
    np.savez(os.path.join(out, "read.npz"), calib0=ys.numpy(), out0=torch.stack(read).numpy())


if __name__ == "__main__":
    main()
