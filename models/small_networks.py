#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the small untrained networks that the tests compile for every target.

usage: small_networks.py OUT_DIR     writes NAME.pt2 and NAME.npz (in*, out* in eager mode, calib* samples) for each

Needs torch >= 2.9 (Debian: python3-torch).
"""
import os
import sys

import numpy as np
import torch
from torch import nn


def conv_norm(inputs, outputs, kernel, stride=1, groups=1, act=None):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, act) if act else nn.Sequential(*layers)


class InvertedResidual(nn.Module):
    """MobileNetV2's block: expand, depthwise, project, add."""

    def __init__(self, inputs, outputs, stride, expand):
        super().__init__()
        hidden = inputs * expand
        self.same = stride == 1 and inputs == outputs
        self.conv = nn.Sequential(conv_norm(inputs, hidden, 1, act=nn.ReLU6()),
                                  conv_norm(hidden, hidden, 3, stride, hidden, nn.ReLU6()), conv_norm(hidden, outputs, 1))

    def forward(self, x):
        return x + self.conv(x) if self.same else self.conv(x)


class Mobile(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv_norm(3, 16, 3, 2, act=nn.ReLU6()), InvertedResidual(16, 24, 2, 4),
                                      InvertedResidual(24, 24, 1, 4), InvertedResidual(24, 40, 1, 4))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(40, 12))

    def forward(self, x):
        return self.classifier(nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1)).flatten(1))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = conv_norm(3, 16, 3, act=nn.ReLU(inplace=True))
        self.a = conv_norm(16, 32, 3, 2, act=nn.ReLU())
        self.b = conv_norm(32, 32, 3)
        self.skip = nn.Conv2d(16, 32, 1, 2)
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = self.stem(x)
        x = torch.relu(self.b(self.a(x)) + self.skip(x))
        return self.fc(nn.functional.avg_pool2d(x, x.shape[-1]).flatten(1))


class Mixed(nn.Module):
    """Concatenation, max pool, grouped and asymmetric kernels, odd sizes."""

    def __init__(self):
        super().__init__()
        self.left = nn.Conv2d(5, 16, (1, 5), padding=(0, 2))
        self.right = nn.Conv2d(5, 8, (3, 3), stride=1, padding=1)
        self.grouped = nn.Conv2d(24, 18, 3, groups=2)
        self.last = nn.Conv2d(18, 7, 1)

    def forward(self, x):
        x = torch.cat([torch.relu(self.left(x)), self.right(x)], 1)
        x = nn.functional.max_pool2d(x, 2)
        return self.last(torch.relu(self.grouped(x))).mean((2, 3))


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(60, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8), nn.ReLU(),
                                    nn.Linear(8, 60))

    def forward(self, x):
        return self.layers(x)


def warm_up(model, shape):
    """Gives the batch norms statistics that are not the identity."""
    model.train()
    with torch.no_grad():
        for _ in range(4):
            model(torch.randn(16, *shape[1:]))
    return model.eval()


def main():
    out_dir = sys.argv[1]
    networks = {"mobile": (Mobile, (1, 3, 32, 32)), "residual": (Residual, (1, 3, 16, 16)),
                "mixed": (Mixed, (1, 5, 13, 17)), "dense": (Dense, (1, 60))}
    for name, (network, shape) in networks.items():
        torch.manual_seed(11)
        model = warm_up(network(), shape)
        example = torch.randn(shape)
        with torch.no_grad():
            expected = model(example)
        torch.export.save(torch.export.export(model, (example,)), os.path.join(out_dir, name + ".pt2"))
        np.savez(os.path.join(out_dir, name + ".npz"), in0=example.numpy(), out0=expected.numpy(),
                 calib0=torch.randn(8, *shape).numpy())


if __name__ == "__main__":
    main()
