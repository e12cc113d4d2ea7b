#!/usr/bin/env bash
# Runs every fuzz target for SECONDS (default 600) under ASan and UBSan, starting from the corpora under fuzz/corpus.
# usage: fuzz.sh [SECONDS] [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
shift || true
cmake --preset fuzz >/dev/null
cmake --build build-fuzz --parallel "$(nproc)"
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cd build-fuzz/bin && ls | grep "_fuzz$")
for target in "${targets[@]}"; do
  corpus=build-fuzz/corpus/$target
  mkdir -p "$corpus"
  seeds=()
  [ -d "fuzz/corpus/${target%_fuzz}" ] && seeds+=("fuzz/corpus/${target%_fuzz}")
  echo "== $target, $seconds s"
  "build-fuzz/bin/$target" -max_total_time="$seconds" -rss_limit_mb=4096 -timeout=20 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$corpus-" "$corpus" "${seeds[@]}" 2>&1 | grep -E 'stat::number_of_executed|ERROR|SUMMARY' || true
done
