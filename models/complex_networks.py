#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the torch.export archives with complex numbers and Fourier transforms that the reader's tests use.

usage: complex_networks.py OUT_DIR

Needs torch >= 2.9 and NumPy (Debian: python3-torch, python3-numpy). NAME.npz next to an archive holds inputs in0.. and the
results out0.. that torch computed, complex numbers as pairs of real ones. NAME_decomposed.pt2 is the same program after
run_decompositions().
"""
import os
import sys
import zipfile

import numpy as np
import torch
from torch import nn


class Transforms(nn.Module):
    """Every transform of torch.fft, with lengths, dimensions and norms."""

    def forward(self, x):
        fft = torch.fft
        spectrum = fft.rfft2(x, norm="ortho")
        return (fft.fft(x, n=12, dim=1).abs(), fft.fft(x, n=5, norm="forward").real, fft.fftn(x, dim=(0, 1)).imag,
                fft.fft2(x, s=(4, 12)).real, fft.irfft2(spectrum, s=x.shape[1:], norm="ortho"), fft.rfft(x, n=7),
                fft.irfft(fft.rfft(x, dim=1), n=9, dim=1), fft.irfftn(fft.rfftn(x)), fft.hfft(fft.ihfft(x), n=10),
                fft.ifft2(fft.ifftshift(fft.fftshift(fft.fft2(x)), dim=-1)).real, fft.ifftn(x, s=(3, 4)).imag)


class Arithmetic(nn.Module):
    """Complex inputs, parameters, numbers and results."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 6, dtype=torch.cfloat))
        self.bias = nn.Parameter(torch.randn(6, dtype=torch.cfloat))
        self.register_buffer("turn", torch.polar(torch.ones(5), torch.linspace(0, 1, 5)))
        self.register_buffer("column", torch.randn(4, 3, dtype=torch.cfloat)[:, 1])

    def forward(self, z, x):
        product = torch.matmul(z * self.turn, self.weight) + self.bias
        moved = torch.cat([z.transpose(0, 1).reshape(5, 4), x.expand(5, 4)], 1)[:, 1:6].contiguous()
        mixed = torch.where(x > 0, 2 * z, z / (1j + x)) - 1j * z.conj()
        written = torch.zeros(4, 5, dtype=torch.cfloat)
        written[:, 1:3] = z[:, :2]
        written[1] = x[0, 0]
        written *= 2 - 1j
        pairs = torch.view_as_real(torch.einsum("ij,kj->ik", z, self.turn.expand(2, 5)))
        quotient = (1 - z) / (z * z + 3)
        return (product, moved, mixed, written, pairs, quotient, torch.exp(0.1 * z), torch.log(z + 3).real,
                torch.complex(x, x * x).angle(), z.abs()**2, z.reciprocal() + z**2, (z.T @ self.column).sum(),
                torch.nn.functional.linear(z, self.weight.T, self.bias).imag, x - z)


class Frames(nn.Module):
    """Spectrograms and their inverses, with all kinds of windows."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(24))

    def forward(self, x):
        spectrum = torch.stft(x, 24, 6, window=self.window, return_complex=True)
        narrow = torch.stft(x[0], 20, 15, win_length=13, window=torch.hamming_window(13, False), center=False,
                            normalized=True, onesided=False, return_complex=True)
        plain = torch.stft(x, 16, return_complex=True, pad_mode="constant")
        blackman, kaiser = torch.blackman_window(16), torch.kaiser_window(16, False, 5.0)
        windowed = torch.stft(x, 16, 8, window=blackman * kaiser + torch.bartlett_window(16), return_complex=True)
        return (spectrum.abs()**2, torch.istft(spectrum * 0.5, 24, 6, window=self.window), narrow,
                torch.istft(plain, 16, length=50), torch.istft(windowed[0], 16, 8, window=kaiser, length=60))


class MelSpectrogram(nn.Module):
    """A classifier's front end: the logarithms of a power spectrum and of 20 bands of it. For docs/complex-numbers.md."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(256))
        edges = 700 * (torch.logspace(0, 1, 22, base=1 + 8000 / 700) - 1) / 8000 * 128
        rising = (torch.arange(129)[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
        falling = (edges[2:] - torch.arange(129)[:, None]) / (edges[2:] - edges[1:-1])
        self.register_buffer("bands", torch.minimum(rising, falling).clamp(min=0))
        self.classes = nn.Linear(20, 8)

    def forward(self, x):
        power = torch.stft(x, 256, 128, window=self.window, return_complex=True).abs()**2
        mel = torch.log(power.transpose(1, 2) @ self.bands + 1e-3)
        return torch.log(power + 1e-3), self.classes(mel)


NETWORKS = {
    "complex_transforms": (Transforms, lambda: (torch.randn(2, 6, 8),)),
    "complex_arithmetic": (Arithmetic, lambda: (torch.randn(4, 5, dtype=torch.cfloat), torch.randn(1, 1))),
    "mel_spectrogram": (MelSpectrogram, lambda: (torch.randn(1, 1600),)),
    "complex_frames": (Frames, lambda: (torch.randn(2, 60),)),
}


def real(tensor):
    return (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).detach().numpy()


def compress(path):
    with zipfile.ZipFile(path) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in members:
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), contents, zipfile.ZIP_DEFLATED)


def main():
    out = sys.argv[1]
    for name, (network, inputs) in NETWORKS.items():
        torch.manual_seed(1)
        model, args = network().eval(), inputs()
        arrays = {f"in{i}": real(a) for i, a in enumerate(args)}
        with torch.no_grad():
            arrays.update({f"out{i}": real(r) for i, r in enumerate(model(*args))})
        program = torch.export.export(model, args)
        for kind in ("", "_decomposed"):
            path = os.path.join(out, name + kind)
            torch.export.save(program.run_decompositions() if kind else program, path + ".pt2")
            compress(path + ".pt2")
            np.savez_compressed(path + ".npz", **arrays)


if __name__ == "__main__":
    main()
