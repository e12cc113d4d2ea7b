#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports front ends of audio networks, from samples to features, for scripts/check_networks.py.

usage: audio_front_ends.py OUT_DIR [NAME ...]

The samples are a quarter of a second of synthetic voices: harmonics that swell and fade over a faint noise, with a hundred
times as much power in loud frames as in quiet ones, and again in low bands as in high ones. NAME.npz next to an archive holds
an input in0, the features out0 that torch computed, and calibration samples calib0. Needs torch >= 2.9, torchaudio and NumPy.
"""
import os
import sys
import warnings

import numpy as np
import torch
import torchaudio.transforms as transforms
from torch import nn

RATE, SAMPLES = 16000, 4
WINDOWS = {"n_fft": 400, "hop_length": 160}
BANDS = {"n_mels": 40, **WINDOWS}


class FrontEnd(nn.Module):
    def __init__(self, transform, features=lambda x: x):
        super().__init__()
        self.transform, self.features = transform, features

    def forward(self, x):
        return self.features(self.transform(x))


def normed(x):
    x = torch.log(x + 1e-6)
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)


def whisper(x):
    x = x.clamp(min=1e-10).log10()
    return (torch.maximum(x, x.max() - 8) + 4) / 4


FRONT_ENDS = {
    "log_mel": lambda: FrontEnd(transforms.MelSpectrogram(RATE, **BANDS), lambda x: torch.log(x + 1e-6)),
    "log1p_mel": lambda: FrontEnd(transforms.MelSpectrogram(RATE, **BANDS), lambda x: torch.log1p(1000 * x)),
    "decibels": lambda: FrontEnd(nn.Sequential(transforms.MelSpectrogram(RATE, **BANDS), transforms.AmplitudeToDB(top_db=80))),
    "whisper": lambda: FrontEnd(transforms.MelSpectrogram(RATE, **BANDS), whisper),
    "normed_log_mel": lambda: FrontEnd(transforms.MelSpectrogram(RATE, **BANDS), normed),
    "mfcc": lambda: FrontEnd(transforms.MFCC(RATE, n_mfcc=13, melkwargs=BANDS)),
    "mfcc_of_logs": lambda: FrontEnd(transforms.MFCC(RATE, n_mfcc=13, log_mels=True, melkwargs=BANDS)),
    "lfcc": lambda: FrontEnd(transforms.LFCC(RATE, n_filter=40, n_lfcc=13, speckwargs=WINDOWS)),
    "log_power": lambda: FrontEnd(transforms.Spectrogram(power=2, **WINDOWS), lambda x: torch.log(x + 1e-6)),
    "log_magnitude": lambda: FrontEnd(transforms.Spectrogram(power=1, **WINDOWS), lambda x: torch.log(x + 1e-3)),
}


def voice(count=4000):
    time = torch.arange(count) / RATE
    pitch = 100 + 100 * torch.rand(1)
    harmonics = sum(torch.sin(2 * np.pi * pitch * k * time + 6 * torch.rand(1)) / k**1.2 for k in range(1, 25))
    swell = torch.sin(2 * np.pi * (3 + 3 * torch.rand(1)) * time + 6 * torch.rand(1)).clamp(min=0) ** 2
    return (0.2 * harmonics * swell + 0.002 * torch.randn(count))[None]


def main():
    folder, names = sys.argv[1], sys.argv[2:] or FRONT_ENDS
    os.makedirs(folder, exist_ok=True)
    for name in names:
        torch.manual_seed(0)
        network = FRONT_ENDS[name]().eval()
        samples = torch.stack([voice() for _ in range(SAMPLES)])
        torch.export.save(torch.export.export(network, (samples[0],), strict=False), os.path.join(folder, name + ".pt2"))
        np.savez(os.path.join(folder, name + ".npz"), in0=samples[0].numpy(), calib0=samples.numpy(),
                 out0=network(samples[0]).numpy())


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(FRONT_ENDS):
        sys.exit(__doc__)
    main()
