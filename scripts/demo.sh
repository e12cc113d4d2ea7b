#!/usr/bin/env bash
# The demo: a digit classifier from its torch.export archive to accuracy, cycles and memory on the NPU model.
# usage: demo.sh CARINA [TARGET]
set -euo pipefail
cd "$(dirname "$0")/.."
carina=$1
target=${2:-ethos-u55-128}
out=${CARINA_DEMO_DIR:-build/demo}
mkdir -p "$out"

echo "== compile: models/digits8.pt2 (trained by models/digits8.py) for $target"
"$carina" compile models/digits8.pt2 --target "$target" --calibrate models/digits8.npz -o "$out/digits8.pte" --report "$out/report"
echo
echo "== run: 200 held-back digits on the NPU model"
"$carina" run "$out/digits8.pte" --input models/digits8_eval.npz --output "$out/results.npz" --json "$out/stats.json"
echo
echo "== verify: float, simulation, TOSA and NPU side by side"
"$carina" verify models/digits8.pt2 --target "$target" --calibrate models/digits8.npz
echo
echo "The report is in $out/report (summary.txt, layers.txt, quantization.txt, report.json); statistics in $out/stats.json."
