#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what Carina makes of a folder of networks with PyTorch's results, as a Markdown table.

usage: check_networks.py CARINA FOLDER [--target T:Q ...] [NAME ...]

FOLDER holds NAME.pt2 and NAME.npz with inputs in0.., PyTorch's results out0.. and calibration samples calib0..
(models/library_networks.py makes such folders). For every network, the program for --target cpu has to give PyTorch's results
within 1e-3 of their magnitude, and `carina verify` for each target and precision (default ethos-u55-128:int8,
ethos-u85-256:int8 and ethos-u65-512:int16x8) that of the TOSA interpreter, bit for bit. A row says where the network runs, and
the SQNR of its worst output and the cycles; what is refused comes with the reason. Ends with status 1 if a result differs, or
if a verification fails that is not a refusal.
"""
import argparse
import glob
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np

TARGETS = ("ethos-u55-128:int8", "ethos-u85-256:int8", "ethos-u65-512:int16x8")
TOLERANCE = 1e-3
REFUSED = "error[E"


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True)


def first_line(text):
    lines = [line for line in text.splitlines() if REFUSED in line] or text.splitlines() or ["no message"]
    return lines[0].split(": ", 3)[-1][:160]


def float_difference(carina, path, arrays, folder):
    """The largest difference from PyTorch's results, relative to 1 + their magnitude; or why there is none."""
    inputs, program, outputs = (os.path.join(folder, name) for name in ("in.npz", "float.pte", "out.npz"))
    np.savez(inputs, **{name: arrays[name] for name in arrays.files if name.startswith("in")})
    for command in (("compile", path, "--target", "cpu", "-o", program),
                    ("run", program, "--input", inputs, "--output", outputs)):
        result = run(carina, *command)
        if result.returncode != 0:
            return None, first_line(result.stderr)
    worst = 0.0
    with np.load(outputs) as found:
        for name in arrays.files:
            if not name.startswith("out"):
                continue
            if name not in found.files or found[name].size != arrays[name].size:
                return math.inf, f"{name} has another shape"
            expected = arrays[name].astype(np.float64).ravel()
            with np.errstate(invalid="ignore"):
                difference = np.abs(found[name].astype(np.float64).ravel() - expected) / (1 + np.abs(expected))
            difference[found[name].ravel() == arrays[name].ravel()] = 0  # infinities
            worst = max(worst, float(difference.max(initial=0)))
    return worst, ""


def verified(carina, path, samples, target, precision):
    """The report of `carina verify`, or the reason for which there is none and whether it is a refusal."""
    result = run(carina, "verify", path, "--target", target, "--quantize", precision, "--calibrate", samples,
                 "--json", "-")
    if result.returncode == 0:
        return json.loads(result.stdout), "", True
    return None, first_line(result.stderr or result.stdout), REFUSED in result.stderr


def decibels_of(report):
    values = [output["sqnr_db"] for output in report["outputs"] if output.get("sqnr_db") is not None]
    return min(values) if values else None


def cell(report, reason):
    if report is None:
        return reason
    decibels = decibels_of(report)
    place = "" if report["wholly_on_npu"] else "partly on the CPU, "
    return f"{place}{'-' if decibels is None else f'{decibels:.1f} dB'}, {report['npu_cycles']:,}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("carina")
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", action="append", help="T:Q, for example ethos-u85-256:int16x8")
    options = parser.parse_intermixed_args()
    targets = [target.partition(":")[::2] for target in options.target or TARGETS]
    names = options.names or sorted(os.path.basename(path)[:-4] for path in glob.glob(options.folder + "/*.npz"))
    if not names:
        sys.exit(f"{options.folder}: no .npz")
    print("| network | float | " + " | ".join(f"{target} {precision}" for target, precision in targets) + " |")
    print("|---|---|" + "---|" * len(targets), flush=True)
    equal, wrong = 0, []
    whole = {pair: 0 for pair in targets}
    decibels = {pair: [] for pair in targets}
    for name in names:
        path, samples = (os.path.join(options.folder, name + end) for end in (".pt2", ".npz"))
        with tempfile.TemporaryDirectory() as folder, np.load(samples) as arrays:
            difference, reason = float_difference(options.carina, path, arrays, folder)
        if difference is not None and difference > TOLERANCE:
            wrong.append(f"{name}: float results differ by {difference:.2g} {reason}")
        equal += difference is not None and difference <= TOLERANCE
        cells = []
        for pair in targets:
            report, why, refused = verified(options.carina, path, samples, *pair)
            if not refused:
                wrong.append(f"{name} {' '.join(pair)}: {why}")
            if report:
                whole[pair] += report["wholly_on_npu"]
                if (value := decibels_of(report)) is not None:
                    decibels[pair].append(value)
            cells.append(cell(report, why))
        print(f"| {name} | {reason or f'{difference:.1g}'} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{len(names)} networks; float results equal PyTorch's: {equal}")
    for pair in targets:
        middle = f", SQNR {statistics.median(decibels[pair]):.1f} dB (median)" if decibels[pair] else ""
        print(f"{' '.join(pair)}: wholly on the NPU and bit-exact: {whole[pair]}{middle}")
    for line in wrong:
        print(f"WRONG: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
