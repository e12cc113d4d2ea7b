# SPDX-License-Identifier: Apache-2.0
"""Random numbers of the networks that tflite_operators.py makes, and names for numbers of the format."""
import zlib

import numpy as np

from tflite_file import Quantization

SAME_PADDING = 0
VALID_PADDING = 1
NO_ACTIVATION, RELU, RELU_N1_TO_1, RELU6, TANH = range(5)
NO_TENSOR = -1


class Draw:
    """The random numbers of one network."""

    def __init__(self, case, seed):
        self.rng = np.random.default_rng(zlib.crc32(f"{case}{seed}".encode()))

    def number(self, low, high):
        """An integer from low to high - 1."""
        return int(self.rng.integers(low, high))

    def numbers(self, low, high, shape):
        return self.rng.integers(low, high, shape)

    def real(self, low, high):
        return float(self.rng.uniform(low, high))

    def flag(self):
        return bool(self.rng.integers(0, 2))

    def one_of(self, values):
        return self.rng.choice(values).item()

    def scale(self, low=0.002, high=0.2):
        return float(np.float32(np.exp(self.rng.uniform(np.log(low), np.log(high)))))

    def zero_point(self, type_):
        if type_ == "u8":
            return self.number(0, 256)
        return self.number(-128, 128) if type_ == "i8" else 0

    def quantization(self, type_):
        scale = self.scale()
        return Quantization(scale, self.zero_point(type_))

    def weight_scales(self, count):
        return np.array([self.scale(0.001, 0.02) for _ in range(count)], np.float32)

    def filter_scales(self, type_, count):
        """A scale for each output channel, or one for all, which is all that uint8 may have."""
        return self.weight_scales(1 if type_ == "u8" or not self.flag() else count)

    def activation(self):
        return self.one_of([NO_ACTIVATION, NO_ACTIVATION, RELU, RELU_N1_TO_1, RELU6])

    def type(self):
        return self.one_of(["i8", "i8", "i16"])
