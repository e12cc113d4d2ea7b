#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measured cycles beside the cycle model's, pair by pair.

usage: cycle_evidence.py CARINA [--record]

Prints every pair of tests/data/cycles/measured.csv (network, target, measured, model, ratio), the geometric mean of the factors
by class, and fails when the error of a pair or of a class has grown by more than half a percent over the recorded one.
--record writes today's ratios into the table instead. The streams lie in $CARINA_FIXTURES/vectors/cycles/streams (default
../shared); exit status 77 when they are absent.
"""
import csv
import json
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(ROOT, "tests", "data", "cycles", "measured.csv")
CONFIG = os.path.join(ROOT, "tests", "data", "cycles", "timing_adapters.ini")
OWN = "TA_"  # how the names begin that CONFIG describes; the others are stock
GROWTH = 0.005
SKIPPED = 77


def modelled(carina, stream, row):
    """Cycles of the model for one row, or an error."""
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "profile.json")
        command = [carina, "profile", stream, "--system-config", row["system_config"], "--memory-mode",
                   row["memory_mode"], "--json", profile]
        if row["system_config"].startswith(OWN):
            command += ["--config", CONFIG]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}:\n{done.stderr}")
        with open(profile, encoding="utf-8") as file:
            return sum(part["cycles"] for part in json.load(file)["parts"])


def mean_factor(ratios):
    """1 when all ratios are 1; 1.1 when they are off by 10 % either way."""
    return math.exp(sum(abs(math.log(ratio)) for ratio in ratios) / len(ratios))


def main():
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--record"]):
        sys.exit(__doc__)
    fixtures = os.environ.get("CARINA_FIXTURES") or os.path.join(os.path.dirname(ROOT), "shared")
    streams = os.path.join(fixtures, "vectors", "cycles", "streams")
    if not os.path.isdir(streams):
        print("the measured streams are absent: set CARINA_FIXTURES")
        sys.exit(SKIPPED)
    with open(TABLE, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows, names = list(reader), reader.fieldnames
    grown, classes = [], {}
    print(f"{'stream':42} {'system configuration':28} {'measured':>9} {'model':>9} {'ratio':>6} {'recorded':>8}")
    for row in rows:
        measured, recorded = int(row["measured"]), float(row["ratio"])
        model = modelled(sys.argv[1], os.path.join(streams, row["stream"]), row)
        ratio = model / measured
        classes.setdefault(row["class"], []).append((ratio, recorded))
        print(f"{row['stream']:42} {row['system_config']:28} {measured:9,} {model:9,} {ratio:6.3f} {recorded:8.3f}")
        if abs(math.log(ratio)) > abs(math.log(recorded)) + GROWTH:
            grown.append(f"{row['stream']} ({row['system_config']}): {ratio:.3f} of the measured cycles, recorded {recorded:.3f}")
        row["ratio"] = f"{ratio:.3f}"
    for name, ratios in classes.items():
        now, before = mean_factor([r for r, _ in ratios]), mean_factor([r for _, r in ratios])
        print(f"mean factor of {len(ratios)} pairs, {name}: {now:.3f} (recorded {before:.3f})")
        if now > before * (1 + GROWTH):
            grown.append(f"class {name}: mean factor {now:.3f}, recorded {before:.3f}")
    if sys.argv[2:]:
        with open(TABLE, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return
    for text in grown:
        print(f"error grew: {text}")
    sys.exit(1 if grown else 0)


if __name__ == "__main__":
    main()
