#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the larger networks whose cycles docs/benchmarks.md compares: networks of torchvision and single encoder blocks of transformers, untrained, but with random norms.

usage: large_networks.py OUT_DIR     writes NAME.pt2 and NAME.npz (calib0: two samples) for each

Needs torch >= 2.6 and torchvision (Debian: python3-torch, python3-torchvision).
"""
import os
import sys

import numpy as np
import torch
import torchvision
from torch import nn

NETWORKS = ["resnet50", "mobilenet_v3_large", "efficientnet_b0", "squeezenet1_1", "shufflenet_v2_x1_0", "mnasnet1_0", "regnet_y_400mf",
            "densenet121", "googlenet"]

# name: tokens, width, heads, width of the hidden layers
BLOCKS = {
    "vit_b_block": (197, 768, 12, 3072),
    "deit_s_block": (197, 384, 6, 1536),
    "deit_ti_block": (197, 192, 3, 768),
    "bert_base_block": (128, 768, 12, 3072),
    "gpt_64": (64, 512, 8, 2048),
}


def image_network(name):
    options = {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
    model = getattr(torchvision.models, name)(weights=None, **options)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            nn.init.uniform_(module.weight, 0.5, 1.5)
    return model


def save(folder, name, model, samples):
    program = torch.export.export(model.eval(), (samples[:1],))
    torch.export.save(program, os.path.join(folder, name + ".pt2"))
    np.savez(os.path.join(folder, name + ".npz"), calib0=samples.numpy())
    print(name)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(0)
    image = torch.randn(2, 3, 224, 224)
    for name in NETWORKS:
        save(folder, name, image_network(name), image)
    for name, (tokens, width, heads, middle) in BLOCKS.items():
        block = torchvision.models.vision_transformer.EncoderBlock(heads, width, middle, 0.0, 0.0)
        save(folder, name, block, torch.randn(2, tokens, width))
    # Windows of 7 x 7 tokens: the first stage at half size, and two blocks of the third.
    features = torchvision.models.swin_t(weights=None).features
    save(folder, "swin_t_stage", nn.Sequential(features[0], features[1]), torch.randn(2, 3, 112, 112))
    save(folder, "swin_t_late", features[5][:2], torch.randn(2, 14, 14, 384))
    # A single large layer.
    save(folder, "linear_3072_768", nn.Linear(3072, 768), torch.randn(2, 197, 3072))


if __name__ == "__main__":
    main()
