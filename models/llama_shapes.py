#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports decoders with the shapes of known language models and random weights: for questions of memory, cycles and
compile time. Nothing is downloaded: the configurations stand here.

usage: llama_shapes.py MODEL OUT_DIR [--context N] [--layers N]

MODEL is smollm2-135m or qwen-0.5b. Writes MODEL.pt2 (one token a call; keys and values of all tokens so far are state) and MODEL.npz
with calibration samples (calib0: a token, calib1: its position). The archives take four bytes a weight: keep them out of
the repository. Needs torch >= 2.9 (Debian: python3-torch).
"""
import argparse
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# From the published config.json of HuggingFaceTB/SmolLM2-135M and Qwen/Qwen2.5-0.5B.
CONFIGURATIONS = {
    "smollm2-135m": dict(vocabulary=49152, width=576, layers=30, heads=9, kv_heads=3, inner=1536, theta=100000.0, bias=False, tied=True),
    "qwen-0.5b": dict(vocabulary=151936, width=896, layers=24, heads=14, kv_heads=2, inner=4864, theta=1000000.0, bias=True, tied=True),
}


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weight


class Layer(nn.Module):
    def __init__(self, c, context):
        super().__init__()
        self.heads, self.kv, self.size = c["heads"], c["kv_heads"], c["width"] // c["heads"]
        width, kv = c["width"], self.kv * self.size
        self.before, self.behind = Norm(width), Norm(width)
        self.q, self.k, self.v = nn.Linear(width, width, c["bias"]), nn.Linear(width, kv, c["bias"]), nn.Linear(width, kv, c["bias"])
        self.o = nn.Linear(width, width, False)
        self.gate, self.up, self.down = nn.Linear(width, c["inner"], False), nn.Linear(width, c["inner"], False), nn.Linear(c["inner"], width, False)
        self.register_buffer("keys", torch.zeros(self.kv, context, self.size))
        self.register_buffer("values", torch.zeros(self.kv, context, self.size))

    def forward(self, x, position, cos, sin, mask):
        def turn(y):
            half = self.size // 2
            return y * cos + torch.cat([-y[..., half:], y[..., :half]], -1) * sin

        y = self.before(x)
        q = turn(self.q(y).view(self.heads, 1, self.size))
        self.keys.index_copy_(1, position, turn(self.k(y).view(self.kv, 1, self.size)))
        self.values.index_copy_(1, position, self.v(y).view(self.kv, 1, self.size))
        group = self.heads // self.kv
        scores = q.view(self.kv, group, self.size) @ self.keys.transpose(1, 2) * self.size**-0.5 + mask
        mixed = torch.softmax(scores, -1) @ self.values
        x = x + self.o(mixed.reshape(1, -1))
        y = self.behind(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self, c, context):
        super().__init__()
        self.embedding = nn.Embedding(c["vocabulary"], c["width"])
        self.layers = nn.ModuleList(Layer(c, context) for _ in range(c["layers"]))
        self.norm, self.head = Norm(c["width"]), nn.Linear(c["width"], c["vocabulary"], False)
        if c["tied"]:
            self.head.weight = self.embedding.weight
        size = c["width"] // c["heads"]
        angles = torch.arange(context)[:, None] / c["theta"] ** (torch.arange(0, size, 2)[None] / size)
        angles = torch.cat([angles, angles], -1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("masks", torch.triu(torch.full((context, context), -100.0), 1))

    def forward(self, token, position):
        x = self.embedding(token)
        cos, sin, mask = self.cos[position], self.sin[position], self.masks[position]
        for layer in self.layers:
            x = layer(x, position, cos, sin, mask)
        return self.head(self.norm(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=CONFIGURATIONS)
    parser.add_argument("out")
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--layers", type=int)
    options = parser.parse_args()
    torch.manual_seed(1)
    configuration = dict(CONFIGURATIONS[options.model])
    configuration["layers"] = options.layers or configuration["layers"]
    model = Decoder(configuration, options.context).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 0.02)
    program = torch.export.export(model, (torch.tensor([1]), torch.tensor([0])))
    os.makedirs(options.out, exist_ok=True)
    torch.export.save(program, os.path.join(options.out, options.model + ".pt2"))
    tokens = np.random.default_rng(1).integers(0, configuration["vocabulary"], (4, 1))
    np.savez(os.path.join(options.out, options.model + ".npz"), calib0=tokens, calib1=np.arange(4)[:, None])
    print(f"{sum(p.numel() for p in model.parameters()):,} weights")


if __name__ == "__main__":
    main()
