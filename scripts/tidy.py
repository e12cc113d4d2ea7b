#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over what the build in build/ (CARINA_BUILD) compiles.

usage: tidy.py [--analyzer] [FILE...]            the groups of these files; default: all
       tidy.py [--analyzer] --changed [COMMIT]   the groups of what changed since COMMIT; default: the last release

Files are checked in the groups that the build compiles them in, so that their headers are parsed once: a group of eight takes about
as long as one file, eight seconds of CPU. --analyzer also runs clang's static analyzer, which takes several times as long. It and
some checks only consider what is written in the main file, so that the files of a group are joined to one text instead of being
included. The build must be complete: generated headers are read.
"""
import argparse
import bisect
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The commands are for g++: options that clang does not know are ignored.
UNKNOWN_OPTIONS = ["-Wno-unknown-warning-option", "-Wno-ignored-optimization-argument", "-Wno-unused-command-line-argument"]
GCC_ONLY = re.compile(r" -Winvalid-pch| -include \S*cmake_pch\.hxx| -fpch-preprocess")


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()


def changed_files(base):
    """What differs from `base`, by default the last release: its tag, or the commit that gave it its heading in the changelog. None
    where the history does not go back to it."""
    if not base:
        found = (git("describe", "--tags", "--abbrev=0", "--match", "v*") or
                 git("log", "-1", "--format=%H", "-G", r"^## [0-9]", "--", "CHANGELOG.md"))
        if not found or git("rev-parse", "--is-shallow-repository") == ["true"]:
            print("tidy.py: the last release is not known here, so everything is checked")
            return None
        base = found[0]
    if not git("rev-parse", "--verify", base + "^{commit}"):
        sys.exit(f"tidy.py: {base} is not a commit here")
    return git("diff", "--name-only", "--diff-filter=d", base, "--")


class Unit:
    """What one command of the build compiles: a file, or a group of files."""

    def __init__(self, entry):
        self.path = os.path.join(entry["directory"], entry["file"])
        self.command = entry["command"]
        self.members = [self.path]
        if re.search(r"/Unity/unity_\d+_\w+\.\w+$", self.path):
            with open(self.path, encoding="utf-8") as group:
                self.members = re.findall(r'^#include "([^"]+)"', group.read(), re.M)
        self.names = {os.path.relpath(member, ROOT) for member in self.members}

    def write(self, path):
        """Writes the joined text to `path`; the entry of a compilation database for it."""
        self.joined = path
        self.starts = []  # the lines of the joined text before each member
        lines = 0
        with open(path, "w", encoding="utf-8") as out:
            for member in self.members:
                with open(member, encoding="utf-8") as file:
                    text = file.read() + "\n"
                self.starts.append(lines)
                lines += text.count("\n")
                out.write(text)
        compiler = self.command[re.search(r"\S*/(c\+\+|g\+\+|clang\+\+)(-\d+)?(?= )", self.command).start():]
        own = "".join(f" -iquote {folder}" for folder in sorted({os.path.dirname(member) for member in self.members}))
        command = GCC_ONLY.sub("", compiler).replace(self.path, path) + own
        return {"directory": os.path.dirname(path), "command": command, "file": path}

    def in_members(self, report):
        """The report with places in the members instead of the joined text."""
        def place(match):
            line = int(match[1])
            index = bisect.bisect_left(self.starts, line) - 1
            return f"{self.members[index]}:{line - self.starts[index]}:"
        return re.sub(re.escape(self.joined) + r":(\d+):", place, report)


def units_of(build, files):
    database = os.path.join(build, "compile_commands.json")
    if not os.path.exists(database):
        sys.exit(f"tidy.py: {build} is not built: make test, or CARINA_BUILD=FOLDER")
    with open(database, encoding="utf-8") as file:
        entries = json.load(file)
    units = [Unit(entry) for entry in entries if re.search(r"\.(cpp|cc|cxx)$", entry["file"])]
    # Two targets may compile the same files.
    units = list({tuple(unit.members): unit for unit in units if all(name.startswith(("src/", "runtime/", "apps/", "tests/", "bench/", "fuzz/"))
                                                                      for name in unit.names)}.values())
    if files is None:
        return units
    wanted = {os.path.relpath(file, ROOT) for file in files}
    wanted |= {name.removesuffix(".hpp") + ".cpp" for name in wanted}  # a header is checked with its implementation
    return [unit for unit in units if unit.names & wanted]


def check(units, folder, options):
    """Prints what clang-tidy finds in the units, whose joined texts it writes into the folder: in how many it found something."""
    paths = [os.path.join(folder, f"unit_{index}.cpp") for index in range(len(units))]
    with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as out:
        json.dump([unit.write(path) for unit, path in zip(units, paths)], out)
    command = ["clang-tidy-14", "-p", folder, "--quiet", f"--config-file={ROOT}/.clang-tidy",
               *[f"--extra-arg={option}" for option in UNKNOWN_OPTIONS]]
    if not options.analyzer:
        command.append("--checks=-clang-analyzer-*")

    def look(path):
        return subprocess.run([*command, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for unit, done in zip(units, pool.map(look, paths)):
            sys.stdout.write(unit.in_members(done.stdout))
            sys.stdout.flush()
            failed += done.returncode != 0
    return failed


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--changed", nargs="?", const="", metavar="COMMIT")
    parser.add_argument("--analyzer", action="store_true")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS") or os.cpu_count()))
    options = parser.parse_args()
    build = os.path.abspath(os.environ.get("CARINA_BUILD", os.path.join(ROOT, "build")))
    files = [os.path.abspath(file) for file in options.files] or None
    if options.changed is not None:
        changed = changed_files(options.changed)
        files = changed and [os.path.join(ROOT, name) for name in changed]
    units = units_of(build, files)
    if not units:
        print("tidy.py: nothing to look at")
        return 0
    print(f"clang-tidy over {sum(len(unit.members) for unit in units)} files in {len(units)} groups", flush=True)
    with tempfile.TemporaryDirectory(prefix="tidy.", dir=build) as folder:
        failed = check(units, folder, options)
    if failed:
        print(f"tidy.py: findings in {failed} of {len(units)} groups", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
