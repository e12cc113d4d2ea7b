#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the digit classifier of `make demo` on scikit-learn's 8x8 handwritten digits and exports it.

usage: digits8.py OUT_DIR     writes digits8.pt2, digits8.npz and digits8_eval.npz

digits8.npz: in0, out0 (one sample and the float result), calib0 (64 training images).
digits8_eval.npz: in0 (200 held-back digits), labels, float_top1 (the float network's accuracy on them).
Needs torch >= 2.9 and scikit-learn (Debian: python3-torch, python3-sklearn).
"""
import os
import sys

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn


class Block(nn.Module):
    """Depthwise separable convolution with a residual connection."""

    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.pointwise = nn.Conv2d(channels, channels, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = torch.relu(self.norm1(self.depthwise(x)))
        return torch.relu(x + self.norm2(self.pointwise(y)))


class Digits8(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU6())
        self.block1 = Block(16)
        self.down = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU())
        self.block2 = Block(32)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classify = nn.Linear(32, 10)

    def forward(self, x):
        x = self.block2(self.down(self.block1(self.stem(x))))
        return self.classify(self.pool(x).flatten(1))


def main():
    out_dir = sys.argv[1]
    torch.manual_seed(7)
    torch.set_num_threads(1)
    digits = load_digits()
    images = torch.tensor(digits.images / 8.0 - 1.0, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(7))
    train, held = order[200:], order[:200]

    model = Digits8()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    epochs, batch = 30, 64
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        model.train()
        for chunk in train[torch.randperm(len(train))].split(batch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[chunk]), labels[chunk]).backward()
            optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        top1 = (model(images[held]).argmax(1) == labels[held]).float().mean().item()
        example = images[held[:1]]
        expected = model(example)
    print(f"float top-1 on {len(held)} held-back digits: {100 * top1:.1f} %")

    torch.export.save(torch.export.export(model, (example,)), os.path.join(out_dir, "digits8.pt2"))
    np.savez(os.path.join(out_dir, "digits8.npz"), in0=example.numpy(), out0=expected.numpy(),
             calib0=images[train[:64]].numpy())
    np.savez(os.path.join(out_dir, "digits8_eval.npz"), in0=images[held].numpy(), labels=labels[held].numpy(),
             float_top1=np.float32(top1))


if __name__ == "__main__":
    main()
