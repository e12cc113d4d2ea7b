#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the small torch.export archives that the reader's tests use.

usage: pt2_samples.py OUT_DIR

Needs torch >= 2.9 and NumPy (Debian: python3-torch, python3-numpy). NAME.npz next to an archive holds inputs in0.. and the
results out0.. that torch computed. state_pickled.pt2 and state_flat.pt2 hold the same program as state.pt2 in the layouts
of torch 2.8 and of torch 2.1 to 2.7.
"""
import os
import sys
import zipfile

import numpy as np
import torch
from torch import nn
from torch._export.serde.serialize import serialize
from torch.export.pt2_archive._package import PT2ArchiveWriter


class State(nn.Module):
    """Parameters, buffers and constants of many types, strides and offsets."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(24.0).reshape(4, 6) / 8)
        self.tied = self.weight
        self.unused = nn.Parameter(torch.ones(3))
        self.register_buffer("transposed", torch.arange(24.0).reshape(6, 4).t())
        storage = torch.arange(40.0)
        self.register_buffer("window", storage[5:17].reshape(2, 6))
        self.register_buffer("column", storage[3::7])
        self.register_buffer("expanded", torch.tensor([2.0]).expand(3))
        self.register_buffer("volatile", torch.full((6,), 0.25), persistent=False)
        self.register_buffer("empty", torch.zeros(0, 6))
        for name, dtype in TYPES.items():
            self.register_buffer("t_" + name, torch.arange(6).to(dtype))
        self.constant = torch.tensor([1.0, -1.0, 0.5, 0.0, 2.0, -2.0])

    def forward(self, x, *, scale):
        y = x @ self.weight.t() + self.transposed.sum(1)
        y = y @ self.tied + self.volatile * scale["factor"] + self.constant
        y = y + self.window.sum(0) + self.column.sum() + self.expanded.sum() + torch.tensor([3.0]) + self.empty.sum()
        for name in TYPES:
            y = y + getattr(self, "t_" + name).to(torch.float32)
        return {"result": y, "pair": (y[0], 7, None)}


TYPES = {"u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
         "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64, "bool": torch.bool, "u16": torch.uint16,
         "u32": torch.uint32}


class Writes(nn.Module):
    """In-place operators on values and on views of them."""

    def forward(self, x):
        y = x.clone()
        y[:, 0] = 1
        y[:, 1:3].mul_(2)
        y.t()[3].add_(y[:, 0])
        z = torch.relu_(y - 1)
        w = z.view(-1)
        w[2:5].fill_(-3)
        z.unsqueeze_(0)
        return y, z, w


class Copies(nn.Module):
    """Writes into what may be a view or a copy, as the strides tell."""

    def forward(self, x):
        y = x + 1
        a = y.transpose(0, 1).reshape(-1)  # a copy
        a.mul_(2)
        b = y.reshape(2, 6)  # a view
        b.neg_()
        c = y.t().contiguous()  # a copy
        c.zero_()
        d = y.contiguous()  # y itself
        d.add_(10)
        e = y[:, 1:3].flatten()  # a copy
        e.sub_(5)
        f = y[1:].flatten(0)  # a view
        f.mul_(0.5)
        return y, a, b, c, d, e, f


class Inplace(nn.Module):
    """What torchvision's networks and hand-written layers compute in place."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Sequential(nn.Dropout(0.2, inplace=True), nn.Dropout2d(0.1, inplace=True),
                                  nn.AlphaDropout(0.1, inplace=True), nn.Hardswish(inplace=True))

    def forward(self, x):
        y = self.drop(x.clone())
        z = x.clone().sin_().atan_().clip_(-0.5, 0.5)
        z.remainder_(0.3)
        return y, z.log1p_().erf_(), (x * 4).trunc_().unsqueeze(0).squeeze_((0,)), (x * 2).lt_(0.5)


class InplaceOperators(nn.Module):
    """Python's augmented assignments, and forms whose names differ from those of the functional ones."""

    def forward(self, x, y, i):
        quotient = x.clone()
        quotient //= y
        bits = i.clone()
        bits &= 5
        bits |= 8
        bits ^= i
        bits <<= 2
        bits >>= 1
        seen = x > 0
        seen &= y > 1
        return (quotient, bits, seen, x.clone().copysign_(y), x.clone().rad2deg_(), x.clone().cumprod_(1), x.clone().greater_(0.1),
                x.clone().scatter_reduce_(1, i % 4, y, "amax"), x.clone().divide_(2.0), x.clone().heaviside_(y), x.clone().fix_())


class Counter(nn.Module):
    """State that the next call reads."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.total.add_(x)
        self.calls.add_(1)
        return self.total * 2


class Numbers(nn.Module):
    """Python numbers in the place of tensors."""

    def forward(self, x, i):
        return 1 - x, 2 / (x + 3), i + 1, i + 1.5, i // 2, torch.sub(x, 2, alpha=3), 2 ** i, torch.where(x > 0, x, 0.0)


class Modes(nn.Module):
    """Regions that torch.no_grad() and torch.autocast() leave in the graph."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        with torch.no_grad():
            y = x * 2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = self.fc(y)
            z = torch.relu_(z)
        return z.float() + 1


def arrays(args, kwargs, results):
    leaves = [t for t in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    out = [t for t in torch.utils._pytree.tree_leaves(results) if isinstance(t, torch.Tensor)]
    named = {f"in{i}": t.numpy() for i, t in enumerate(leaves)}
    named.update({f"out{i}": t.detach().contiguous().numpy() for i, t in enumerate(out)})
    return named


def save(out_dir, name, module, args, kwargs=None, decompose=False):
    module = module.eval()
    program = torch.export.export(module, args, kwargs or {})
    if decompose:
        program = program.run_decompositions()
    torch.export.save(program, os.path.join(out_dir, name + ".pt2"))
    inputs = torch.utils._pytree.tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, (args, kwargs or {}))
    results = module(*inputs[0], **inputs[1])
    np.savez(os.path.join(out_dir, name + ".npz"), **arrays(args, kwargs or {}, results))
    return program


def save_pickled(path, program):
    artifact = serialize(program)
    with PT2ArchiveWriter(path) as archive:
        archive.write_bytes("data/weights/model.pt", artifact.state_dict)
        archive.write_bytes("data/constants/model.pt", artifact.constants)
        archive.write_bytes("models/model.json", artifact.exported_program)
        archive.write_bytes("data/sample_inputs/model.pt", artifact.example_inputs)


def save_flat(path, program):
    artifact = serialize(program)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:  # torch stores uncompressed; readers accept both
        for name, data in (("serialized_exported_program.json", artifact.exported_program),
                           ("serialized_state_dict.pt", artifact.state_dict),
                           ("serialized_constants.pt", artifact.constants),
                           ("serialized_example_inputs.pt", artifact.example_inputs), ("version", b"8.2")):
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def main():
    out_dir = sys.argv[1]
    os.makedirs(out_dir, exist_ok=True)
    torch.manual_seed(7)
    x = torch.linspace(-1, 1, 12).reshape(2, 6)
    program = save(out_dir, "state", State(), (x,), {"scale": {"factor": torch.tensor(0.5)}})
    save_pickled(os.path.join(out_dir, "state_pickled.pt2"), program)
    save_flat(os.path.join(out_dir, "state_flat.pt2"), program)
    grid = torch.arange(12.0).reshape(3, 4)
    save(out_dir, "writes", Writes(), (grid,))
    save(out_dir, "copies", Copies(), (grid,))
    save(out_dir, "inplace_operators", InplaceOperators(),
         (torch.linspace(-3, 3, 12).reshape(3, 4), torch.linspace(0.5, 2, 12).reshape(3, 4), torch.arange(12).reshape(3, 4)))
    save(out_dir, "inplace", Inplace(), (torch.linspace(-1, 1, 16).reshape(1, 4, 2, 2),))
    save(out_dir, "counter", Counter(), (torch.tensor([1.0, 2.0, 3.0]),))
    save(out_dir, "counter_decomposed", Counter(), (torch.tensor([1.0, 2.0, 3.0]),), decompose=True)
    numbers = (torch.tensor([-1.0, 0.0, 2.5]), torch.tensor([1, 2, 5], dtype=torch.int32))
    save(out_dir, "numbers", Numbers(), numbers)
    save(out_dir, "numbers_decomposed", Numbers(), numbers, decompose=True)
    save(out_dir, "modes", Modes(), (torch.linspace(-1, 1, 8).reshape(2, 4),))


if __name__ == "__main__":
    main()
