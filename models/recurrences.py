#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small recurrent networks over many steps, and what torch computes with them.

usage: recurrences.py FOLDER [NAME ...]        FOLDER/NAME.pt2 and NAME.npz (calib0, expected0, expected1, ...)

Needs torch 2.6 or newer. The results are in tests/data/recurrences.
"""
import sys

import torch
from torch import nn

from control_flow import export_cases

INPUTS, HIDDEN = 6, 8


class Recurrence(nn.Module):
    """A recurrent layer, a linear one behind each step, and the last state."""

    def __init__(self, kind, **options):
        super().__init__()
        self.layer = kind(INPUTS, HIDDEN, **options)
        width = options.get("proj_size") or HIDDEN
        self.head = nn.Linear(2 * width if options.get("bidirectional") else width, 3)

    def forward(self, x):
        y, state = self.layer(x)
        return (self.head(y), *state) if isinstance(state, tuple) else (self.head(y), state)


def waves(steps, batch=1, batch_first=False, count=2):
    """Samples of waves of several speeds and sizes."""
    phases = torch.arange(batch * INPUTS).float().reshape(1, batch, INPUTS)
    samples = []
    for i in range(count):
        x = torch.sin(torch.arange(steps).float()[:, None, None] * (0.05 + 0.02 * i) + phases) * (0.6 + 0.3 * i)
        x = x + 0.1 * torch.randn(steps, batch, INPUTS)
        samples.append(x.transpose(0, 1).contiguous() if batch_first else x)
    return torch.stack(samples)


def cases():
    return {
        "gru": (Recurrence(nn.GRU), waves(120)),
        # Two layers whose time steps do not fill whole chunks.
        "lstm_deep": (Recurrence(nn.LSTM, num_layers=2), waves(113)),
        "lstm_projected": (Recurrence(nn.LSTM, proj_size=4), waves(100)),
        "gru_both_ways": (Recurrence(nn.GRU, num_layers=2, bidirectional=True), waves(131)),
        "rnn_batch_first": (Recurrence(nn.RNN, batch_first=True), waves(150, batch=2, batch_first=True)),
        "relu_batch_first": (Recurrence(nn.RNN, nonlinearity="relu", bidirectional=True, batch_first=True),
                             waves(107, batch_first=True)),
        "short": (Recurrence(nn.GRU), waves(12)),
        # No two iterations of its loop are alike.
        "long_noise": (Recurrence(nn.RNN), torch.rand(1, 2200, 1, INPUTS) * 2 - 1),
    }


if __name__ == "__main__":
    torch.manual_seed(11)
    export_cases(sys.argv[1], sys.argv[2:], {name: (module, [samples]) for name, (module, samples) in cases().items()})
