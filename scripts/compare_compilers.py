#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One table of two compilers' programs: cycles under every setting of the cycle model, memory, constants.

usage: compare_compilers.py CARINA PEER NETWORK... [--targets T,...] [--modes M,...] [--jobs N] [-o RESULTS.csv] [--append]
       compare_compilers.py --tables RESULTS.csv

Every NETWORK (.tflite in its natural form, or .tosa) is compiled for every target and memory mode by both, and both programs
are timed by `carina profile` with the same system configuration. Where Carina's takes more fast memory, it is compiled once more with
--arena-size (--cache-size in a dedicated mode) at what the peer's takes. PEER is a command of the caller's making that is run as

  PEER NETWORK -o OUT.tflite --target T --system-config S --memory-mode M

writes a model with an ethos-u operator and prints a JSON object on its last line: `npu_cycles` (its own estimate) and, if it
wants, `version`. What one of the two refuses is a row with a reason and no cycles. --tables prints the results as Markdown; it
needs neither compiler.

PEER may be the RESULTS.csv of an earlier run (its name ends in .csv): the peer's rows are taken from there, which holds as long
as neither the peer nor Carina's cycle model has changed since.
"""
import argparse
import concurrent.futures
import csv
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile

TARGETS = ["ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256", "ethos-u65-256", "ethos-u65-512",
           "ethos-u85-128", "ethos-u85-256", "ethos-u85-512", "ethos-u85-1024", "ethos-u85-2048"]
MODES = ["Sram_Only", "Shared_Sram", "Dedicated_Sram_384KB"]
SYSTEMS = {"u55": "Ethos_U55_High_End_Embedded", "u65": "Ethos_U65_High_End", "u85": "Ethos_U85_SYS_DRAM_Mid"}
# "equal": Carina limited to the peer's fast memory; the same program if it needs no more than that anyway.
COMPILERS = ["carina", "equal", "peer"]
COLUMNS = ["network", "target", "mode", "compiler", "cycles", "estimate", "fast", "constants", "problem"]


def system_of(target):
    if target == "ethos-u85-128":
        return "Ethos_U85_SYS_DRAM_Low"
    return SYSTEMS[target.split("-")[1]]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    problem = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[0][:200]
    return done.stdout, problem


class Pair:
    """One network on one target in one memory mode."""

    def __init__(self, options, network, target, mode, folder):
        self.options, self.carina, self.peer, self.network = options, options.carina, shlex.split(options.peer), network
        self.target, self.mode, self.folder = target, mode, folder
        self.where = ["--system-config", system_of(target), "--memory-mode", mode]

    def row(self, compiler, **values):
        name = os.path.basename(self.network)
        return {"network": name, "target": self.target, "mode": self.mode, "compiler": compiler, **values}

    def profile(self, compiler, program, **values):
        figures = os.path.join(self.folder, compiler + ".json")
        _, problem = run([self.carina, "profile", program, *self.where, "--json", figures])
        if problem:
            return self.row(compiler, problem=problem)
        with open(figures, encoding="utf-8") as file:
            parts = json.load(file)["parts"]
        row = self.row(compiler, cycles=sum(p["cycles"] for p in parts), **values)
        kind = "cache" if self.mode.startswith("Dedicated") else "arena"
        row["fast"] = max(p["bytes"][kind] for p in parts)
        row["constants"] = sum(p["bytes"]["constants"] for p in parts)
        for rules in parts[0]["cycles_by_rules"]:
            row[rules] = sum(p["cycles_by_rules"][rules] for p in parts)
        return row

    def own(self, compiler, extra=()):
        program = os.path.join(self.folder, compiler + ".pte")
        _, problem = run([self.carina, "compile", self.network, "-o", program, "--target", self.target, *self.where,
                          "--require-npu", *extra])
        return self.row(compiler, problem=problem) if problem else self.profile(compiler, program)

    def others(self):
        if self.options.known_rows:
            name = os.path.basename(self.network)
            known = self.options.known_rows.get((name, self.target, self.mode), {}).get("peer")
            return known or self.row("peer", problem="not in the results of the earlier run")
        program = os.path.join(self.folder, "peer.tflite")
        out, problem = run([*self.peer, self.network, "-o", program, "--target", self.target, *self.where])
        if problem:
            return self.row("peer", problem=problem)
        said = json.loads(out.strip().splitlines()[-1])
        if said.get("cpu_ops"):
            return self.row("peer", problem=f"{said['cpu_ops']} operators on the CPU")
        return self.profile("peer", program, estimate=said.get("npu_cycles", ""))

    def rows(self):
        own, others = self.own("carina"), self.others()
        equal = dict(own, compiler="equal")
        if not own.get("problem") and not others.get("problem") and own["fast"] > others["fast"]:
            option = "--cache-size" if self.mode.startswith("Dedicated") else "--arena-size"
            equal = self.own("equal", [option, str(max(others["fast"], 16))])
        return [own, equal, others]


def measure(options):
    pairs = []
    for network in options.networks:
        for target in options.targets.split(","):
            for mode in options.modes.split(","):
                if not ("u55" in target and mode.startswith("Dedicated")):
                    pairs.append((network, target, mode))

    def one(pair):
        with tempfile.TemporaryDirectory() as folder:
            return Pair(options, *pair, folder).rows()

    rows = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in pool.map(one, pairs):
            rows += done
            if sys.stderr.isatty():
                print(f"\r{len(rows) // 3} of {len(pairs)}", end="", file=sys.stderr)
    if options.append and os.path.exists(options.output):
        with open(options.output, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file)) + rows
    settings = list(dict.fromkeys(key for row in rows for key in row if key not in COLUMNS))
    with open(options.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS + settings, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else float("nan")


def read(path):
    """{(network, target, mode): {compiler: row}} with numbers as numbers, of the pairs that both compile."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        pairs = {}
        for row in reader:
            for key, value in row.items():
                if value.isdigit():
                    row[key] = int(value)
            pairs.setdefault((row["network"], row["target"], row["mode"]), {})[row["compiler"]] = row
        settings = [name for name in reader.fieldnames if name not in COLUMNS]
    return pairs, settings


def ratios(pairs, setting, compiler="carina"):
    return [(key, p["peer"][setting] / p[compiler][setting]) for key, p in pairs.items()
            if not p["peer"]["problem"] and not p[compiler]["problem"]]


def summary(pairs, setting, compiler="carina"):
    found = [ratio for _, ratio in ratios(pairs, setting, compiler)]
    return f"{geometric_mean(found):.3f} ({sum(r < 1 for r in found)} of {len(found)})" if found else "-"


def tables(path):
    pairs, settings = read(path)
    forms = {"TensorFlow Lite": ".tflite", "TOSA": ".tosa"}
    of_form = {name: {k: p for k, p in pairs.items() if k[0].endswith(end)} for name, end in forms.items()}
    of_form = {name: some for name, some in of_form.items() if some}
    print("Peer's cycles / Carina's, geometric mean (pairs lost, of how many):\n")
    print("| setting | " + " | ".join(f"{name} | {name}, equal memory" for name in of_form) + " |")
    print("|---" * (1 + 2 * len(of_form)) + "|")
    for setting in settings:
        cells = [summary(some, setting, compiler) for some in of_form.values() for compiler in ("carina", "equal")]
        print(f"| {setting} | " + " | ".join(cells) + " |")
    for name, some in of_form.items():
        own = [p["peer"]["estimate"] / p["peer"]["cycles"] for p in some.values()
               if not p["peer"]["problem"] and p["peer"]["estimate"]]
        constants = [p["carina"]["constants"] / p["peer"]["constants"] for p in some.values()
                     if not p["peer"]["problem"] and not p["carina"]["problem"] and p["peer"]["constants"]]
        print(f"\n{name}: the peer's own estimate of its programs is {geometric_mean(own):.3f} of the model's; "
              f"Carina's constants are {geometric_mean(constants):.3f} of the peer's.")
        print("\n| network | " + " | ".join(MODES) + " | fast memory |\n|---|" + "---|" * (len(MODES) + 1))
        for network in dict.fromkeys(key[0] for key in some):
            cells = [summary({k: p for k, p in some.items() if k[0] == network and k[2] == mode}, "calibrated")
                     for mode in MODES]
            memory = [p["carina"]["fast"] / p["peer"]["fast"] for k, p in some.items() if k[0] == network and
                      not p["peer"]["problem"] and not p["carina"]["problem"] and p["peer"]["fast"] and
                      p["carina"]["fast"]]
            print(f"| {network} | " + " | ".join(cells) + f" | {geometric_mean(memory):.2f} |")
        lost = sorted((ratio, compiler, key) for compiler in ("carina", "equal")
                      for key, ratio in ratios(some, "calibrated", compiler) if ratio < 1)
        if lost:
            print(f"\nLost, {name}:\n\n| network | target | memory mode | memory | Carina | peer | ratio |\n" + "|---" * 7 + "|")
        for ratio, compiler, key in lost:
            memory = "its own" if compiler == "carina" else "the peer's"
            own, others = some[key][compiler]["cycles"], some[key]["peer"]["cycles"]
            print(f"| {' | '.join(key)} | {memory} | {own:,} | {others:,} | {ratio:.3f} |")
        refused = [(key, c, p[c]["problem"]) for key, p in some.items() for c in ("carina", "peer") if p[c]["problem"]]
        if refused:
            print(f"\nNot compared, {name}: " + "; ".join(
                f"{network} on {target} ({c}: {problem})" for (network, target, _), c, problem in refused[:12]) +
                ("; ..." if len(refused) > 12 else ""))
    lost_in_doubt(pairs, settings)
    largest_constants(pairs)


def lost_in_doubt(pairs, settings):
    """Which pairs are lost under settings of the cycle model other than the calibrated one, by network."""
    found = {}
    for setting in settings:
        for compiler in ("carina", "equal"):
            for (network, target, _), ratio in ratios(pairs, setting, compiler):
                if setting != "calibrated" and ratio < 1:
                    found.setdefault((setting, network), {}).setdefault(compiler, []).append((ratio, target))
    if not found:
        return
    print("\nLost under other settings of the cycle model, own (equal) memory:\n")
    print("| setting | network | pairs | least ratio | targets |\n" + "|---" * 5 + "|")
    for (setting, network), by_compiler in found.items():
        own, equal = by_compiler.get("carina", []), by_compiler.get("equal", [])
        targets = dict.fromkeys(target.removeprefix("ethos-") for _, target in own + equal)
        print(f"| {setting} | {network} | {len(own)} ({len(equal)}) | {min(own + equal)[0]:.3f} | {', '.join(targets)} |")


def largest_constants(pairs):
    """Where Carina's constants are largest beside the peer's, by network."""
    most = {}
    for (network, target, mode), pair in pairs.items():
        if pair["peer"]["problem"] or pair["carina"]["problem"] or not pair["peer"]["constants"]:
            continue
        ratio = pair["carina"]["constants"] / pair["peer"]["constants"]
        most[network] = max(most.get(network, (0,)), (ratio, target, mode))
    above = [f"{network} {ratio:.3f} ({target.removeprefix('ethos-')}, {mode})"
             for network, (ratio, target, mode) in most.items() if ratio > 0.99]
    print(f"\nConstants, Carina's / the peer's: at most 0.99 in every pair of {len(most) - len(above)} of {len(most)} networks; "
          f"the largest of the others: {', '.join(above) or 'none'}.")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--tables":
        return tables(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("carina")
    parser.add_argument("peer")
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--append", action="store_true", help="keep the rows that RESULTS.csv has")
    parser.add_argument("-o", "--output", default="compare.csv")
    options = parser.parse_args()
    options.known_rows = read(options.peer)[0] if options.peer.endswith(".csv") else None
    measure(options)
    return tables(options.output)


if __name__ == "__main__":
    main()
