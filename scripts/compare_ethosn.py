#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One table of two compilers' networks for Ethos-N78: DRAM traffic, the measure of Arm's planner, compile time.

usage: compare_ethosn.py TOOL PEER NETWORK... [--targets T,...] [--jobs N] [--keep FOLDER] [-o RESULTS.csv]
       compare_ethosn.py --tables RESULTS.csv

TOOL is build/bin/compiled_networks (tests/ethosn/compiled_networks.cpp). A NETWORK is one of the names that `TOOL shapes` prints,
or a .pt2 with its .npz of samples beside it, or a .tflite; its largest part for the NPU is compiled by both, from the same file of
operations and weights. PEER is a command of the caller's making that is run as

  PEER NETWORK.txt OUT.encn

reads a network in words (tests/ethosn/network_text.hpp), writes a compiled network and prints a JSON object on its last line:
`cpu_seconds`, the CPU time that compiling took. Both compiled networks are walked by the same model: bytes between DRAM and SRAM,
the measure that Arm's planner takes for time (src/ethosn/cost/metric.hpp), and the time line of the stripes as their waits let them
run. What one of the two refuses is a row with a reason. --tables prints the results as Markdown; it needs neither compiler.
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

TARGETS = ["ethos-n78-1tops-4ple", "ethos-n78-4tops-2ple", "ethos-n78-4tops-4ple", "ethos-n78-8tops-2ple"]
FIGURES = ["traffic", "metric", "timeline", "cpu_seconds"]
COLUMNS = ["network", "target", "compiler", *FIGURES, "passes", "sram", "bytes", "problem"]


def run(command):
    """The JSON object on the last line, or why there is none."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {}, (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[0][:200]
    return json.loads(done.stdout.strip().splitlines()[-1]), ""


class Pair:
    """One network for one variant."""

    def __init__(self, options, network, target, folder):
        self.tool, self.peer = options.tool, shlex.split(options.peer)
        self.network, self.target, self.folder = network, target, folder
        self.name = os.path.splitext(os.path.basename(network))[0]

    def path(self, ending):
        return os.path.join(self.folder, f"{self.name}-{self.target}{ending}")

    def row(self, compiler, **values):
        return {"network": self.name, "target": self.target, "compiler": compiler, **values}

    def compiled(self, compiler, command, words):
        """Of what is short, the faster of two runs counts: other work on the machine only adds."""
        encn = self.path(f"-{compiler}.encn")
        runs = [run([*command, words, encn])]
        if runs[0][0].get("cpu_seconds", 1) < 1:
            runs.append(run([*command, words, encn]))
        problems = [problem for _, problem in runs if problem]
        if problems:
            return self.row(compiler, problem=problems[0])
        figures, problem = run([self.tool, "measure", encn])
        if not problem and figures["findings"] > 0:
            problem = f"{figures['findings']} findings of the checker"
        if problem:
            return self.row(compiler, problem=problem)
        return self.row(compiler, traffic=figures["read"] + figures["written"], metric=figures["metric"],
                        timeline=figures["timeline"], passes=figures["passes"], sram=figures["sram"],
                        cpu_seconds=min(said["cpu_seconds"] for said, _ in runs), bytes=os.path.getsize(encn))

    def rows(self):
        words = self.path(".txt")
        samples = os.path.splitext(self.network)[0] + ".npz"
        _, problem = run([self.tool, "write", self.network, self.target, words, *([samples] if os.path.exists(samples) else [])])
        if problem:
            return [self.row(compiler, problem=problem) for compiler in ("carina", "peer")]
        return [self.compiled("carina", [self.tool, "compile"], words), self.compiled("peer", self.peer, words)]


def measure(options):
    def one(pair):
        if options.keep:
            os.makedirs(options.keep, exist_ok=True)
            return Pair(options, *pair, options.keep).rows()
        with tempfile.TemporaryDirectory() as folder:
            return Pair(options, *pair, folder).rows()

    pairs = [(network, target) for network in options.networks for target in options.targets.split(",")]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = [row for done in pool.map(one, pairs) for row in done]
    with open(options.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else float("nan")


def read(path):
    """{(network, target): {compiler: row}}"""
    with open(path, newline="", encoding="utf-8") as file:
        pairs = {}
        for row in csv.DictReader(file):
            pairs.setdefault((row["network"], row["target"]), {})[row["compiler"]] = row
    return pairs


def both(pairs):
    return {key: p for key, p in pairs.items() if not p["carina"]["problem"] and not p["peer"]["problem"]}


def ratio(pair, figure):
    return float(pair["carina"][figure]) / float(pair["peer"][figure])


def summary(pairs, figure):
    found = [ratio(pair, figure) for pair in pairs.values()]
    return f"{geometric_mean(found):.3f} ({max(found):.2f})" if found else "-"


def tables(path):
    every = read(path)
    pairs = both(every)
    networks = list(dict.fromkeys(network for network, _ in pairs))
    print("Carina's figure / the peer's, geometric mean over the variants (largest):\n")
    print("| network | DRAM traffic | measure of the planner | time line | compile time |\n|---|---|---|---|---|")
    for network in [*networks, None]:
        some = {key: p for key, p in pairs.items() if network in (None, key[0])}
        cells = " | ".join(summary(some, figure) for figure in FIGURES)
        print(f"| {network or 'all'} | {cells} |")
    print("\nLost, more than 1.0 in traffic or measure:\n")
    print("| network | variant | DRAM traffic | peer | ratio | measure | peer | ratio |\n|---|---|---|---|---|---|---|---|")
    for (network, target), p in pairs.items():
        ratios = [ratio(p, "traffic"), ratio(p, "metric")]
        if max(ratios) <= 1.0:
            continue
        cells = [f"{int(p['carina'][f]):,} | {int(p['peer'][f]):,} | {r:.2f}" for f, r in zip(("traffic", "metric"), ratios)]
        print(f"| {network} | {target.removeprefix('ethos-n78-')} | {' | '.join(cells)} |")
    print("\nCompile time, user + system CPU seconds, largest over the variants:\n")
    print("| network | Carina | peer |\n|---|---|---|")
    for network in networks:
        times = [max(float(p[c]["cpu_seconds"]) for key, p in pairs.items() if key[0] == network) for c in ("carina", "peer")]
        print(f"| {network} | {times[0]:.2f} | {times[1]:.2f} |")
    refused = [(key, c, p[c]["problem"]) for key, p in every.items() for c in ("carina", "peer") if p[c]["problem"]]
    if refused:
        print("\nNot compared: " + "; ".join(f"{network} on {target} ({c}: {problem})" for (network, target), c, problem in refused))


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--tables":
        return tables(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("peer")
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--jobs", type=int, default=1, help="at once; compile times are CPU times, but share caches")
    parser.add_argument("--keep", help="folder for the networks and what both compilers make of them")
    parser.add_argument("-o", "--output", default="compare_ethosn.csv")
    options = parser.parse_args()
    measure(options)
    return tables(options.output)


if __name__ == "__main__":
    main()
