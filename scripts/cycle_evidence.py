#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measured cycles beside the cycle model's, pair by pair.

usage: cycle_evidence.py CARINA [--record]
       cycle_evidence.py --plot OUT.svg

Prints every pair of tests/data/cycles/measured.csv (network, target, measured, model, ratio), the geometric mean of the factors
by class, and fails when the error of a pair or of a class has grown by more than half a percent over the recorded one.
--record writes today's ratios into the table instead; --plot draws the recorded ones. The streams lie in $CARINA_FIXTURES/vectors/cycles/streams (default
../shared); pairs whose streams are not among them are passed over; exit status 77 when there are none at all.
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
OWN = "TA_"  # prefix of the configurations in CONFIG; the others are stock
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


def plot(path):
    """Measured cycles across, the model's beside them as a factor, both logarithmic."""
    with open(TABLE, newline="", encoding="utf-8") as file:
        rows = [(row["class"], int(row["measured"]), float(row["ratio"])) for row in csv.DictReader(file)]
    width, height, left, top, right, bottom = 720, 380, 60, 20, 20, 90
    low, high, most = 1000, 10_000_000, 2.0

    def x(cycles):
        return left + (width - left - right) * math.log(cycles / low) / math.log(high / low)

    def y(ratio):
        return top + (height - top - bottom) * (0.5 - math.log(ratio) / math.log(most) / 2)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<rect x="{left}" y="{y(1.1):.1f}" width="{width - left - right}" height="{y(1 / 1.1) - y(1.1):.1f}" fill="#e4eef8"/>']
    for ratio in (0.5, 0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0):
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{y(ratio):.1f}" y2="{y(ratio):.1f}" '
                   f'stroke="{"#555" if ratio == 1 else "#ddd"}"/>')
        out.append(f'<text x="{left - 6}" y="{y(ratio) + 4:.1f}" text-anchor="end">{ratio:g}</text>')
    for cycles in (1000, 10_000, 100_000, 1_000_000, 10_000_000):
        out.append(f'<line x1="{x(cycles):.1f}" x2="{x(cycles):.1f}" y1="{top}" y2="{height - bottom}" stroke="#ddd"/>')
        out.append(f'<text x="{x(cycles):.1f}" y="{height - bottom + 16}" text-anchor="middle">{cycles:,}</text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - bottom + 34}" text-anchor="middle">measured cycles; '
               f'upwards: the model\'s / measured; shaded: within 10 %</text>')
    colours = ("#c0504d", "#1f5fa8", "#4a8a3c", "#e0a030", "#7a4fa0")
    for n, (name, colour) in enumerate(zip(dict.fromkeys(row[0] for row in rows), colours)):
        across, down = left + 10 + n % 3 * 210, height - 34 + n // 3 * 18
        out.append(f'<circle cx="{across}" cy="{down}" r="4" fill="{colour}"/>'
                   f'<text x="{across + 10}" y="{down + 4}">{name}</text>')
        out += [f'<circle cx="{x(measured):.1f}" cy="{y(ratio):.1f}" r="4" fill="{colour}" fill-opacity="0.8"/>'
                for kind, measured, ratio in rows if kind == name]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n</svg>\n")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--plot":
        return plot(sys.argv[2])
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--record"]):
        sys.exit(__doc__)
    fixtures = os.environ.get("CARINA_FIXTURES") or os.path.join(os.path.dirname(ROOT), "shared")
    streams = os.path.join(fixtures, "vectors", "cycles", "streams")
    with open(TABLE, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows, names = list(reader), reader.fieldnames
    present = [row for row in rows if os.path.exists(os.path.join(streams, row["stream"]))]
    if not present:
        print("the measured streams are absent: set CARINA_FIXTURES")
        sys.exit(SKIPPED)
    grown, classes = [], {}
    print(f"{'stream':56} {'system configuration':28} {'measured':>9} {'model':>9} {'ratio':>6} {'recorded':>8}")
    for row in present:
        measured, recorded = int(row["measured"]), float(row["ratio"])
        model = modelled(sys.argv[1], os.path.join(streams, row["stream"]), row)
        ratio = model / measured
        classes.setdefault(row["class"], []).append((ratio, recorded))
        print(f"{row['stream']:56} {row['system_config']:28} {measured:9,} {model:9,} {ratio:6.3f} {recorded:8.3f}")
        if abs(math.log(ratio)) > abs(math.log(recorded)) + GROWTH:
            grown.append(f"{row['stream']} ({row['system_config']}): {ratio:.3f} of the measured cycles, recorded {recorded:.3f}")
        row["ratio"] = f"{ratio:.3f}"
    if len(present) < len(rows):
        print(f"{len(rows) - len(present)} of {len(rows)} pairs passed over: their streams are absent")
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
