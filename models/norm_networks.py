#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the networks with norms whose cycles docs/benchmarks.md compares: untrained, but with random norms, too.

usage: norm_networks.py OUT_DIR     writes NAME.pt2 and NAME.npz (calib0: four samples) for each

Needs torch >= 2.9 and torchvision (Debian: python3-torch, python3-torchvision).
"""
import os
import sys

import numpy as np
import torch
import torchvision
from torch import nn
from torch.nn import functional as F


def norm_silu(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(2, outputs), nn.SiLU())


class UNet(nn.Module):
    """Two levels down and up, with group norms."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.bottom = norm_silu(1, 8), norm_silu(8, 16), norm_silu(16, 32)
        self.up_second, self.up_first = nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 3, 2, 1, 1)
        self.join_second, self.join_first = norm_silu(32, 16), norm_silu(16, 8)
        self.classes = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        first = self.first(x)
        second = self.second(F.avg_pool2d(first, 2))
        up = self.up_second(self.bottom(F.max_pool2d(second, 2)))
        up = self.up_first(self.join_second(torch.cat([up, second], 1)))
        return self.classes(self.join_first(torch.cat([up, first], 1))).softmax(1)


class InstanceNormed(nn.Module):
    """A convolution with instance norm and PReLU, squeeze and excitation, and a pool of uneven windows."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.act = nn.Conv2d(3, 24, 3, 2, 1), nn.InstanceNorm2d(24, affine=True), nn.PReLU(24)
        self.squeeze, self.excite = nn.Conv2d(24, 6, 1), nn.Conv2d(6, 24, 1)

    def forward(self, x):
        x = self.act(self.norm(self.conv(x)))
        scale = F.hardsigmoid(self.excite(F.relu6(self.squeeze(F.adaptive_avg_pool2d(x, 1)))))
        return F.adaptive_max_pool2d(x * scale, (3, 5))


class EncoderDecoder(nn.Module):
    """One layer of each kind."""

    def __init__(self):
        super().__init__()
        self.transformer = nn.Transformer(32, 4, 1, 1, 64, batch_first=True)

    def forward(self, x):
        return self.transformer(x, x * 0.5)


class Picture(nn.Module):
    """A network that normalizes its own pictures."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))
        self.conv = nn.Conv2d(3, 16, 3, 2, 1)

    def forward(self, x):
        return F.relu(self.conv((x - self.mean) / self.std))


class Bottleneck(nn.Module):
    """1x1, depthwise 3x3 and 1x1, with PReLU behind the first two."""

    def __init__(self, inputs, outputs, stride, inside):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, inside, 1, bias=False), nn.BatchNorm2d(inside), nn.PReLU(inside),
            nn.Conv2d(inside, inside, 3, stride, 1, groups=inside, bias=False), nn.BatchNorm2d(inside), nn.PReLU(inside),
            nn.Conv2d(inside, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.layers(x)
        return x + y if self.adds else y


class MobileFaceNet(nn.Module):
    """The layers of MobileFaceNet (Chen et al., 2018), with slopes between 0 and 0.6."""

    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, 64, 3, 2, 1, bias=False), nn.BatchNorm2d(64), nn.PReLU(64),
                  nn.Conv2d(64, 64, 3, 1, 1, groups=64, bias=False), nn.BatchNorm2d(64), nn.PReLU(64)]
        for inputs, outputs, stride, inside, count in ((64, 64, 2, 128, 1), (64, 64, 1, 128, 4), (64, 128, 2, 256, 1),
                                                       (128, 128, 1, 256, 6), (128, 128, 2, 512, 1),
                                                       (128, 128, 1, 256, 2)):
            layers += [Bottleneck(inputs, outputs, stride, inside) for _ in range(count)]
        layers += [nn.Conv2d(128, 512, 1, bias=False), nn.BatchNorm2d(512), nn.PReLU(512),
                   nn.Conv2d(512, 512, 7, groups=512, bias=False), nn.BatchNorm2d(512), nn.Flatten(),
                   nn.Linear(512, 128), nn.BatchNorm1d(128)]
        self.layers = nn.Sequential(*layers)
        for module in self.modules():
            if isinstance(module, nn.PReLU):
                module.weight.data.uniform_(0, 0.6)

    def forward(self, x):
        return self.layers(x)


def with_statistics(model, shape):
    """Batch norms as after a few batches."""
    model.train()
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(16, *shape))
    return model


NETWORKS = {
    "deit_ti": (lambda: torchvision.models.VisionTransformer(224, 16, 12, 3, 192, 768), (3, 224, 224)),
    "convnext_t": (lambda: torchvision.models.convnext_tiny(weights=None), (3, 64, 64)),
    "encoder_decoder": (EncoderDecoder, (16, 32)),
    "unet": (UNet, (1, 64, 64)),
    "instance_normed": (InstanceNormed, (3, 32, 32)),
    "picture": (Picture, (3, 96, 96)),
    "mobilefacenet": (lambda: with_statistics(MobileFaceNet(), (3, 112, 112)), (3, 112, 112)),
}


def main():
    for name, (make, shape) in NETWORKS.items():
        torch.manual_seed(1)
        model = make().eval()
        for module in model.modules():
            if isinstance(module, (nn.GroupNorm, nn.LayerNorm, nn.InstanceNorm2d)):
                module.weight.data.uniform_(0.5, 1.5)
                module.bias.data.normal_(0, 0.3)
        samples = torch.rand(4, *shape) if name == "picture" else torch.randn(4, *shape)
        path = os.path.join(sys.argv[1], name)
        torch.export.save(torch.export.export(model, (samples[:1],)), path + ".pt2")
        np.savez(path + ".npz", calib0=samples.numpy())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
