#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What --auto-precision finds for networks, beside int8, 16x8 and rules by hand, as a Markdown table.

usage: auto_precision.py CARINA FOLDER [--target T] [--rules NETWORK=FILE]... [--page PAGE] [NAME...]

FOLDER holds NAME.pt2 and NAME.npz. Rules by hand are what somebody would try without measuring: 16x8 for one type of operator, for
all types but convolutions, products and linear layers, and what --rules names. The goal of the table is the middle between the
decibels of int8 and of 16x8. Then int8, 16x8 and every rule by hand that none of the others beats are held against the search: in as
many cycles it has to reach at least as many decibels. Ends with status 1 where it does not. --page writes the table into that page,
between <!-- auto-precision --> and <!-- end -->.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True)


def search(carina, network, samples, target, goal, *more):
    """The JSON of a search, and its seconds of CPU."""
    with tempfile.TemporaryDirectory() as folder:
        output, result = os.path.join(folder, "a.pte"), os.path.join(folder, "a.json")
        began = os.times()
        done = run(carina, "compile", network, "--calibrate", samples, "--target", target, "-o", output, "--auto-precision",
                   "--json", result, *goal, *more)
        ended = os.times()
        seconds = ended.children_user + ended.children_system - began.children_user - began.children_system
        if done.returncode not in (0, 3):
            raise SystemExit(f"{network}: {done.stderr}")
        with open(result, encoding="utf-8") as file:
            return json.load(file), seconds


BEGIN, END = "<!-- auto-precision -->", "<!-- end -->"
HEAVY = ("conv", "linear", "matmul", "bmm", "mm", "lstm", "gru")


def rules_by_hand(carina, network):
    """(name, text of a rules file) of each: one type of operator, all that are not heavy."""
    shown = json.loads(run(carina, "inspect", network, "--json", "-").stdout)
    types = sorted({node["op"].split(".")[1] for node in shown["exported"][0]["graph"]["nodes"]})
    light = [name for name in types if not name.startswith(HEAVY)]
    sets = [(name, [name]) for name in types] + ([("all light", light)] if len(light) > 1 else [])
    return [(name, json.dumps({"rules": [{"op": op, "precision": "int16x8"} for op in ops]})) for name, ops in sets]


def by_hand(carina, network, samples, target, text):
    """Decibels and cycles of a program by rules: a goal of no decibels takes int8 with the rules on top. Nothing where they change
    nothing (operators that follow others), or cannot be."""
    with tempfile.TemporaryDirectory() as folder:
        rules = os.path.join(folder, "rules.json")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            found, _ = search(carina, network, samples, target, ["--min-sqnr", "-1000"], "--quantize-config", rules)
        except SystemExit:
            return None
    chosen = next(program for program in found["programs"] if program["chosen"])
    return chosen["sqnr_db"], chosen["cycles"]


def unbeaten(points):
    """Those that no other one equals in both and beats in one."""
    return [p for p in points if not any(q[1] >= p[1] and q[2] <= p[2] and q[1:] != p[1:] for q in points)]


def compare(options, name, rules):
    """A row of the table; and whether nothing is better than what the search finds."""
    network, samples = (os.path.join(options.folder, name + ending) for ending in (".pt2", ".npz"))
    ask = lambda *goal: search(options.carina, network, samples, options.target, list(goal))
    ends, _ = ask("--min-sqnr", "-1000")
    low, high = (next(p for p in ends["programs"] if p["name"] == end) for end in ("int8", "16x8"))
    others = [("int8", low["sqnr_db"], low["cycles"]), ("16x8", high["sqnr_db"], high["cycles"])]
    hands = []
    for what, text in rules_by_hand(options.carina, network) + rules:
        reached = by_hand(options.carina, network, samples, options.target, text)
        if reached is not None and ("", *reached) not in [("", *other[1:]) for other in others + hands]:
            hands.append((what, *reached))
    goal = (low["sqnr_db"] + high["sqnr_db"]) / 2
    found, seconds = ask("--min-sqnr", f"{goal:.3f}")
    chosen = next((p for p in found["programs"] if p["chosen"]), None)
    good = chosen is not None
    front, tried, slowest = unbeaten(others + hands), [], seconds
    for what, decibels, cycles in front:
        result, took = ask("--max-cycles", str(cycles))
        slowest = max(slowest, took)
        best = next((p for p in result["programs"] if p["chosen"]), None)
        tried.append((what, decibels, cycles, best))
        if best is None or best["sqnr_db"] < decibels - 1e-6 or best["cycles"] > cycles:
            good = False
            print(f"{name}: {what} has {point(decibels, cycles)}, the search "
                  f"{point(best['sqnr_db'], best['cycles']) if best else 'nothing'}", file=sys.stderr)
    raised = sum(layer["precision"] == "int16x8" for layer in found["layers"])
    hand = next((t for t in sorted(tried, key=lambda t: abs(t[1] - goal)) if t[0] not in ("int8", "16x8")), None)
    beside = f"`{hand[0]}`: {point(*hand[1:3])} | {point(hand[3]['sqnr_db'], hand[3]['cycles'])}" if hand and hand[3] else "- | -"
    found_text = f"{point(chosen['sqnr_db'], chosen['cycles'])} | {raised} of {len(found['layers'])}" if chosen else "not reached | "
    return (f"| {name} | {point(*others[0][1:])} | {point(*others[1][1:])} | {goal:.1f} dB | {found_text} | {beside} | "
            f"{len(front)} | {slowest:.0f} |"), good


def point(decibels, cycles):
    return f"{decibels:.1f} dB, {cycles:,}"


HEAD = ["| network | int8 | 16x8 | goal | chosen | layers in 16x8 | a rule by hand | search in as many cycles | held against | longest, CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("carina")
    parser.add_argument("folder")
    parser.add_argument("--target", default="ethos-u55-128")
    parser.add_argument("--rules", action="append", default=[])
    parser.add_argument("--page")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    given = {}
    for entry in options.rules:
        name, path = entry.split("=", 1)
        with open(path, encoding="utf-8") as file:
            given.setdefault(name, []).append((os.path.basename(path), file.read()))
    names = options.names or sorted(os.path.basename(path)[:-4] for path in glob.glob(os.path.join(options.folder, "*.pt2")))
    rows, worse = list(HEAD), 0
    for name in names:
        row, good = compare(options, name, given.get(name, []))
        rows.append(row)
        worse += not good
        print(row, flush=True)
    if options.page:
        with open(options.page, encoding="utf-8") as file:
            text = file.read()
        begin = text.index(BEGIN) + len(BEGIN)
        with open(options.page, "w", encoding="utf-8") as file:
            file.write(text[:begin] + "\n" + "\n".join(rows) + "\n" + text[text.index(END, begin):])
    sys.exit(1 if worse else 0)


main()
