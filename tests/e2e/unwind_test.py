# SPDX-License-Identifier: Apache-2.0
"""unwind_test.py PROGRAM: every unwind entry covers at least a byte. Of entries with one address, lld 14 keeps the first: behind an
empty one, an exception would end the process (cmake/CarinaOptions.cmake)."""
import re
import subprocess
import sys

frames = subprocess.run(["readelf", "--debug-dump=frames", sys.argv[1]], check=True, capture_output=True, text=True).stdout
ranges = re.findall(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", frames)
if not ranges:
    sys.exit("no unwind entries found in the output of readelf")
empty = [begin for begin, end in ranges if begin == end]
if empty:
    sys.exit(f"{sys.argv[1]} has {len(empty)} empty unwind entries, at {', '.join(empty[:8])}")
