#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Invalid rows of operators are refused with their file and operator.

usage: operator_rows_test.py SCRIPTS_FOLDER
"""
import json
import os
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
from operator_rows import Table  # noqa: E402

SCHEMAS = {"aten.abs.default": ["Tensor self", "Tensor", "cp"], "aten.absolute.default": ["Tensor self", "Tensor", ""],
           "aten.add.Tensor": ["Tensor self, Tensor other, number alpha=1", "Tensor", "cp"]}


def load(*families):
    """The table of some rows, or the text of the refusal."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "schemas.json"), "w") as out:
            json.dump(SCHEMAS, out)
        os.mkdir(os.path.join(folder, "operators"))
        for i, text in enumerate(families):
            with open(os.path.join(folder, "operators", f"{i}.json"), "w") as out:
                out.write(text if isinstance(text, str) else json.dumps(text))
        try:
            return Table(os.path.join(folder, "schemas.json"), os.path.join(folder, "operators"))
        except SystemExit as refusal:
            return str(refusal)


def expect_refusal(words, *families):
    refusal = load(*families)
    assert isinstance(refusal, str), f"not refused: {families}"
    for word in words:
        assert word in refusal, f"{refusal!r} lacks {word!r}"


good = load({"aten.abs.default": {"summary": "absolute value", "aliases": ["aten.absolute.default"],
                                  "inplace": ["aten.abs_.default"]}})
assert good.aliases == {"aten.absolute.default": "aten.abs.default"}, good.aliases
assert good.schemas["aten.abs_.default"] == ["Tensor self", "Tensor", "ip"], good.schemas["aten.abs_.default"]

expect_refusal(["aten.abs.default", "no summary", "0.json"], {"aten.abs.default": {"infer": "unarySame"}})
expect_refusal(["aten.abs.default", "kwantize"], {"aten.abs.default": {"summary": "x", "kwantize": "own"}})
expect_refusal(["no schema of aten.abz.default"], {"aten.abz.default": {"summary": "x"}})
expect_refusal(["aten.abs.default", "0.json", "1.json"], {"aten.abs.default": {"summary": "x"}},
               {"aten.abs.default": {"summary": "x"}})
expect_refusal(["aten.abs.default twice"], '{"aten.abs.default": {"summary": "x"}, "aten.abs.default": {"summary": "y"}}')
expect_refusal(["aten.add.Tensor", "aten.abs.default", "takes"],
               {"aten.abs.default": {"summary": "x", "aliases": ["aten.add.Tensor"]}})
expect_refusal(["aten.absolute.default", "row of its own"],
               {"aten.abs.default": {"summary": "x", "aliases": ["aten.absolute.default"]},
                "aten.absolute.default": {"summary": "x"}})
