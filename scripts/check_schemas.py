#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the JSON of every command against the schemas in docs/schema.

usage: check_schemas.py CARINA

Members that a schema does not describe are errors here, though readers have to accept them. Firmware is left out where there
is no cross compiler. Exit status 77 where python3-jsonschema is not installed.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = os.path.join(ROOT, "models")
INSPECTED = ("tflite/conv8_3.tflite", "tflite_mixed/branches.tflite", "ethosn/conv3x3.encn")


def strict(schema):
    """The schema with no member allowed that it does not describe."""
    if isinstance(schema, list):
        return [strict(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema and "object" in schema["type"]:
        result["additionalProperties"] = False
    return result


class Checker:
    def __init__(self, carina):
        self.carina = carina
        self.seen = set()
        self.failed = 0

    def run(self, *arguments):
        done = subprocess.run([self.carina, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"carina {' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")
        return done.stdout

    def check(self, text, what):
        document = json.loads(text)
        name = document["schema"].removeprefix("carina.").split("/")[0]
        with open(os.path.join(ROOT, "docs", "schema", name + ".json"), encoding="utf-8") as file:
            schema = json.load(file)
        self.seen.add(name)
        for error in jsonschema.Draft202012Validator(strict(schema)).iter_errors(document):
            self.failed += 1
            print(f"{what}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")

    def json(self, *arguments):
        self.check(self.run(*arguments, "--json", "-"), " ".join(arguments[:2]))


def main():
    checker = Checker(os.path.abspath(sys.argv[1]))
    digits = [os.path.join(MODELS, "digits8.pt2"), "--calibrate", os.path.join(MODELS, "digits8.npz")]
    held_out = os.path.join(MODELS, "digits8_eval.npz")
    u55 = ["--target", "ethos-u55-128"]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        checker.run("compile", *digits, *u55, "-o", "a.pte", "--report", "a")
        checker.run("compile", *digits, *u55, "-o", "b.pte", "--report", "b", "--cpu-module", "block2")
        checker.run("compile", *digits, "--target", "cpu", "-o", "c.pte", "--report", "c")
        for report in ("a", "b", "c"):
            with open(os.path.join(report, "report.json"), encoding="utf-8") as file:
                checker.check(file.read(), "compile --report")
        checker.json("compile", *digits, *u55, "-o", "d.pte")
        checker.json("compile", *digits, *u55, "-o", "d.pte", "--auto-precision", "--min-sqnr", "42")
        checker.json("profile", *digits, *u55)
        checker.json("profile", "a.pte")
        n78 = ["--target", "ethos-n78-4tops-4ple"]
        checker.run("compile", *digits, *n78, "-o", "n.pte")
        checker.json("profile", *digits, *n78)
        checker.json("verify", *digits, *n78, "--samples", "1")
        checker.json("run", "n.pte", "--input", held_out)
        checker.json("sweep", *digits, "--targets", "ethos-u55-128,ethos-u85-256")
        checker.json("ops", *digits, *u55, "--cpu-op", "add")
        checker.json("verify", *digits, *u55, "--samples", "1")
        checker.run("compile", *digits, *u55, "-o", "a.tosa")
        checker.json("verify", "a.pte", "--against", "a.tosa")
        methods = os.path.join(ROOT, "tests", "data", "methods")
        several = [text for name in ("write", "read") for text in (
            "--method", f"{name}={methods}/{name}.pt2", "--calibrate", f"{name}={methods}/{name}.npz")]
        checker.json("verify", *several, *u55, "--samples", "1")
        checker.run("compile", *several, "--method", f"reset={methods}/reset.pt2", *u55, "-o", "m.pte", "--report", "m")
        checker.json("run", "m.pte", "--input", "reset=")
        checker.json("check", "m.pte")
        checker.json("profile", "m.pte")
        checker.json("check", "b.pte")
        for program in ("a.pte", "b.pte", "c.pte"):
            checker.json("run", program, "--input", held_out)
        with open("carina.toml", "w", encoding="utf-8") as file:
            file.write(f'[[network]]\nmodel = "{digits[0]}"\ncalibrate = "{digits[2]}"\ntargets = ["ethos-u55-128"]\n'
                       f'data = "{held_out}"\nsamples = 5\ngates.max-sram = 1000000\n')
        checker.json("ci")
        language = os.path.join(ROOT, "tests", "data", "language")
        text = [text for name in ("prefill", "decode") for text in (
            "--method", f"{name}={language}/language{'_prefill' * (name == 'prefill')}.pt2",
            "--calibrate", f"{name}={language}/language{'_prefill' * (name == 'prefill')}.npz")]
        checker.run("compile", *text, "--target", "ethos-u85-256", "--constant-method", "get_max_context_len=16", "-o", "l.pte")
        checker.json("generate", "l.pte", "--tokenizer", os.path.join(language, "tokenizer.json"), "--prompt", "GNU N", "--tokens", "3")
        checker.json("fit", *digits, "--board", "himax-we2")
        checker.json("boards")
        checker.json("targets")
        checker.json("inspect", "a.pte", "--check")
        checker.run("compile", *digits, *u55, "-o", "a.bin")
        data = os.path.join(ROOT, "tests", "data")
        for file in ("a.pte", "b.pte", "c.pte", "m.pte", "n.pte", "a.bin", "a.tosa", digits[0], digits[2],
                     *(os.path.join(data, file) for file in INSPECTED)):
            checker.json("inspect", file)
        checker.json("diff", "a", "b")
        checker.json("diff", "a.pte", "c.pte")
        checker.json("evaluate", *digits, *u55, "--data", held_out, "--samples", "20")
        if shutil.which("arm-none-eabi-g++"):
            checker.json("firmware", "a.pte", "--platform", "corstone-300", "-o", "a.elf", "--input", held_out)
            checker.json("inspect", "a.elf")
            checker.run("run", "a.elf", "--json", "platform.json")
            with open("platform.json", encoding="utf-8") as file:
                checker.check(file.read(), "run a.elf")
        else:
            checker.seen |= {"firmware", "platform"}
    known = {os.path.splitext(os.path.basename(path))[0] for path in glob.glob(os.path.join(ROOT, "docs/schema/*.json"))}
    for name in sorted(known - checker.seen):
        checker.failed += 1
        print(f"docs/schema/{name}.json: no output was held against it")
    sys.exit(1 if checker.failed else 0)


main()
