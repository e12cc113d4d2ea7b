#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Networks three ways: in process, as our firmware on the virtual platform, and through the container (read and
# written again, the same file). One row per network and target; bytes and NPU cycles are the same in all ways, or
# the row is missing and the exit status 1.
# usage: three_ways.sh BUILD      the networks under models/ and, when CARINA_FIXTURES (default ../shared) is there, the five
# large ones of fixtures/models, on one target of each family. Needs the cross compiler.
set -euo pipefail
build=$(realpath "$1")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
"$build"/bin/firmware_test --gtest_filter='*.ThreeWays/*' >"$log" 2>&1 || status=$?
printf '%-16s %-14s %-22s %12s %12s\n' network target 'memory mode' 'output bytes' 'NPU cycles'
awk '/^three ways: / { sub(":", "", $5); printf "%-16s %-14s %-22s %12d %12d\n", $3, $4, $5, $6, $9 }' "$log"
grep -E '^\[  (FAILED|SKIPPED) .*ThreeWays' "$log" | sort -u || true
[ "$status" -eq 0 ] && grep -q '^three ways: ' "$log"
