#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that a text test names and checks what they print.

usage: run.py BIN_DIR FILECHECK TEST.ir

Every line "// RUN: COMMAND" of the test is run by bash, with carina of BIN_DIR and FileCheck in its path:
  %s    the test itself
  %t    a name for temporary files of this test
  not COMMAND    succeeds when COMMAND refuses its input (exit status 1, not a crash)
Exit status 0 when all succeed; 77 (skipped) when FILECHECK is no program.
"""
import os
import subprocess
import sys
import tempfile

PRELUDE = """set -e -o pipefail
not() { local status=0; "$@" || status=$?; [ "$status" -eq 1 ]; }
"""


def commands(test):
    """The commands of the RUN lines; a line that ends in a backslash goes on in the next RUN line."""
    found, open_line = [], False
    with open(test, encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith("// RUN:"):
                continue
            text = line[len("// RUN:"):].strip()
            if open_line:
                found[-1] = found[-1][:-1] + text
            else:
                found.append(text)
            open_line = text.endswith("\\")
    return found


def main():
    bin_dir, filecheck, test = sys.argv[1:]
    if not os.access(filecheck, os.X_OK):
        print("skipped: LLVM's FileCheck is missing (scripts/deps.sh installs it)")
        return 77
    runs = commands(test)
    if not runs:
        print(f"{test}: has no RUN line")
        return 1
    path = os.pathsep.join([bin_dir, os.path.dirname(filecheck), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as folder:
        for run in runs:
            command = run.replace("%s", f"'{test}'").replace("%t", os.path.join(folder, "t"))
            done = subprocess.run(["bash", "-c", PRELUDE + command], env={**os.environ, "PATH": path}, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                print(f"{test}: failed: {run}\n{done.stdout}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
