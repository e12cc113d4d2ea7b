#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the network that the options for camera-ready inputs and outputs are tested with: a picture and six numbers
in, a map and class scores out. No layer that reads the picture pads.

usage: camera_network.py OUT_DIR     writes scene.pt2 and scene.npz: frames (uint8, NCHW) and numbers, and what PyTorch
                                     makes of (frame / 255 - MEAN) / STD: map and scores

Needs torch >= 2.9 (Debian: python3-torch).
"""
import os
import sys

import numpy as np
import torch
from torch import nn

MEAN = (0.5, 0.25, 0.375)
STD = (0.25, 0.5, 0.125)
FRAMES = 8


class Scene(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3)
        self.map = nn.Conv2d(8, 4, 1)
        self.scores = nn.Linear(8 + 6, 10)

    def forward(self, picture, numbers):
        x = torch.relu(self.first(picture))
        return self.map(x), self.scores(torch.cat([x.mean((2, 3)), numbers], 1))


def main():
    out_dir = sys.argv[1]
    torch.manual_seed(18)
    model = Scene().eval()
    with torch.no_grad():
        model.scores.weight.mul_(4)  # makes the classes differ
    # Frames with different tints, so that the samples have different classes.
    tint = torch.randint(0, 200, (FRAMES, 1, 3, 1, 1))
    frames = (tint + torch.randint(0, 56, (FRAMES, 1, 3, 16, 16))).to(torch.uint8)
    numbers = torch.randn(FRAMES, 1, 6)
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))
    pictures = (frames.float() / 255 - mean) / std
    with torch.no_grad():
        results = [model(*sample) for sample in zip(pictures, numbers)]
    torch.export.save(torch.export.export(model, (pictures[0], numbers[0])), os.path.join(out_dir, "scene.pt2"))
    np.savez(os.path.join(out_dir, "scene.npz"), frames=frames.numpy(), numbers=numbers.numpy(),
             map=torch.stack([r[0] for r in results]).numpy(), scores=torch.stack([r[1] for r in results]).numpy())


if __name__ == "__main__":
    main()
