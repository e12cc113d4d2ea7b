#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Formats the rows of operators (src/aten/operators/*.json): keys in one order, lines of at most 120 characters.

usage: format_rows.py [--check] FILE.json...      --check: says which files are not formatted, exit status 1
"""
import json
import sys

KEYS = ["class", "schema", "summary", "instead", "infer", "tosa", "aliases", "inplace", "view", "identity", "impure", "quantize",
        "homogeneous", "range", "domain", "cost", "work", "cpu", "outs", "operator", "arguments", "cases"]
WIDTH = 120


def row_text(name, row):
    """A row as lines: the name, then its entries one behind the other, long lists broken between their items."""
    words = []  # parts that may be on separate lines
    for key in sorted(row, key=KEYS.index):
        value = row[key]
        if isinstance(value, list) and len(json.dumps(value)) > WIDTH // 2:
            items = [json.dumps(item) for item in value]
            items[0] = json.dumps(key) + ": [" + items[0]
            items[-1] += "]"
            words += [item + "," for item in items]
        else:
            words.append(json.dumps(key) + ": " + json.dumps(value) + ",")
    words[-1] = words[-1][:-1] + "}"
    lines, line = [], "  {" + words[0]
    for word in words[1:]:
        if len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = "   " + word
        else:
            line += " " + word
    return "\n".join([json.dumps(name) + ":"] + lines + [line])


def main():
    check = "--check" in sys.argv
    wrong = []
    for path in sys.argv[1 + check:]:
        old = open(path).read()
        new = "{\n" + ",\n".join(row_text(name, row) for name, row in json.loads(old).items()) + "\n}\n"
        if new == old:
            continue
        wrong.append(path)
        if not check:
            open(path, "w").write(new)
    if check and wrong:
        raise SystemExit("not formatted (make format): " + ", ".join(wrong))


if __name__ == "__main__":
    main()
