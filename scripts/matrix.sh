#!/usr/bin/env bash
# Compiles, verifies bit for bit against the TOSA interpreter, and requires that everything runs on the NPU:
#   networks   every network x target x memory mode in int8, and in 16x8 on one target of each family;
#   operators  every one-operator network x one target of each family x precision.
# usage: matrix.sh CARINA [networks|operators|NETWORK.pt2...]     default: both. Networks, each with .npz samples next to it:
# those under models/ and, if CARINA_FIXTURES (default ../shared) exists, those of fixtures/models; operators: fixtures/ops.
# JOBS is the number of parallel runs; OPTIONS are further options of the compilation ("--optimize size").
# SQNR_TABLE=FILE: writes the SQNR of every case relative to its float network, tab separated.
# HASHES=FILE: only compiles, and writes the SHA-256 of every program. Two builds of the compiler that give the same bytes give
# the same file.
set -euo pipefail
cd "$(dirname "$0")/.."
carina=$(realpath "$1")
shift
fixtures=${CARINA_FIXTURES:-../shared}/fixtures
families="ethos-u55-128 ethos-u65-256 ethos-u85-256"
declare -A modes=()
targets=
while read -r target rest; do
  targets+=" $target"
  modes[$target]=$rest
done < <("$carina" targets --json | python3 -c '
import json, sys
for target in json.load(sys.stdin)["targets"]:
    print(target["name"], *target["memory_modes"])')

jobs=()  # four fields each: network, target, memory mode ("" for the target's own), precision
add_networks() {
  local network target mode
  for network in "$@"; do
    for target in $targets; do
      for mode in ${modes[$target]}; do jobs+=("$network" "$target" "$mode" int8); done
    done
    for target in $families; do jobs+=("$network" "$target" "" int16x8); done
  done
}
add_operators() {
  local network target precision
  for target in $families; do
    for precision in int8 int16x8; do
      for network in "$fixtures"/ops/*.pt2; do jobs+=("$network" "$target" "" "$precision"); done
    done
  done
}
if [ $# -eq 0 ]; then set -- networks operators; fi
for what in "$@"; do
  case $what in
    networks)
      add_networks models/*.pt2
      [ -d "$fixtures/models" ] && add_networks "$fixtures"/models/*.pt2
      ;;
    operators)
      if [ -d "$fixtures/ops" ]; then add_operators; else echo "no operators: CARINA_FIXTURES is not there" >&2; fi
      ;;
    *) add_networks "$what" ;;
  esac
done

HASHES=${HASHES:+$(realpath "$HASHES")}
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
one() {
  local network=$1 target=$2 mode=$3 precision=$4 log
  log="$results/$(basename "$network" .pt2) $target $mode $precision"
  if [ -n "${HASHES:-}" ]; then
    if "$carina" compile "$network" -o "$log.pte" --target "$target" ${mode:+--memory-mode "$mode"} --quantize "$precision" \
      --calibrate "${network%.pt2}.npz" ${OPTIONS:-} >"$log" 2>&1; then
      sha256sum <"$log.pte" | cut -d' ' -f1 >"$log.ok"
    else
      mv "$log" "$log.bad"
    fi
    rm -f "$log.pte" "$log"
    return
  fi
  if "$carina" verify "$network" --target "$target" ${mode:+--memory-mode "$mode"} --quantize "$precision" \
    --calibrate "${network%.pt2}.npz" --samples 1 ${OPTIONS:-} >"$log" 2>&1 && grep -q '^entirely on the NPU' "$log"; then
    mv "$log" "$log.ok"
  else
    mv "$log" "$log.bad"
  fi
}
export -f one
export carina results HASHES

total=$((${#jobs[@]} / 4))
[ "$total" -gt 0 ] || { echo "nothing to do"; exit 0; }
printf '%s\0' "${jobs[@]}" | xargs -0 -n 4 -P "${JOBS:-$(nproc)}" bash -c 'one "$@"' _ &
runner=$!
while kill -0 $runner 2>/dev/null; do
  if [ -t 2 ]; then
    done_count=$(find "$results" -name '*.ok' -o -name '*.bad' | wc -l)
    width=$((done_count * 40 / total))
    printf '\r[%-40s] %d/%d' "$(printf '%*s' "$width" '' | tr ' ' '#')" "$done_count" "$total" >&2
  fi
  sleep 1
done
[ -t 2 ] && printf '\r%60s\r' '' >&2
wait $runner || true

for bad in "$results"/*.bad; do
  [ -e "$bad" ] || continue
  echo "FAILED $(basename "$bad" .bad)"
  grep -E 'error|DIFFER|differ' "$bad" | head -n 3 | sed 's/^/    /' || true
done
if [ -n "${SQNR_TABLE:-}" ]; then
  # The worst output of each case; integer and bool outputs have none.
  for log in "$results"/*.ok; do
    awk -v name="$(basename "$log" .ok)" '
      /^output/ { inside = 1; next }
      /^$/ { inside = 0 }
      inside && $NF == "dB" && (worst == "" || $(NF - 1) + 0 < worst) { worst = $(NF - 1) + 0 }
      END { if (worst != "") { gsub(/ +/, "\t", name); printf "%s\t%.1f\n", name, worst } }' "$log"
  done >"$SQNR_TABLE"
fi
if [ -n "${HASHES:-}" ]; then
  (cd "$results" && grep . -- *.ok | sed 's/\.ok:/\t/' | sort) >"$HASHES"
  echo "$(wc -l <"$HASHES") programs in $HASHES"
  exit "$(find "$results" -name '*.bad' | grep -q . && echo 1 || echo 0)"
fi
find "$results" -name '*.ok' -o -name '*.bad' | sed 's/.*\///' | awk '
  { family = substr($2, 1, 9); precision = $NF; state = precision; sub(/.*\./, "", state); sub(/\..*/, "", precision)
    key = family " " precision; count[key]++; good[key] += state == "ok" }
  END { for (key in count) printf "%s: %d of %d entirely on the NPU and equal to TOSA\n", key, good[key], count[key] }' | sort
good=$(find "$results" -name '*.ok' | wc -l)
echo "$good passed, $((total - good)) failed"
[ "$good" -eq "$total" ]
