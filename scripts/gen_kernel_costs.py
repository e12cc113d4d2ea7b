#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of src/cpu/kernel_costs.json as C++: gen_kernel_costs.py kernel_costs.json OUT.inc"""
import json
import sys

from operator_rows import write_if_changed


def main():
    table = json.load(open(sys.argv[1]))
    works, cores = table["work"], table["cores"]
    lines = ["// Made by scripts/gen_kernel_costs.py from src/cpu/kernel_costs.json."]
    for row in table["kernels"]:
        for core in cores:
            unknown = set(row["cycles"][core]) - set(works)
            if unknown:
                raise SystemExit(f"{row['kernel']}: no such work: {', '.join(unknown)}")
        cycles = ", ".join("{" + ", ".join(f"{float(row['cycles'][core].get(work, 0))}F" for work in works) + "}"
                           for core in cores)
        errors = ", ".join(f"{float(row['error'][core])}F" for core in cores)
        lines.append(f'{{"{row["kernel"]}", "{row["types"]}", {{{{{cycles}}}}}, {{{{{errors}}}}}}},')
    write_if_changed(sys.argv[2], "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
