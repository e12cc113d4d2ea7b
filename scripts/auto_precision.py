#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What --auto-precision finds for networks, beside int8, 16x8 and rules by hand, as a Markdown table.

usage: auto_precision.py CARINA FOLDER [--target T] [--hand FOLDER] [--page PAGE] [--check PAGE] [--margin DB] [NAME...]

FOLDER holds NAME.pt2 and NAME.npz; `fixtures` is that of the fixture collection ($CARINA_FIXTURES, or `shared` beside the
repository), without which the script ends with status 77. Rules by hand are those that somebody who knows such networks wrote for this one, without
measuring (--hand: NAME.json, models/rules_by_hand unless said otherwise), and what anybody would try: 16x8 for one type of operator,
and for all types but convolutions, products and linear layers. The goal of the table is the middle between the decibels of int8 and of
16x8. int8, 16x8, the rules written for the network and every other rule that none of these beats are held against the search: in as
many cycles it has to reach at least as many decibels (--margin: so many more). A rule with the decibels of int8 in at most 2 % fewer
cycles is int8 whose transfers of weights fall better, and is passed over. Ends with status 1 where it does not, and where a search
takes more than a minute of CPU time. --page writes the table into that page, between <!-- auto-precision --> and <!-- end -->; --check
ends with status 1 where the page has other rows for these networks, but for the seconds.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOST_SECONDS = 60


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
    """Decibels and cycles of a program by rules: a goal of no decibels takes int8 with the rules on top. Nothing where they cannot be."""
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


def written_rules(options, name):
    """The rules that were written for the network: (name, text), none or one."""
    path = os.path.join(options.hand, name + ".json")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [("written", file.read())]


def hand_points(options, name, network, samples, others):
    """(name, decibels, cycles) of the rules by hand that give programs of their own: those written for the network, and the rest."""
    written, simple = [], []
    for into, rules in ((written, written_rules(options, name)), (simple, rules_by_hand(options.carina, network))):
        for what, text in rules:
            reached = by_hand(options.carina, network, samples, options.target, text)
            if reached is None and into is written:
                raise SystemExit(f"{name}: the rules of {options.hand} cannot be followed")
            if reached is not None and (into is written or reached not in [other[1:] for other in others + written + simple]):
                into.append((what, *reached))
    return written, simple


def compare(options, name):
    """A row of the table; and whether nothing is better than what the search finds."""
    network, samples = (os.path.join(options.folder, name + ending) for ending in (".pt2", ".npz"))
    ask = lambda *goal: search(options.carina, network, samples, options.target, list(goal))
    ends, _ = ask("--min-sqnr", "-1000")
    low, high = (next(p for p in ends["programs"] if p["name"] == end) for end in ("int8", "16x8"))
    others = [("int8", low["sqnr_db"], low["cycles"]), ("16x8", high["sqnr_db"], high["cycles"])]
    written, simple = hand_points(options, name, network, samples, others)
    goal = (low["sqnr_db"] + high["sqnr_db"]) / 2
    found, slowest = ask("--min-sqnr", f"{goal:.3f}")
    chosen = next((p for p in found["programs"] if p["chosen"]), None)
    good, beside = chosen is not None, "- | -"
    tells = [p for p in simple if p[1] >= low["sqnr_db"] + 0.1 or p[2] * 100 < low["cycles"] * 98]
    against = written + [p for p in unbeaten(others + written + tells) if p not in written]
    for what, decibels, cycles in against:
        result, took = ask("--max-cycles", str(cycles))
        slowest = max(slowest, took)
        best = next((p for p in result["programs"] if p["chosen"]), None)
        text = point(best["sqnr_db"], best["cycles"]) if best else "nothing"
        if best is None or best["sqnr_db"] < decibels + options.margin - 1e-6 or best["cycles"] > cycles:
            good = False
            print(f"{name}: {what} has {point(decibels, cycles)}, the search {text}", file=sys.stderr)
        if what == "written":
            beside = f"{point(decibels, cycles)} | {text}"
    if slowest > MOST_SECONDS:
        good = False
        print(f"{name}: a search took {slowest:.0f} s of CPU time", file=sys.stderr)
    raised = sum(layer["precision"] == "int16x8" for layer in found["layers"])
    found_text = f"{point(chosen['sqnr_db'], chosen['cycles'])} | {raised} of {len(found['layers'])}" if chosen else "not reached | "
    return (f"| {name} | {point(*others[0][1:])} | {point(*others[1][1:])} | {goal:.1f} dB | {found_text} | {beside} | "
            f"{len(against)} | {slowest:.0f} |"), good


def rows_of(page):
    """The rows of the page's table by network, without the seconds."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    begin = text.index(BEGIN) + len(BEGIN)
    rows = text[begin:text.index(END, begin)].strip().split("\n")[len(HEAD):]
    return {row.split(" | ")[0].lstrip("| "): row.rsplit(" | ", 1)[0] for row in rows}


def point(decibels, cycles):
    return f"{decibels:.1f} dB, {cycles:,}"


HEAD = ["| network | int8 | 16x8 | goal | chosen | layers in 16x8 | rules by hand | search in as many cycles | held against | longest, CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("carina")
    parser.add_argument("folder")
    parser.add_argument("--target", default="ethos-u55-128")
    parser.add_argument("--hand", default=os.path.join(ROOT, "models", "rules_by_hand"))
    parser.add_argument("--page")
    parser.add_argument("--check")
    parser.add_argument("--margin", type=float, default=0)
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    if options.folder == "fixtures":
        collection = os.environ.get("CARINA_FIXTURES", os.path.join(os.path.dirname(ROOT), "shared"))
        options.folder = os.path.join(collection, "fixtures", "models")
        if not os.path.isdir(options.folder):
            print(f"there is no {options.folder}: skipped")
            sys.exit(77)
    names = options.names or sorted(os.path.basename(path)[:-4] for path in glob.glob(os.path.join(options.folder, "*.pt2")))
    rows, worse = list(HEAD), 0
    shown = rows_of(options.check) if options.check else {}
    for name in names:
        row, good = compare(options, name)
        rows.append(row)
        print(row, flush=True)
        if options.check and shown.get(name) != row.rsplit(" | ", 1)[0]:
            good = False
            print(f"{options.check} has another row for {name}: renew it with --page", file=sys.stderr)
        worse += not good
    if options.page:
        with open(options.page, encoding="utf-8") as file:
            text = file.read()
        begin = text.index(BEGIN) + len(BEGIN)
        with open(options.page, "w", encoding="utf-8") as file:
            file.write(text[:begin] + "\n" + "\n".join(rows) + "\n" + text[text.index(END, begin):])
    sys.exit(1 if worse else 0)


main()
