#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds files and functions to the sizes of CONTRIBUTING.md: check_sizes.py ROOT

No C++ file beyond 800 lines, no function beyond 120. Functions are found by their last brace, which clang-format puts
alone into the column of the first line. Prints one line per violation and exits 1.
"""
import re
import subprocess
import sys
from pathlib import Path

MOST_LINES, MOST_OF_FUNCTION = 800, 120
FOLDERS = ["src", "apps", "runtime", "firmware", "tests", "bench", "fuzz"]
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)


def functions(lines):
    """(first line, lines) of what ends in a brace alone, in the column of its first line: functions, and statements in them."""
    heads = {}
    for i, line in enumerate(lines):
        column = len(line) - len(line.lstrip())
        if column not in (0, 2) or not line:
            continue
        if line.strip() == "}" and column in heads:
            yield heads[column] + 1, i - heads[column] + 1
        elif not line.lstrip().startswith(("}", "#", "//")):
            heads[column] = i


def main():
    root = Path(sys.argv[1])
    listed = subprocess.run(["git", "-C", root, "ls-files", *FOLDERS], check=False, capture_output=True, text=True).stdout.split()
    names = listed or [str(f.relative_to(root)) for folder in FOLDERS for f in sorted((root / folder).rglob("*"))]
    found = 0
    for name in names:
        path = root / name
        if not name.endswith((".cpp", ".hpp", ".h", ".c")) or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        lines = RAW_STRING.sub(lambda raw: "\n" * raw[0].count("\n"), text).split("\n")
        if len(lines) - 1 > MOST_LINES:
            print(f"{name}: {len(lines) - 1} lines, more than {MOST_LINES}")
            found += 1
        for line, length in functions(lines):
            if length > MOST_OF_FUNCTION:
                print(f"{name}:{line}: a function of {length} lines, more than {MOST_OF_FUNCTION}")
                found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
