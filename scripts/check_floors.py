#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds every #include "..." of src/ and apps/ against the link lists: check_floors.py ROOT

A file may include headers of its own target and of what that target links, directly or through public links. CMake alone
does not say so, as all targets share one include directory. Prints one line per include that the link lists do not allow
and exits 1; prints unused direct links of one room of src/ to another as well, as they would allow too much.
"""
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
CALL = re.compile(r"^\s*(carina_library|add_library|target_link_libraries)\(([^)]*)\)", re.M)
KEYWORDS = {"SOURCES", "DEPS", "PRIVATE_DEPS", "PUBLIC", "PRIVATE", "INTERFACE"}


class Target:
    def __init__(self, folder):
        self.folder = folder
        self.public, self.private = set(), set()


def plain_name(name):
    return name.removeprefix("carina::").removeprefix("carina_")


def read_targets(root):
    """Libraries by name, from the calls that make and link them."""
    targets = {}
    for lists in sorted((root / "src").rglob("CMakeLists.txt")) + sorted((root / "apps").rglob("CMakeLists.txt")):
        text = re.sub(r"#.*", "", lists.read_text())
        for function, arguments in CALL.findall(text):
            words = arguments.split()
            name = plain_name(words[0])
            if function != "target_link_libraries":
                targets.setdefault(name, Target(lists.parent))
            if name not in targets or "ALIAS" in words:
                continue
            target = targets[name]
            kind = "PUBLIC"
            for word in words[1:]:
                if word in KEYWORDS:
                    kind = word
                elif word.startswith(("carina::", "carina_")):
                    (target.private if kind in ("PRIVATE", "PRIVATE_DEPS") else target.public).add(plain_name(word))
    return targets


def reachable(targets, name):
    """What a target's files may include: its links, and the public links of those."""
    seen, pending = {name}, list(targets[name].public | targets[name].private)
    while pending:
        link = pending.pop()
        if link not in seen:
            seen.add(link)
            pending.extend(targets[link].public if link in targets else [])
    return seen


def main():
    root = Path(sys.argv[1]).resolve()
    targets = read_targets(root)
    by_folder = {target.folder: name for name, target in targets.items()}

    def owner(path):
        return next((by_folder[folder] for folder in path.parents if folder in by_folder), None)

    faults = []
    for name, target in sorted(targets.items()):
        allowed = reachable(targets, name)
        used = set()
        for path in sorted(target.folder.rglob("*.[ch]pp")):
            if owner(path) != name:
                continue
            for include in INCLUDE.findall(path.read_text()):
                # Generated headers (aten/ops.hpp) are not in the source tree; they belong to the module of that name.
                beside = path.parent / include
                room = owner(beside if beside.exists() else root / "src" / include)
                if room is None:
                    continue
                used.add(room)
                if room not in allowed:
                    faults.append(f"{path.relative_to(root)}: includes {include} of {room}, which {name} does not link")
        # A public link may serve the targets that link this one; a private link must be used by its own files.
        for link in sorted((target.private & targets.keys()) - used - {name}):
            faults.append(f"{(target.folder / 'CMakeLists.txt').relative_to(root)}: {name} links {link} and includes nothing of it")
    print("\n".join(faults) if faults else f"{len(targets)} targets include only what they link")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
