#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What --auto-precision finds for networks, beside int8, 16x8 and rules written by hand, as a Markdown table.

usage: auto_precision.py CARINA FOLDER [--target T] [--rules NETWORK=FILE]... [NAME...]

FOLDER holds NAME.pt2 and NAME.npz. For every network the goal is the middle between the decibels of int8 and of 16x8; where
rules are given for one, what they reach. Ends with status 1 where the search's program takes more cycles than another one
that is as accurate.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True)


def search(carina, network, samples, target, goal, *more):
    """The JSON of a search, and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        output, result = os.path.join(folder, "a.pte"), os.path.join(folder, "a.json")
        began = time.monotonic()
        done = run(carina, "compile", network, "--calibrate", samples, "--target", target, "-o", output, "--auto-precision",
                   "--json", result, *goal, *more)
        seconds = time.monotonic() - began
        if done.returncode not in (0, 3):
            raise SystemExit(f"{network}: {done.stderr}")
        with open(result, encoding="utf-8") as file:
            return json.load(file), seconds


def by_hand(carina, network, samples, target, rules):
    """Decibels and cycles of a program by rules: a goal of no decibels takes int8 with the rules on top."""
    found, _ = search(carina, network, samples, target, ["--min-sqnr", "-1000"], "--quantize-config", rules)
    chosen = next(program for program in found["programs"] if program["chosen"])
    return chosen["sqnr_db"], chosen["cycles"]


def point(decibels, cycles):
    return f"{decibels:.1f} dB, {cycles:,}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("carina")
    parser.add_argument("folder")
    parser.add_argument("--target", default="ethos-u55-128")
    parser.add_argument("--rules", action="append", default=[])
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    rules = dict(entry.split("=", 1) for entry in options.rules)
    names = options.names or sorted(os.path.basename(path)[:-4] for path in glob.glob(os.path.join(options.folder, "*.pt2")))
    print("| network | int8 | 16x8 | by hand | goal | chosen | layers in 16x8 | gap | seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    worse = 0
    for name in names:
        network, samples = (os.path.join(options.folder, name + ending) for ending in (".pt2", ".npz"))
        ends, _ = search(options.carina, network, samples, options.target, ["--min-sqnr", "-1000"])
        low, high = (next(p for p in ends["programs"] if p["name"] == end) for end in ("int8", "16x8"))
        others = [(low["sqnr_db"], low["cycles"]), (high["sqnr_db"], high["cycles"])]
        hand = "-"
        goal = (low["sqnr_db"] + high["sqnr_db"]) / 2
        if name in rules:
            others.append(by_hand(options.carina, network, samples, options.target, rules[name]))
            hand = point(*others[-1])
            goal = others[-1][0]
        found, seconds = search(options.carina, network, samples, options.target, ["--min-sqnr", f"{goal:.3f}"])
        chosen = next((p for p in found["programs"] if p["chosen"]), None)
        if chosen is None:
            print(f"| {name} | {point(*others[0])} | {point(*others[1])} | {hand} | {goal:.1f} dB | not reached | | | {seconds:.0f} |")
            worse += 1
            continue
        gap = "-" if found["gap"] is None else f"{100 * found['gap']:.1f} %"
        raised = sum(layer["precision"] == "int16x8" for layer in found["layers"])
        print(f"| {name} | {point(*others[0])} | {point(*others[1])} | {hand} | {goal:.1f} dB | "
              f"{point(chosen['sqnr_db'], chosen['cycles'])} | {raised} of {len(found['layers'])} | {gap} | {seconds:.0f} |",
              flush=True)
        if any(decibels >= chosen["sqnr_db"] and cycles < chosen["cycles"] for decibels, cycles in others):
            worse += 1
            print(f"{name}: another program is as accurate for fewer cycles", file=sys.stderr)
    sys.exit(1 if worse else 0)


main()
