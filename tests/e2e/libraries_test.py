# SPDX-License-Identifier: Apache-2.0
"""libraries_test.py PROGRAM: a program links only the shared libraries that it cannot do without, as every start loads them all.
apps/carina/libraries keeps the others out: a function of a library that is not defined there would bring the library back."""
import re
import subprocess
import sys

EXPECTED = {"libc.so", "libm.so", "libgcc_s.so", "libtbbmalloc.so", "ld-linux-x86-64.so", "ld-linux-aarch64.so"}
listed = subprocess.run(["readelf", "-d", sys.argv[1]], check=True, capture_output=True, text=True).stdout
named = set(re.findall(r"\(NEEDED\).*\[([^]]*)\]", listed))
if not named:
    sys.exit("no libraries found in the output of readelf")
others = {name for name in named if re.sub(r"\.so\..*", ".so", name) not in EXPECTED}
if others:
    sys.exit(f"{sys.argv[1]} names {', '.join(sorted(others))}: define what it calls there in apps/carina/libraries")
