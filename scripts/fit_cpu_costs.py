#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits what CPU kernels cost to runs on the virtual platform: fit_cpu_costs.py BUILD [--samples FILE] [--only KERNEL,...]

Writes src/cpu/kernel_costs.json, and into docs/inference-time.md which kernels are further off than 10 %. Takes the programs kernel_cycles (`ninja -C BUILD kernel_cycles`) and carina of the build folder,
and the cross compiler. --samples FILE keeps what was measured there, or reads it where the file exists.

For every kernel, element types and core: cycles = sum over kinds of work of (amount x cycles each), with no negative cycles, so that
the squares of relative differences are least. Work is counted by src/cpu/call_work.cpp. The error is the largest difference over all
shapes and all three kinds of data (random, smooth, half of it zero), relative to the cycles measured or to 1,000 where they are
fewer.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORKS = ["call", "element", "chunk", "run", "converted", "stored", "output", "mac", "tail", "tap", "piece", "byte"]
CORES = ["cortex-m33", "cortex-m55+nomve", "cortex-m55", "cortex-m85+nomve", "cortex-m85"]
SMALL = 1000  # cycles; differences of shorter calls are relative to this
BEGIN, END = "<!-- kernel errors -->", "<!-- end -->"  # in the page
LONGEST = 12  # most instructions of a program from which the cost of calls is fitted

SHAPES = ["[1,24]", "[1,250]", "[1,4,30,31]", "[3,7,41]", "[1,2048]"]
UNARY = {
    "": "abs neg sign floor ceil trunc round relu gelu exp expm1 sin cos tan atan sinh cosh asinh sigmoid tanh erf elu leaky_relu "
        "isnan isinf",
    "positive": "log log2 log10 log1p sqrt rsqrt reciprocal",
    "unit": "asin acos atanh logit",
    "above-one": "acosh",
}
BINARY = {
    "": "add.Tensor sub.Tensor mul.Tensor maximum.default minimum.default eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor "
        "ge.Tensor atan2.default",
    "positive": "div.Tensor remainder.Tensor fmod.Tensor pow.Tensor_Tensor floor_divide.default",
}
SCALAR = {
    "": "add.Scalar sub.Scalar rsub.Scalar mul.Scalar div.Scalar eq.Scalar ne.Scalar lt.Scalar le.Scalar gt.Scalar ge.Scalar",
    "positive": "remainder.Scalar fmod.Scalar",
}
PAIRS = ["f[1,24] f[1,24]", "f[1,250] f[1,250]", "f[1,4,30,31] f[1,4,30,31]", "f[1,8,10,10] f[8,1,1]", "f[1,40,32] f[32]",
         "f[1,40,32] f[1,40,1]", "f[2,3,200] f[1,1,1]"]


def conv(x, w, bias=True, stride=(1, 1), padding=(0, 0), dilation=(1, 1), transposed=False, output_padding=(0, 0), groups=1):
    shape = lambda sizes: "[" + ",".join(str(s) for s in sizes) + "]"
    out = w[1] * groups if transposed else w[0]
    return (f"aten.convolution.default | f{shape(x)} w{shape(w)} " + (f"w[{out}]" if bias else "-") +
            f" | stride={shape(stride)} padding={shape(padding)} dilation={shape(dilation)} transposed={transposed} "
            f"output_padding={shape(output_padding)} groups={groups} |")


def cases():
    """(operator without overload, line): cases of one operator never share a program."""
    lines = []
    for domain, names in UNARY.items():
        for name in names.split():
            lines += [f"aten.{name}.default | f{shape} | | {domain}" for shape in SHAPES]
    for domain, names in BINARY.items():
        for name in names.split():
            lines += [f"aten.{name} | {pair} | | {domain}" for pair in PAIRS]
    for domain, names in SCALAR.items():
        for name in names.split():
            lines += [f"aten.{name} | f{shape} | other=1.5 | {domain}" for shape in SHAPES]
    for shape in SHAPES:
        lines += [f"aten.pow.Tensor_Scalar | f{shape} | exponent=2 |",
                  f"aten.clamp.default | f{shape} | min=-0.5 max=0.5 |",
                  f"aten.hardtanh.default | f{shape} | min_val=0.0 max_val=6.0 |",
                  f"aten.bitwise_not.default | i{shape} | |",
                  f"aten.logical_not.default | b{shape} | |",
                  f"aten.where.self | b{shape} f{shape} f{shape} | |",
                  f"aten.masked_fill.Scalar | f{shape} b{shape} | value=0.0 |",
                  f"aten.add.Tensor | i{shape} i{shape} | |",
                  f"aten.add.Tensor | l{shape} l{shape} | |",
                  f"aten.mul.Tensor | i{shape} i{shape} | |"]
        lines += [f"aten.{name}.default | b{shape} b{shape} | |" for name in ("logical_and", "logical_or", "logical_xor")]
        lines += [f"aten.bitwise_{name}.Tensor | i{shape} i{shape} | |" for name in ("and", "or", "xor")]
    for shape in ("[1,24]", "[1,1200]"):
        lines += [f"aten._to_copy.default | {kind}{shape} | dtype={to} |"
                  for kind, to in (("f", "i32"), ("l", "i32"), ("i", "i64"), ("i", "f32"), ("b", "f32"), ("f", "bool"))]
        lines += [f"aten.clone.default | {kind}{shape} | |" for kind in "fc"]
    for shape in ("[1,24]", "[1,4,30,31]", "[1,500]"):
        for types, low, high in (("i8", -128, 127), ("i16", -32768, 32767), ("u8", 0, 255)):
            quantized = f"scale=0.04 zero_point=0 quant_min={low} quant_max={high} dtype={types}"
            lines.append(f"quantized_decomposed.quantize_per_tensor.default | f{shape} | {quantized} |")
            kind = {"i8": "c", "i16": "h"}.get(types)
            if kind:
                lines.append(f"quantized_decomposed.dequantize_per_tensor.default | {kind}{shape} | {quantized} |")
    for big in ("[1,3,64,64]", "[1,1001]"):
        quantized = "scale=0.02 zero_point=-3 quant_min=-128 quant_max=127 dtype=i8"
        lines += [f"quantized_decomposed.quantize_per_tensor.default | f{big} | {quantized} |",
                  f"quantized_decomposed.dequantize_per_tensor.default | c{big} | {quantized} |"]
    for rows, depth, columns in ((1, 16, 8), (3, 64, 10), (1, 33, 40), (10, 6, 11), (2, 190, 24), (17, 35, 3)):
        lines += [f"aten.mm.default | f[{rows},{depth}] w[{depth},{columns}] | |",
                  f"aten.addmm.default | w[{columns}] f[{rows},{depth}] w[{depth},{columns}] | |",
                  f"aten.linear.default | f[{rows},{depth}] w[{columns},{depth}] w[{columns}] | |",
                  f"aten.bmm.default | f[2,{rows},{depth}] f[2,{depth},{columns}] | |"]
    lines += [
        conv((1, 3, 12, 12), (8, 3, 3, 3), padding=(1, 1)), conv((1, 16, 8, 8), (24, 16, 1, 1)),
        conv((1, 1, 20, 8), (4, 1, 10, 4), stride=(2, 2), padding=(5, 1)), conv((1, 24, 10, 10), (24, 1, 3, 3), padding=(1, 1), groups=24),
        conv((1, 32, 9, 9), (32, 1, 3, 3), stride=(2, 2), padding=(1, 1), groups=32, bias=False),
        conv((1, 8, 16, 16), (8, 4, 3, 3), dilation=(2, 2), groups=2), conv((2, 5, 7, 9), (6, 5, 5, 1)),
        conv((1, 64, 4, 4), (16, 64, 1, 1), bias=False), conv((1, 6, 1, 30), (5, 6, 1, 7), padding=(0, 3)),
        conv((1, 8, 30, 1), (4, 8, 6, 1)), conv((1, 3, 10, 10), (5, 3, 5, 5), padding=(2, 2)), conv((1, 12, 12, 12), (6, 12, 2, 2), stride=(2, 2)),
        conv((1, 6, 6, 6), (6, 4, 2, 2), stride=(2, 2), transposed=True), conv((1, 8, 5, 5), (8, 3, 3, 3), padding=(1, 1), transposed=True),
        conv((1, 4, 8, 8), (4, 8, 4, 4), stride=(2, 2), padding=(1, 1), transposed=True),
        conv((1, 16, 4, 4), (16, 2, 1, 1), transposed=True),
        conv((1, 3, 7, 7), (3, 5, 3, 3), stride=(3, 3), transposed=True, output_padding=(1, 1)),
    ]
    for shape, kernel, stride, padding in (("[1,8,12,12]", 2, 2, 0), ("[1,4,15,15]", 3, 2, 1), ("[1,16,8,8]", 8, 8, 0),
                                           ("[1,3,20,9]", 5, 1, 2), ("[1,32,4,4]", 2, 1, 0)):
        window = f"kernel_size=[{kernel},{kernel}] stride=[{stride},{stride}] padding=[{padding},{padding}]"
        lines += [f"aten.avg_pool2d.default | f{shape} | {window} |", f"aten.max_pool2d_with_indices.default | f{shape} | {window} |"]
    lines += [f"aten._adaptive_avg_pool2d.default | f{shape} | output_size=[{size},{size}] |"
              for shape, size in (("[1,8,12,12]", 1), ("[1,4,15,15]", 5), ("[1,16,8,8]", 2), ("[1,24,7,7]", 1), ("[1,3,20,9]", 3))]
    for shape, dim in (("[1,8,6,5]", "[2,3]"), ("[1,8,30,30]", "[2,3]"), ("[4,60]", "[1]"), ("[1,16,200]", "[-1]"), ("[1,40,12]", "[1]"),
                       ("[1,6,10,14]", "[1,3]"), ("[3,300]", "[0]")):
        lines += [f"aten.{name} | f{shape} | dim={dim} |"
                  for name in ("sum.dim_IntList", "mean.dim", "amax.default", "amin.default")]
        lines += [f"aten.var.correction | f{shape} | dim={dim} |"]
        first = dim.strip("[]").split(",")[0]
        lines += [f"aten.{name} | f{shape} | dim={first} |" for name in ("max.dim", "min.dim", "argmax.default", "argmin.default",
                                                                         "prod.dim_int", "cumsum.default")]
        lines += [f"aten.any.dim | b{shape} | dim={first} |"]
        lines += [f"aten.{name}.default | f{shape} | dim={first} half_to_float=False |" for name in ("_softmax", "_log_softmax")]
        lines += [f"aten.{name} | f{shape} | |" for name in ("mean.default", "prod.default", "max.default", "min.default")]
    for rows, length in ((1, 64), (9, 33), (20, 100), (50, 8)):
        lines.append(f"aten.native_layer_norm.default | f[1,{rows},{length}] w[{length}] w[{length}] | normalized_shape=[{length}] eps=1e-05 |")
    for shape, channels in (("[1,8,6,5]", 8), ("[1,32,10,10]", 32), ("[1,64]", 64), ("[4,100]", 100), ("[1,16,1,1]", 16), ("[1,3,40]", 3)):
        lines.append(f"aten._native_batch_norm_legit_no_training.default | f{shape} w[{channels}] w[{channels}] w[{channels}] "
                     f"p[{channels}] | momentum=0.1 eps=1e-05 |")
    for channels, size, groups in ((8, 6, 2), (16, 10, 4), (12, 3, 12), (4, 20, 1)):
        lines += [f"aten.native_group_norm.default | f[1,{channels},{size},{size}] w[{channels}] w[{channels}] | N=1 C={channels} "
                  f"HxW={size * size} group={groups} eps=1e-05 |"]
    for shape, dims in (("[1,8,6,5]", "[0,2,3,1]"), ("[1,16,20,20]", "[0,2,3,1]"), ("[1,20,20,3]", "[0,3,1,2]"), ("[12,50]", "[1,0]"),
                        ("[2,3,4,32]", "[0,2,1,3]"), ("[6,2,100]", "[1,0,2]")):
        lines += [f"aten.permute.default | {kind}{shape} | dims={dims} |" for kind in "fc"]
    for shape, size in (("[1,8,1,5]", "[1,8,6,5]"), ("[1,1,40]", "[1,30,40]"), ("[1,16,1,1]", "[1,16,9,9]"), ("[1,1]", "[40,20]")):
        lines.append(f"aten.expand.default | f{shape} | size={size} |")
    for shape, dim, start, end, step in (("[1,8,6,5]", 1, 1, 7, 1), ("[1,40,32]", 2, 0, 16, 1), ("[1,3,30,30]", 3, 0, 30, 2),
                                         ("[20,64]", 0, 5, 15, 1), ("[1,16,9,9]", 2, 0, 9, 3)):
        for kind in "fc":
            lines += [f"aten.slice.Tensor | {kind}{shape} | dim={dim} start={start} end={end} step={step} |",
                      f"aten.select.int | {kind}{shape} | dim={dim} index=1 |",
                      f"aten.flip.default | {kind}{shape} | dims=[{dim}] |",
                      f"aten.roll.default | {kind}{shape} | shifts=[2] dims=[{dim}] |"]
    for shape, dim in (("[1,8,6,5]", 1), ("[1,40,16]", 2), ("[1,3,20,20]", 3), ("[10,64]", 0), ("[1,6,9,9]", 2)):
        lines += [f"aten.cat.default | (f{shape} f{shape}) | dim={dim} |", f"aten.stack.default | (f{shape} f{shape}) | dim={dim} |",
                  f"aten.cat.default | (c{shape} c{shape}) | dim={dim} |",
                  f"aten.constant_pad_nd.default | f{shape} | pad=[1,2] |",
                  f"aten.repeat.default | f{shape} | repeats={'[1,2,1,3]' if shape.count(',') == 3 else '[2,1,2]'} |"]
    for shape in ("[1,4,6,6]", "[1,16,8,5]", "[1,1,20,20]", "[1,32,3,3]"):
        lines += [f"aten.upsample_nearest2d.vec | f{shape} | scale_factors=[2.0,2.0] output_size=None |",
                  f"aten.upsample_bilinear2d.vec | f{shape} | scale_factors=[2.0,2.0] align_corners=False output_size=None |"]
    for words, width, count in ((20, 16, 9), (50, 64, 12), (30, 100, 3), (10, 8, 60)):
        lines.append(f"aten.embedding.default | w[{words},{width}] k[1,{count}] | |")
    # The parts of loops over slices: a counter, reading a slice, writing a slice, copying the carried values.
    for shape in ("[5]", "[24]", "[250]", "[3,7,41]"):
        lines += [f"aten.add.Scalar | l{shape} | other=1 |", f"aten.eq.Scalar | l{shape} | other=7 |"]
    for shape in ("[1,8]", "[1,24]", "[1,1200]", "[4,30,31]"):
        lines += [f"aten._to_copy.default | {kind}{shape} | dtype={to} |" for kind, to in (("c", "i8"), ("h", "i16"), ("l", "i64"), ("f", "f32"))]
    for steps, one in ((5, "[1,1,8]"), (100, "[1,1,64]"), (12, "[1,3,250]"), (40, "[1,2,20]"), (7, "[1,1,2048]")):
        whole = f"[{steps},{one[3:]}"
        for kind in "fch":
            lines += [f"aten.index_put.default | {kind}{whole} (k[1]) {kind}{one} | |",
                      f"aten.index_select.default | {kind}{whole} k[1] | dim=0 |"]
    for shape, upscale in (("[1,8,6,5]", 2), ("[1,16,10,10]", 2), ("[1,9,7,7]", 3), ("[1,4,20,16]", 2)):
        lines += [f"aten.pixel_shuffle.default | f{shape} | upscale_factor={upscale} |", f"aten.glu.default | f{shape} | dim=3 |"
                  if shape.endswith(",16]") or shape.endswith(",10]") else f"aten.glu.default | f[1,8,6,{upscale * 4}] | dim=3 |"]
    return lines


def programs_of(lines, most=48):
    """Lines gathered to programs: no two of one operator, whose kernels the firmware's report could not tell apart."""
    programs = []
    for line in dict.fromkeys(lines):
        operator = line.split(".")[1].replace("clone", "_to_copy")  # one kernel
        for program in programs:
            if operator not in program["operators"] and len(program["lines"]) < most:
                break
        else:
            program = {"operators": set(), "lines": []}
            programs.append(program)
        program["operators"].add(operator)
        program["lines"].append(line)
    return [program["lines"] for program in programs]


def network_programs(build, folder):
    """Programs with NPU calls: what these cost between the kernels."""
    made = []
    for network, target, io in (("digits8", "ethos-u55-128", "float"), ("digits8", "ethos-u55-128", "int8"),
                                ("mobile", "ethos-u85-256", "float"), ("mobile", "ethos-u85-256", "int8"),
                                ("residual", "ethos-u65-256", "float"), ("dense", "ethos-u55-64", "int8"),
                                ("residual", "ethos-u55-128", "int8")):
        out = os.path.join(folder, f"{network}-{target}-{io}.pte")
        models = os.path.join(ROOT, "models", network)
        subprocess.run([os.path.join(build, "bin", "carina"), "compile", models + ".pt2", "--target", target, "--calibrate",
                        models + ".npz", "--io", io, "-o", out], check=True, stdout=subprocess.DEVNULL)
        made.append([f"program {out}"])
    return made


def measure(build, only):
    with tempfile.TemporaryDirectory() as folder:
        programs = programs_of([line for line in cases() if any(text in line for text in only.split(","))])
        if not only:
            programs += network_programs(build, folder)
        tool = os.path.join(build, "bin", "kernel_cycles")
        text = "\n\n".join("\n".join(lines) for lines in programs) + "\n"
        done = subprocess.run([tool], input=text, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            print("some programs could not be measured", file=sys.stderr)
        return done.stdout.splitlines()


def solve(matrix, right):
    """Gauss with pivots; None where the columns depend on each other."""
    n = len(right)
    rows = [list(matrix[i]) + [right[i]] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        if abs(rows[pivot][i]) < 1e-9:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(n):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def least_squares(samples, works):
    """Non-negative cycles for each kind of work: the best set of kinds by trying all, few as they are."""
    best = None
    weights = [1 / max(y, SMALL) for _, y in samples]
    for mask in range(1, 1 << len(works)):
        chosen = [w for i, w in enumerate(works) if mask >> i & 1]
        if len(chosen) > len(samples):
            continue
        scale = {w: max(x.get(w, 0) * weight for (x, _), weight in zip(samples, weights)) or 1 for w in chosen}
        rows = [[x.get(w, 0) / scale[w] * weight for w in chosen] for (x, _), weight in zip(samples, weights)]
        right = [y * weight for (_, y), weight in zip(samples, weights)]
        n = len(chosen)
        normal = [[sum(r[i] * r[j] for r in rows) for j in range(n)] for i in range(n)]
        found = solve(normal, [sum(r[i] * y for r, y in zip(rows, right)) for i in range(n)])
        if found is None or min(found) < 0:
            continue
        loss = sum((sum(a * b for a, b in zip(r, found)) - y) ** 2 for r, y in zip(rows, right))
        # Each further kind of work must reduce the loss noticeably.
        score = loss * (1 + 0.02 * n)
        if best is None or score < best[0]:
            best = (score, {w: found[i] / scale[w] for i, w in enumerate(chosen)})
    return best[1] if best else {}


def fit(samples):
    """One kernel on one core: cycles by work, and the largest difference."""
    works = [w for w in WORKS if any(x.get(w, 0) for x, _ in samples)]
    cycles = least_squares(samples, works)
    # Least squares do not minimize the largest error: scale to be as far above the cheapest run as below the most expensive.
    ratios = [sum(x.get(w, 0) * c for w, c in cycles.items()) / max(y, SMALL) for x, y in samples if y >= SMALL]
    if ratios and min(ratios) > 0:
        cycles = {w: c * 2 / (min(ratios) + max(ratios)) for w, c in cycles.items()}
    error = max(abs(sum(x.get(w, 0) * c for w, c in cycles.items()) - y) / max(y, SMALL) for x, y in samples)
    return {w: float(f"{c:.5g}") for w, c in cycles.items()}, round(error, 3)


def list_errors(rows):
    """The kernels whose cost is further than 10 % from a run, with the cores' errors, into the page."""
    page = os.path.join(ROOT, "docs", "inference-time.md")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    head, lines = ["| kernel | types | " + " | ".join(CORES) + " |", "|---|---|" + "---|" * len(CORES)], []
    for row in sorted(rows.values(), key=lambda row: -max(row["error"].values())):
        if max(row["error"].values()) > 0.1:
            lines.append(f"| {row['kernel'].split('::')[1]} | {row['types']} | " +
                         " | ".join(f"{100 * row['error'][core]:.0f} %" for core in CORES) + " |")
    errors = [max(row["error"].values()) for row in rows.values()]
    lines = head + lines if lines else ["none."]
    lines.append("")
    lines.append(f"Of {len(errors)} kernels and types, {sum(e <= 0.05 for e in errors)} are within 5 % of every run on every core, "
                 f"{sum(e <= 0.1 for e in errors)} within 10 %; the worst is {100 * max(errors):.1f} % off.")
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    with open(page, "w", encoding="utf-8") as file:
        file.write(text[:begin] + "\n" + "\n".join(lines) + "\n" + text[end:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--samples")
    parser.add_argument("--only", default="", help="cases with one of these texts; the table keeps its other kernels")
    options = parser.parse_args()
    if options.samples and os.path.exists(options.samples):
        lines = open(options.samples).read().splitlines()
    else:
        lines = measure(options.build, options.only)
        if options.samples:
            with open(options.samples, "w") as out:
                out.write("\n".join(lines) + "\n")
    samples = defaultdict(lambda: defaultdict(list))
    for line in lines:
        run = json.loads(line)
        for call in run["calls"]:
            # The firmware's report searches a list of kernels, which for some of these programs is longer than for any network.
            if call["kernel"] == "(calls)" and (options.only or call["work"].get("run", 0) > LONGEST):
                continue
            samples[call["kernel"], call["types"]][run["core"]].append((call["work"], call["cycles"]))
    path = os.path.join(ROOT, "src", "cpu", "kernel_costs.json")
    kept = json.load(open(path))["kernels"] if options.only else []
    rows = {(row["kernel"], row["types"]): row for row in kept}
    for (kernel, types), by_core in samples.items():
        row = {"kernel": kernel, "types": types, "cycles": {}, "error": {}}
        for core in CORES:
            row["cycles"][core], row["error"][core] = fit(by_core[core])
        rows[kernel, types] = row
        worst = max(row["error"].values())
        if worst > 0.1:
            print(f"{kernel} {types}: up to {100 * worst:.0f} % off: {row['error']}")
    with open(path, "w") as out:
        out.write('{"work": ' + json.dumps(WORKS) + ',\n "cores": ' + json.dumps(CORES) + ',\n "kernels": [\n  ')
        out.write(",\n  ".join(json.dumps(rows[key]) for key in sorted(rows)))
        out.write("\n]}\n")
    list_errors(rows)
    errors = sorted(max(row["error"].values()) for row in rows.values())
    print(f"{len(rows)} kernels and types; error within 5 % for {sum(e <= 0.05 for e in errors)}, 10 % for {sum(e <= 0.1 for e in errors)}")


if __name__ == "__main__":
    main()
