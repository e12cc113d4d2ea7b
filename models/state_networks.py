#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes small networks that keep state from call to call, as forward() writes it in PyTorch.

usage: state_networks.py OUT_DIR     writes NAME.pt2 and NAME.npz: STEPS calls one after the other on in*, with out* in eager
                                     mode, and other inputs as calib*

Needs torch >= 2.9 (Debian: python3-torch).
"""
import os
import sys

import numpy as np
import torch
from torch import nn

STEPS = 12


class StreamingConvolution(nn.Module):
    """Two causal convolutions over a stream of chunks of four frames: each keeps the frames that reach into the next chunk."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(8, 16, 3), nn.Conv1d(16, 6, 5)
        self.register_buffer("before_first", torch.zeros(1, 8, 2))
        self.register_buffer("before_second", torch.zeros(1, 16, 4), persistent=False)

    def forward(self, x):
        x = torch.cat([self.before_first, x], 2)
        self.before_first.copy_(x[:, :, -2:])
        x = torch.cat([self.before_second, torch.relu(self.first(x))], 2)
        self.before_second.copy_(x[:, :, -4:])
        return self.second(x)


class Recurrent(nn.Module):
    """A GRU cell whose hidden state starts at learned values."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(8, 16), nn.Linear(16, 4)
        self.register_buffer("hidden", torch.linspace(-0.5, 0.5, 16)[None])

    def forward(self, x):
        self.hidden.copy_(self.cell(x, self.hidden))
        return self.head(self.hidden)


class CachedAttention(nn.Module):
    """One attention layer over the keys and values of this call and those before it."""

    def __init__(self, write, context=16, width=16, heads=2):
        super().__init__()
        self.write, self.context, self.heads, self.head = write, context, heads, width // heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.register_buffer("keys", torch.zeros(1, heads, context, self.head))
        self.register_buffer("values", torch.zeros(1, heads, context, self.head))
        self.register_buffer("mask", torch.zeros(context, context).masked_fill(
            torch.ones(context, context, dtype=torch.bool).triu(1), -1000.0), persistent=False)

    def store(self, cache, new, position):
        if self.write == "index_put":
            cache[:, :, position] = new
        elif self.write == "index_copy":
            cache.index_copy_(2, position, new)
        else:  # the newest entry last
            cache.copy_(torch.cat([cache[:, :, 1:], new], 2))

    def forward(self, x, position):
        split = lambda y: y.view(1, 1, self.heads, self.head).transpose(1, 2)
        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        self.store(self.keys, k, position)
        self.store(self.values, v, position)
        scores = q @ self.keys.transpose(2, 3) * self.head ** -0.5
        if self.write != "roll":
            scores = scores + self.mask[position]
        return self.o((torch.softmax(scores, -1) @ self.values).transpose(1, 2).reshape(1, 1, -1))


class Blocks(nn.Module):
    """Writes into a slice of a buffer (slice_scatter), and counts its calls."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(24, 8)
        self.register_buffer("history", torch.zeros(1, 24))
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.history[:, :16] = self.history[:, 8:].clone()
        self.history[:, 16:] = x
        self.calls += 1
        return torch.tanh(self.mix(self.history)), self.calls * 2


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(17)
    positions = lambda steps: [torch.tensor([i % STEPS]) for i in range(steps)]
    networks = {
        "streaming_convolution": (StreamingConvolution(), lambda n: [[torch.randn(1, 8, 4)] for _ in range(n)]),
        "recurrent": (Recurrent(), lambda n: [[torch.randn(1, 8)] for _ in range(n)]),
        "blocks": (Blocks(), lambda n: [[torch.randn(1, 8)] for _ in range(n)]),
    }
    for write in ("index_put", "index_copy", "roll"):
        networks["attention_" + write] = (CachedAttention(write),
                                          lambda n: [[torch.randn(1, 1, 16), p] for p in positions(n)])
    for name, (module, samples) in networks.items():
        module.eval()
        for parameter in module.parameters():
            parameter.requires_grad_(False)
        calls, others = samples(STEPS), samples(6 * STEPS)
        program = torch.export.export(module, tuple(calls[0]))
        torch.export.save(program, os.path.join(out, name + ".pt2"))
        arrays = {}
        results = []
        for call in calls:
            result = module(*call)
            results.append([r.clone() for r in (result if isinstance(result, tuple) else (result,))])
        for i in range(len(calls[0])):
            arrays[f"in{i}"] = np.stack([call[i].numpy() for call in calls])
            arrays[f"calib{i}"] = np.stack([call[i].numpy() for call in others])
        for i in range(len(results[0])):
            arrays[f"out{i}"] = np.stack([result[i].numpy() for result in results])
        np.savez_compressed(os.path.join(out, name + ".npz"), **arrays)


if __name__ == "__main__":
    main()
