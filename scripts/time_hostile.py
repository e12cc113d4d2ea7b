#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times what becomes of hostile files: every command over every file, and prints the worst of each command.

usage: time_hostile.py CARINA FILE|FOLDER... [--all] [--commands NAME,...] [--share I/N] [--seconds S] [--megabytes M]

Files of less than a megabyte (.pte, .bpte, .encn, .pt2, .tflite, .tosa, .ir, .npz, .elf, .bin). Seconds are user + system time of the
whole process, megabytes its largest resident set. Inputs of programs are zeros, made from what `carina check --json` says.
--all prints every row, --commands takes some of the commands only (run,check,inspect --check), --share every N-th file from the I-th (0, 1, ...).
Exit status 1 when a command takes more than S seconds (2) or M megabytes (500), or ends by a signal.
"""
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

DTYPES = {"float32": "<f4", "int8": "|i1", "uint8": "|u1", "int16": "<i2", "int32": "<i4", "int64": "<i8", "bool": "|b1", "float64": "<f8"}


def measured(command):
    """(status, user + system seconds, MB, last line of what it said)"""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, preexec_fn=limits)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        said.seek(0, os.SEEK_END)
        said.seek(max(0, said.tell() - 3000))
        lines = [line for line in said.read().decode(errors="replace").splitlines() if "error" in line] or [""]
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, lines[-1]


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


def bytes_of_zeros(carina, file, path):
    """Arrays for the inputs of a compiled Ethos-N network, whose sizes `carina inspect` says."""
    text = subprocess.run([carina, "inspect", file], capture_output=True, text=True).stdout
    sizes = [int(line.split()[3]) for line in text.splitlines() if line.strip().startswith("input buffer")]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for i, size in enumerate(sizes):
            with archive.open(f"in{i}.npy", "w") as stream:
                stream.write(array_head("|u1", [size]) + bytes(size))
    return path if sizes else None


def array_head(dtype, sizes):
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({''.join(f'{s},' for s in sizes)}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()


def zeros(carina, file, path):
    """Arrays for the inputs that the program has; nothing when it cannot be checked."""
    told = path + ".json"
    subprocess.run([carina, "check", file, "--json", told], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not os.path.exists(told):
        return None
    with open(told, encoding="utf-8") as stream:
        methods = json.load(stream).get("methods", [])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for i, text in enumerate(entry["type"] for entry in (methods[0].get("inputs", []) if methods else [])):
            dtype, _, shape = text.partition("[")
            sizes = [int(s) for s in shape.rstrip("]").split(",") if s]
            if dtype not in DTYPES:
                return None
            count = 1
            for size in sizes:
                count *= size
            with archive.open(f"in{i}.npy", "w") as stream:
                stream.write(array_head(DTYPES[dtype], sizes))
                left = count * int(DTYPES[dtype][-1])
                while left > 0:
                    stream.write(bytes(min(left, 1 << 20)))
                    left -= 1 << 20
    return path


def commands(carina, file, scratch):
    yield "inspect", [carina, "inspect", file]
    stem, extension = os.path.splitext(file)
    out = os.path.join(scratch, "out")
    target = ["--target", "ethos-u55-128"]
    if extension in (".pte", ".bpte"):
        yield "inspect --commands", [carina, "inspect", file, "--commands"]
        yield "inspect --check", [carina, "inspect", file, "--check"]
        yield "check", [carina, "check", file]
        yield "profile", [carina, "profile", file]
        yield "report", [carina, "report", file, "-o", out + ".html"]
        yield "fit", [carina, "fit", file, "--board", "corstone-300"]
        yield "diff", [carina, "diff", file, file]
        yield "compile", [carina, "compile", file, *target, "-o", out + ".pte"]
        data = zeros(carina, file, os.path.join(scratch, "zeros.npz"))
        if data:
            yield "run", [carina, "run", file, "--input", data]
            yield "run --check", [carina, "run", file, "--input", data, "--check"]
            yield "evaluate", [carina, "evaluate", file, "--data", data, "--task", "compare"]
    if extension == ".encn":
        yield "inspect --commands", [carina, "inspect", file, "--commands"]
        yield "inspect --check", [carina, "inspect", file, "--check"]
        data = bytes_of_zeros(carina, file, os.path.join(scratch, "zeros.npz"))
        if data:
            yield "run", [carina, "run", file, "--input", data]
            yield "run --check", [carina, "run", file, "--input", data, "--check"]
    if extension in (".pt2", ".tflite", ".tosa", ".ir"):
        samples = stem.removesuffix("_in") + "_cal.npz"
        data = ["--calibrate", samples] if extension == ".pt2" and os.path.exists(samples) else []
        for name in ("ethos-u55-128", "ethos-u85-256", "ethos-n78-4tops-4ple", "cpu"):
            yield "compile", [carina, "compile", file, "--target", name, "-o", out + ".pte", *data]
        for name in ("ethos-u55-128", "ethos-u85-256"):
            for option in (["--optimize", "size"], ["--effort", "3"]):
                yield "compile " + " ".join(option), [carina, "compile", file, "--target", name, *option, "-o", out + ".pte", *data]
        yield "compile 16x8", [carina, "compile", file, "--quantize", "int16x8", *target, "-o", out + ".pte", *data]
        yield "ops", [carina, "ops", file, *target]
        yield "opt", [carina, "opt", file, "-o", out + ".ir"]
        for name in ("verify", "profile"):
            yield name, [carina, name, file, *target, *data]
        yield "sweep", [carina, "sweep", file, "--targets", target[1], *data]
        yield "report", [carina, "report", file, *target, "-o", out + ".html", *data]
        yield "fit", [carina, "fit", file, "--board", "corstone-300", *target, *data]
    if extension in (".tflite", ".tosa") and os.path.exists(stem + ".npz"):
        yield "run", [carina, "run", file, "--input", stem + ".npz"]
    if extension == ".elf":
        yield "run", [carina, "run", file]
        yield "run --platform", [carina, "run", file, "--platform", "corstone-300"]


def files(arguments):
    for argument in arguments:
        if os.path.isdir(argument):
            for folder, _, names in sorted(os.walk(argument)):
                yield from (os.path.join(folder, name) for name in sorted(names))
        else:
            yield argument


def main():
    share = [0, 1]
    arguments, everything, chosen, most_seconds, most_megabytes = [], False, [], 2.0, 500.0
    words = iter(sys.argv[1:])
    for word in words:
        if word == "--all":
            everything = True
        elif word == "--commands":
            chosen = next(words).split(",")
        elif word == "--share":
            share = [int(number) for number in next(words).split("/")]
        elif word == "--seconds":
            most_seconds = float(next(words))
        elif word == "--megabytes":
            most_megabytes = float(next(words))
        else:
            arguments.append(word)
    if len(arguments) < 2:
        sys.exit(__doc__.split("\n\n")[1])
    carina, kinds = arguments[0], (".pte", ".bpte", ".pt2", ".tflite", ".tosa", ".ir", ".npz", ".elf", ".bin", ".encn")
    worst, beyond, count = {}, [], 0
    began = time.time()
    for number, file in enumerate(files(arguments[1:])):
        if number % share[1] != share[0] or not file.endswith(kinds) or os.path.getsize(file) >= 1_000_000:
            continue
        count += 1
        with tempfile.TemporaryDirectory() as scratch:
            for name, command in commands(carina, file, scratch):
                if chosen and name not in chosen:
                    continue
                status, seconds, megabytes, line = measured(command)
                row = (seconds, megabytes, status, os.path.basename(file), line)
                slowest, largest, runs = worst.get(name, (row, row, 0))
                worst[name] = (max(slowest, row), max(largest, row, key=lambda r: r[1]), runs + 1)
                if status < 0 or seconds > most_seconds or megabytes > most_megabytes:
                    beyond.append((name, row))
                if everything:
                    print(f"{name:20} {seconds:7.2f} s {megabytes:6.0f} MB  {status:3}  {row[3]:40} {line[:150]}", flush=True)
    print(f"{count} files, {time.time() - began:.0f} s")
    for name, (slowest, largest, runs) in worst.items():
        print(f"{name:20} {runs:5} runs, at most {slowest[0]:6.2f} s ({slowest[3]}), {largest[1]:4.0f} MB ({largest[3]})")
    for name, row in beyond:
        print(f"BEYOND  {name}: {row[0]:.2f} s, {row[1]:.0f} MB, status {row[2]}, {row[3]}: {row[4]}")
    sys.exit(1 if beyond else 0)


if __name__ == "__main__":
    main()
