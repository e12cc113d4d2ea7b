#!/usr/bin/env bash
# Builds the code that reads untrusted bytes with clang, AddressSanitizer and UBSan, and runs its unit tests and fuzz corpora.
# usage: sanitize.sh [--all]   --all: also higher-level code (PyTorch archives, programs through the whole runtime, boards)
set -euo pipefail
cd "$(dirname "$0")/.."
tests=(base_test ir_test tflite_test test_pte tokenizer_test npu_stream_test npu_weights_test ethosn_stream_test)
replays=(replay_parts)
if [ "${1:-}" = --all ]; then
  tests+=(pt2_test cpu_m_test test_platform test_runtime test_runtime_kernels)
  replays+=(replay_networks)
elif [ $# -gt 0 ]; then
  echo "usage: scripts/sanitize.sh [--all]" >&2
  exit 2
fi

build=build-sanitize
cmake --preset sanitize >/dev/null
cmake --build $build --parallel "${JOBS:-$(nproc)}" --target "${tests[@]}" "${replays[@]}"

export CARINA_VERIFY_EACH_PASS=1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=()
check() {  # NAME COMMAND...: shows the command's output if it fails
  local name=$1
  shift
  if "$@" >"$log" 2>&1; then
    echo "ok      $name"
  else
    tail -n 60 "$log"
    echo "FAILED  $name"
    failed+=("$name")
  fi
}
for name in "${tests[@]}"; do check "$name" "$build/bin/$name" --gtest_brief=1; done
count=${#tests[@]}
for replay in "${replays[@]}"; do
  for name in $("$build/bin/$replay"); do
    check "fuzz.$name" "$build/bin/$replay" "$name" "fuzz/corpus/$name"
    count=$((count + 1))
  done
done
[ ${#failed[@]} -eq 0 ] || { echo "sanitize.sh: ${#failed[@]} of $count failed: ${failed[*]}" >&2; exit 1; }
