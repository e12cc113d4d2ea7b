#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the small networks with torch.cond and torch.while_loop that tests of control flow use.

usage: control_flow.py OUT_DIR [NAME...]

Needs torch >= 2.9 and NumPy (Debian: python3-torch, python3-numpy). NAME.npz next to an archive holds samples on the leading
axis, calib0.. for the inputs and expected0.. for what torch computed; each branch is taken by some sample.
The cond_* and while_* networks do what the operator tests of ExecuTorch's Arm backend do; the others are larger.
"""
import os
import sys

import numpy as np
import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop

torch.manual_seed(1)
loop = torch.ops.higher_order.while_loop


class Cond(nn.Module):
    """One choice by the sign of a sum."""

    def __init__(self, yes, no, score=lambda *inputs: inputs[0].sum()):
        super().__init__()
        self.yes, self.no, self.score = yes, no, score

    def forward(self, *inputs):
        return torch.cond(self.score(*inputs) > 0, self.yes, self.no, list(inputs))


class CondWithout(nn.Module):
    """Branches that take nothing."""

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda: torch.zeros(10), lambda: torch.ones(10), [])


class CondBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("offset", torch.rand(1, 1, 2, 2))

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a, b: a.sin() + b, lambda a, b: a.cos() + b, [x, self.offset])


class CondNested(nn.Module):
    def forward(self, x):
        def outer(a):
            return torch.cond(a.mean() > 0.5, lambda b: b + torch.full((1,), 1.0), lambda b: b - torch.full((1,), 1.0), [a])

        return torch.cond(x.sum() > 0, outer, lambda a: a * torch.full((1,), 2.0), [x])


class CondTwice(nn.Module):
    """A choice about the result of a choice."""

    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda a: a.sigmoid(), lambda a: a.relu(), [x])
        return torch.cond(y.mean() > 0.4, lambda a: a.sin(), lambda a: a.cos(), [y])


class While(nn.Module):
    """Doubles x until its sum reaches a limit, which is carried along or only read."""

    def __init__(self, limit, carried, results):
        super().__init__()
        self.carried, self.results = carried, results
        self.register_buffer("limit", torch.tensor((limit,)))

    def forward(self, x):
        def test(value, limit):
            return torch.lt(value.sum(), limit).squeeze()

        if self.carried:
            out = loop(test, lambda value, limit: (value + value, limit.clone()), (x, self.limit), ())
        else:
            out = loop(test, lambda value, limit: (value + value,), (x,), (self.limit,))
        return out[0] if self.results == 1 else out


class WhileTwo(nn.Module):
    """No turn at all where the sum of y is not positive."""

    def forward(self, x, y):
        def test(a, b):
            total = torch.sum(b)
            return torch.gt(total, torch.zeros_like(total)).squeeze()

        return loop(test, lambda a, b: (a + b, b - torch.full((1,), 1.0)), (x, y), ())


class WhileHalving(nn.Module):
    def forward(self, x):
        def test(a):
            return torch.gt(a.sum(), torch.full((1,), 60.0)).squeeze()

        return loop(test, lambda a: (a / torch.full((1,), 2.0),), (x,), ())[0]


class Experts(nn.Module):
    """A convolution, then one of two networks whose weights the branches capture."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.wide = nn.Conv2d(8, 8, 3, padding=1)
        self.narrow = nn.Conv2d(8, 8, 1)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        y = torch.relu(self.stem(x))
        z = torch.cond(y.mean() > 0.06, lambda a: torch.relu(self.wide(a)), lambda a: torch.relu(self.narrow(a) + 0.5), (y,))
        return self.head(z.mean((2, 3)))


class Refine(nn.Module):
    """A recurrent step with weights, run a number of times that is an input; a counter, and two values that swap."""

    def __init__(self):
        super().__init__()
        self.step = nn.Linear(6, 6)

    def forward(self, x, turns):
        def test(i, a, b):
            return i < turns[0]

        def body(i, a, b):
            return i + 1, torch.tanh(self.step(b)), a.clone()

        i = torch.zeros((), dtype=torch.int64)
        _, a, b = while_loop(test, body, (i, x, torch.zeros_like(x)))
        return a, b


class Search(nn.Module):
    """A loop with a choice in it, inside of a choice."""

    def forward(self, x):
        def search(a):
            def test(i, v):
                return torch.logical_and(i < 8, v.abs().max() > 0.1)

            def body(i, v):
                w = torch.cond(v.sum() > 0, lambda u: u * 0.5 - 0.125, lambda u: u * 0.25 + 0.0625, [v])
                return i + 1, w

            return while_loop(test, body, (torch.zeros((), dtype=torch.int32), a))[1]

        return torch.cond(x[0, 0] > 0, search, lambda a: a * 2.0, [x])


class Same(nn.Module):
    """Branches that hand on what they are given, exchange it, and give one value twice."""

    def forward(self, x, y):
        def yes(a, b):
            return b.clone(), a.clone(), a.clone()

        def no(a, b):
            c = a + b
            return c, c.clone(), a.reshape(3, 2).reshape(6).clone()

        p, q, r = torch.cond(x.sum() > 0, yes, no, [x, y])
        return p + q, r, q.clone()


class Item(nn.Module):
    """The condition is computed from Python numbers that items of tensors are."""

    def forward(self, x, n):
        k = n.item()
        torch._check(k >= 0)
        torch._check(k < 100)
        return torch.cond(k * 2 + 1 > 9, lambda a: a * 2.0, lambda a: a - 1.0, [x])


class Endless(nn.Module):
    """Never ends where x is positive."""

    def forward(self, x):
        return loop(lambda a: a.sum() > 0, lambda a: (a * 2.0,), (x,), ())[0]


def signs(*shape, count=4):
    """Samples of positive and negative sum in turns."""
    samples = torch.randn(count, *shape)
    for i, sample in enumerate(samples):
        if (sample.sum() > 0) != (i % 2 == 0):
            samples[i] = -sample
    return samples


def pairs():
    a, b = torch.randn(4, 2, 3, 4, 6), torch.randn(4, 2, 3, 4, 6)
    for i in range(4):
        if ((a[i] - b[i]).sum() > 0) != (i % 2 == 0):
            a[i], b[i] = b[i].clone(), a[i].clone()
    return a, b


def products():
    a, b = torch.randn(4, 2, 3, 4, 6), torch.randn(4, 2, 3, 4, 6)
    for i in range(4):
        if ((a[i] * b[i]).sum() > 0) != (i % 2 == 0):
            b[i] = -b[i]
    return a, b


def ones(*scales):
    return torch.stack([torch.ones(2, 3, 2, 2) * s for s in scales])


def cases():
    x = signs(1, 1, 2, 2)
    images = torch.rand(4, 1, 3, 8, 8) * torch.tensor([1.0, 0.2, 2.0, 0.1]).reshape(4, 1, 1, 1, 1)
    both = [(torch.arange(12.0) - 5).reshape(2, 6), (torch.arange(12.0) * 0.5 - 2).reshape(2, 6)]
    return {
        "cond_zero_args_one_output": (CondWithout(), [x]),
        "cond_one_arg_one_output": (Cond(torch.sin, torch.cos), [x]),
        "cond_one_arg_const_one_output": (CondBuffer(), [x]),
        "cond_one_arg_and_scalar_one_output": (Cond(lambda a: a + 1.0, lambda a: a - 1.0), [x]),
        "cond_one_arg_two_outputs": (Cond(lambda a: (a + a.sin(), a - a.sin()), lambda a: (a - a.mean(), a + a.mean()),
                                          lambda a: a.flatten().sum()), [x]),
        "cond_two_args_one_output": (Cond(lambda a, b: a + b, lambda a, b: a - b, lambda a, b: (a - b).sum()), pairs()),
        "cond_two_args_two_outputs": (Cond(lambda a, b: (a + b, a * b), lambda a, b: (a - b, a + (a - b)),
                                           lambda a, b: (a * b).sum()), products()),
        "cond_nested_one_arg_one_output": (CondNested(), [torch.cat([x, x * 4])]),
        "cond_multiple_one_arg_one_output": (CondTwice(), [x]),
        "while_two_in_two_out": (WhileTwo(), [torch.zeros(3, 2, 3), torch.stack([torch.full((2, 3), v) for v in (-2.0, 2.5, 1.0)])]),
        "while_one_in_one_buffer_two_out": (While(30.0, True, 2), [ones(1, 0.5, 2)]),
        "while_decreasing_output": (WhileHalving(), [ones(1, 4, 9)]),
        "while_additional_arg": (While(128.0, False, 2), [ones(1, 0.75, 6)]),
        "while_two_in_one_captured_out": (While(128.0, True, 1), [ones(1, 0.75, 6)]),
        "while_large_threshold": (While(400.0, False, 2), [ones(1, 0.75, 6)]),
        "experts": (Experts(), [images]),
        "refine": (Refine(), [torch.randn(4, 1, 6), torch.tensor([[3], [0], [1], [6]])]),
        "search": (Search(), [torch.randn(6, 2, 3) * 2]),
        "same": (Same(), [torch.stack([both[0].reshape(-1)[:6], both[0].reshape(-1)[6:]]), torch.stack([both[1].reshape(-1)[:6], both[1].reshape(-1)[6:]])]),
        "item": (Item(), [torch.randn(3, 4), torch.tensor([[4], [5], [0]])]),
        "endless": (Endless(), [-torch.rand(2, 1, 4)]),
    }


def export_cases(out, wanted, all_cases):
    """Writes NAME.pt2 and NAME.npz of each case (module, inputs), or of those wanted.

    Samples lie on a leading axis of each input: the network sees inputs[k][i].
    """
    os.makedirs(out, exist_ok=True)
    for name, (module, inputs) in all_cases.items():
        if wanted and name not in wanted:
            continue
        module.eval()
        samples = [tuple(values[i] for values in inputs) for i in range(len(inputs[0]))]
        with torch.no_grad():
            program = torch.export.export(module, tuple(t.clone() for t in samples[0]), strict=False)
            results = [program.module()(*(t.clone() for t in sample)) for sample in samples]
        results = [result if isinstance(result, (tuple, list)) else (result,) for result in results]
        arrays = {f"calib{i}": values.numpy() for i, values in enumerate(inputs)}
        for i in range(len(results[0])):
            arrays[f"expected{i}"] = np.stack([result[i].numpy() for result in results])
        torch.export.save(program, os.path.join(out, name + ".pt2"))
        np.savez(os.path.join(out, name + ".npz"), **arrays)
        print(name)


if __name__ == "__main__":
    export_cases(sys.argv[1], sys.argv[2:], cases())
