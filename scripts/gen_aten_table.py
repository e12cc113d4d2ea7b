#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the aten dialect's table, as gen_dialect.py reads it, from the operator schemas.

usage: gen_aten_table.py SCHEMAS.json OPERATORS.json OUT.json

SCHEMAS.json:   {"aten.conv2d.default": ["Tensor input, Tensor weight, Tensor? bias=None, int[] stride=[1, 1]", "Tensor", "d"]}
                arguments with types and defaults, results, flags (c: Core ATen, p: pointwise, d: run_decompositions()
                replaces it).
OPERATORS.json: "schemas": operators beyond SCHEMAS.json, in the same form;
                "inplace": names like "aten.relu_.default", whose schema is that of the functional operator;
                "infer": {inference function: [operators]}; these and the Core ATen operators get typed accessors;
                "class": {operator: accessor class} where the derived name would mislead.
"""
import json
import re
import sys

KINDS = {"int": "int", "float": "real", "bool": "bool", "number": "scalar", "str": "string", "int[]": "ints",
         "bool[]": "ints", "float[]": "reals", "number[]": "reals", "str[]": "strings", "Device": "string",
         "Generator": "string", "dtype": "type"}
# torch's numbering of element types, for defaults written as numbers.
SCALAR_TYPES = {"0": "u8", "1": "i8", "2": "i16", "3": "i32", "4": "i64", "5": "f16", "6": "f32", "7": "f64", "11": "bool",
                "15": "bf16"}
VIEWS = {"view", "reshape", "flatten", "unflatten", "permute", "transpose", "t", "T", "mT", "numpy_T", "swapaxes", "movedim",
         "expand", "expand_as", "broadcast_to", "squeeze", "unsqueeze", "slice", "select", "narrow", "split",
         "split_with_sizes", "chunk", "unbind", "diagonal", "as_strided", "unfold", "view_as", "alias", "detach",
         "contiguous", "to"}
IMPURE = {"rand", "randn", "randint", "randperm", "bernoulli", "normal", "uniform", "exponential", "rand_like", "randn_like",
          "_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range",
          "sym_constrain_range_for_size"}


def split_arguments(text):
    """Splits at commas outside of brackets and quotes."""
    parts, depth, quoted, current = [], 0, False, ""
    for ch in text:
        if ch == '"':
            quoted = not quoted
        if not quoted and ch == "[":
            depth += 1
        if not quoted and ch == "]":
            depth -= 1
        if ch == "," and depth == 0 and not quoted:
            parts.append(current.strip())
            current = ""
        else:
            current += ch
    return parts + [current.strip()] if current.strip() else parts


def argument(text):
    """('operand' | 'attribute', table row) of "int[] stride=[1, 1]"."""
    declared, _, default = text.partition("=")
    kind, name = declared.rsplit(" ", 1)
    optional = kind.endswith("?")
    base = kind.rstrip("?") if optional else kind
    if base in ("Tensor", "Tensor[]", "Tensor?[]"):
        arity = "variadic" if base.endswith("[]") else "optional" if optional else "one"
        return "operand", {"name": name, "arity": arity, "nullable": "?[]" in base}
    if base == "int" and name.endswith("dtype"):
        base = "dtype"
        default = SCALAR_TYPES.get(default, default)
    row = {"name": name, "kind": KINDS[base], "optional": optional}
    if default != "":
        row["default"] = default
    return "attribute", row


def class_name(name):
    """aten.add.Tensor -> AddTensor, aten.conv2d.default -> Conv2d, aten.relu_.default -> ReluInplace,
    aten._softmax.default -> PrivateSoftmax."""
    namespace, base, overload = name.split(".", 2)
    inplace = base.endswith("_") and not base.startswith("__")
    words = [w for w in base.split("_") if w]
    if overload != "default":
        words += [w for w in overload.split("_") if w]
    if namespace not in ("aten", "quantized_decomposed"):
        words.insert(0, namespace)
    if base.startswith("_") and not base.startswith("__"):
        words.insert(0, "private")
    return "".join(w[:1].upper() + w[1:] for w in words) + ("Inplace" if inplace else "")


def main():
    schemas = json.load(open(sys.argv[1]))
    ours = json.load(open(sys.argv[2]))
    schemas.update(ours["schemas"])
    infer = {op: function for function, ops in ours["infer"].items() for op in ops}
    for name in ours["inplace"]:
        namespace, base, overload = name.split(".", 2)
        functional = schemas[f"{namespace}.{base[:-1]}.{overload}"]
        # What is written is `self` in torch, also where the functional form calls it `input`.
        arguments = functional[0].replace("Tensor input", "Tensor self", 1)
        schemas[name] = [arguments, functional[1], "i" + functional[2].replace("c", "")]
        if base[:-1] in VIEWS:  # these change the shape of self, the others write into it
            infer[name] = infer[f"{namespace}.{base[:-1]}.{overload}"]
    for name, (_, _, flags) in schemas.items():
        if "i" in flags:
            infer.setdefault(name, "inPlace")
    missing = [name for name in infer if name not in schemas]
    if missing:
        raise SystemExit(f"{sys.argv[2]}: no schema of {', '.join(missing)}")

    ops, classes = [], {}
    for name in sorted(schemas):
        arguments, results, flags = schemas[name]
        op = {"name": name, "class": ours["class"].get(name, class_name(name)), "operands": [], "attributes": []}
        if op["class"] in classes:
            op["class"] += "Default" if name.endswith(".default") else "Overload"
        classes[op["class"]] = name
        for text in split_arguments(arguments):
            which, row = argument(text)
            op["operands" if which == "operand" else "attributes"].append(row)
        declared = split_arguments(results)
        op["results"] = [{"name": "output" if len(declared) == 1 else f"output{i}",
                          "arity": "variadic" if r.endswith("[]") else "one"} for i, r in enumerate(declared)]
        base = name.split(".")[1]
        traits = []
        if "i" in flags:
            traits.append("inplace")
        elif base not in IMPURE:
            traits.append("pure")
        traits += [t for f, t in (("p", "pointwise"), ("c", "core"), ("d", "composite")) if f in flags]
        if base.rstrip("_") in VIEWS and "i" not in flags:
            traits.append("view")
        op["traits"] = traits
        if name in infer:
            op["infer"] = infer[name]
        op["view"] = name in infer or "c" in flags
        ops.append(op)
    table = {"namespace": "carina::aten", "header": "aten/ops.hpp", "include": "aten/infer.hpp", "ops": ops}
    text = json.dumps(table, indent=0)
    try:
        unchanged = open(sys.argv[3]).read() == text
    except OSError:
        unchanged = False
    if not unchanged:
        open(sys.argv[3], "w").write(text)


if __name__ == "__main__":
    main()
