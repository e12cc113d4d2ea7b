#!/usr/bin/env bash
# clang-tidy over the build in build-tidy/ (CARINA_BUILD), about ten seconds of CPU a file.
# usage: tidy.sh [FILE...]            these files; default: all
#        tidy.sh --changed [COMMIT]   the files that changed since COMMIT; default: the last release
set -euo pipefail
cd "$(dirname "$0")/.."
build=${CARINA_BUILD:-build-tidy}
if grep -q '^CARINA_UNITY:BOOL=ON' "$build/CMakeCache.txt" 2>/dev/null; then
  echo "tidy.sh: $build compiles files in groups, which clang-tidy does not take apart: make tidy, or cmake -DCARINA_UNITY=OFF" >&2
  exit 1
fi
[ -f "$build/compile_commands.json" ] || { echo "tidy.sh: $build is not built: make tidy, or CARINA_BUILD=FOLDER" >&2; exit 1; }
if [ "${1:-}" = --changed ]; then
  base=${2:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || git log -1 --format=%H -G '^## [0-9]' -- CHANGELOG.md)}
  mapfile -t files < <(git diff --name-only --diff-filter=d "$base" -- '*.cpp')
elif [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(git ls-files '*.cpp')
fi
# What this build compiles: the images of firmware/ and some tests are built elsewhere or not at all.
mapfile -t files < <(python3 -c '
import json, os, sys
known = {os.path.relpath(entry["file"]) for entry in json.load(open(sys.argv[1] + "/compile_commands.json"))}
print(*[file for file in map(os.path.relpath, sys.argv[2:]) if file in known], sep="\n")' "$build" "${files[@]}")
[ -n "${files[*]}" ] || { echo "tidy.sh: nothing to look at"; exit 0; }
echo "clang-tidy over ${#files[@]} files"
# The commands are g++'s: what clang does not know of them does not matter here.
printf '%s\n' "${files[@]}" | xargs -P "${JOBS:-$(nproc)}" -n 1 clang-tidy-14 -p "$build" --quiet \
  --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-ignored-optimization-argument 2> >(grep -v ' warnings generated\.$' >&2)
