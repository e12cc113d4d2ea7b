#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs networks in three ways: in process, as Carina's firmware on the virtual platform, and through the container (read and
# rewritten to the same file). Prints one row per network and target if bytes and NPU cycles are equal in all three; otherwise
# the row is missing and the exit status is 1.
# usage: three_ways.sh BUILD      the networks under models/ and, if CARINA_FIXTURES (default ../shared) exists, the five
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
