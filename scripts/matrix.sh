#!/usr/bin/env bash
# Every network x target x memory mode: compiled wholly for the NPU, and verified bit for bit against the TOSA interpreter.
# usage: matrix.sh CARINA [NETWORK...]      networks: .pt2 files with .npz samples beside them; default: those under
# models/ and, when CARINA_FIXTURES (default ../shared) is there, the five of fixtures/models. JOBS runs at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
carina=$(realpath "$1")
shift
fixtures=${CARINA_FIXTURES:-../shared}
networks=("$@")
if [ ${#networks[@]} -eq 0 ]; then
  networks=(models/*.pt2)
  for name in digits_cnn mobilenet_v2 keyword_ds_cnn resnet8 autoencoder; do
    [ -e "$fixtures/fixtures/models/$name.pt2" ] && networks+=("$fixtures/fixtures/models/$name.pt2")
  done
fi
modes() {
  case $1 in
    ethos-u55-*) echo Sram_Only Shared_Sram ;;
    *) echo Sram_Only Shared_Sram Dedicated_Sram Dedicated_Sram_256KB Dedicated_Sram_384KB Dedicated_Sram_512KB ;;
  esac
}
targets="ethos-u55-32 ethos-u55-64 ethos-u55-128 ethos-u55-256 ethos-u65-256 ethos-u65-512
         ethos-u85-128 ethos-u85-256 ethos-u85-512 ethos-u85-1024 ethos-u85-2048"

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
one() {
  local network=$1 target=$2 mode=$3 log
  log=$results/$(basename "$network").$target.$mode
  if "$carina" verify "$network" --target "$target" --memory-mode "$mode" --calibrate "${network%.pt2}.npz" --samples 1 >"$log" 2>&1 \
    && grep -q '^wholly on the NPU' "$log"; then
    mv "$log" "$log.ok"
  else
    mv "$log" "$log.bad"
  fi
}
export -f one
export carina results

total=0
jobs=()
for network in "${networks[@]}"; do
  for target in $targets; do
    for mode in $(modes "$target"); do
      jobs+=("$network" "$target" "$mode")
      total=$((total + 1))
    done
  done
done
printf '%s\0' "${jobs[@]}" | xargs -0 -n 3 -P "${JOBS:-$(nproc)}" bash -c 'one "$@"' _ &
runner=$!
while kill -0 $runner 2>/dev/null; do
  done_count=$(find "$results" -name '*.ok' -o -name '*.bad' | wc -l)
  [ -t 2 ] && printf '\r%d/%d' "$done_count" "$total" >&2
  sleep 1
done
[ -t 2 ] && printf '\r          \r' >&2
wait $runner || true
good=$(find "$results" -name '*.ok' | wc -l)
for bad in "$results"/*.bad; do
  [ -e "$bad" ] || continue
  echo "FAILED $(basename "$bad" .bad)"
  grep -E 'error|DIFFER|differ' "$bad" | head -n 3 | sed 's/^/    /'
done
echo "$good passed, $((total - good)) failed"
[ "$good" -eq "$total" ]
