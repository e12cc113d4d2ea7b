#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports transformer encoders with random weights whose norms have weights e^s, s from a normal distribution: how folding
such weights into the layers that follow changes the accuracy (docs/quantization.md).

usage: scaled_norms.py OUT_DIR

Writes DEVIATION_SEED.pt2 and .npz (eight calibration samples) for three standard deviations of s and eight seeds each.
Needs torch >= 2.9 (Debian: python3-torch).
"""
import os
import sys

import numpy as np
import torch
from torch import nn

DEVIATIONS = (0.65, 1.0, 1.3)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.embedding, self.norm, self.head = nn.Linear(24, 64), nn.LayerNorm(64), nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.norm(self.layers(self.embedding(x))))


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    for deviation in DEVIATIONS:
        for seed in range(8):
            torch.manual_seed(seed)
            network = Encoder().eval()
            for module in network.modules():
                if isinstance(module, nn.LayerNorm):
                    module.weight.data = torch.exp(deviation * torch.randn(64))
                    module.bias.data = 0.2 * torch.randn(64)
            samples = [torch.randn(1, 16, 24) for _ in range(8)]
            name = os.path.join(out, f"{deviation}_{seed}")
            torch.export.save(torch.export.export(network, (samples[0],)), name + ".pt2")
            np.savez(name + ".npz", calib0=np.stack([sample.numpy() for sample in samples]))


if __name__ == "__main__":
    main()
