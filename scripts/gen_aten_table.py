#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the rows of ATen operators (operator_rows.py) say, for the compiler.

usage: gen_aten_table.py SCHEMAS.json OPERATORS_FOLDER OUT_FOLDER

OUT_FOLDER/aten.json            the dialect's table, as gen_dialect.py reads it
OUT_FOLDER/operator_facts.inc   {OpId, OperatorFacts} of every operator that has a row (src/aten/operator_facts.cpp)
OUT_FOLDER/operator_aliases.inc {alias, operator} by name
OUT_FOLDER/operator_cases.inc   {operator, operands, attributes, note} of the sample nodes
"""
import json
import os
import sys

from operator_rows import Table, split_arguments, write_if_changed

KINDS = {"int": "int", "float": "real", "bool": "bool", "number": "scalar", "str": "string", "int[]": "ints",
         "bool[]": "ints", "float[]": "reals", "number[]": "reals", "str[]": "strings", "Device": "string",
         "Generator": "string", "dtype": "type"}
# torch's numbering of element types, for defaults written as numbers.
SCALAR_TYPES = {"0": "u8", "1": "i8", "2": "i16", "3": "i32", "4": "i64", "5": "f16", "6": "f32", "7": "f64", "11": "bool",
                "15": "bf16"}
QUANTIZE = {"own", "function", "rounding", "clamp", "shared", "compare", "weighted", "norm", "conversion"}
COSTS = {"function", "conversion"}
WORK = {"convolution", "product", "addition", "attention", "einsum", "recurrence", "window", "order"}
TOSA = {"elementwise", "other"}


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


def inference(table, name, flags):
    """The function that infers the types of an operator's results; None: the file says them."""
    row = table.rows.get(name, {})
    if "infer" in row or "i" not in flags:
        return row.get("infer")
    # In-place views change the shape of self, the others write into it.
    written = table.rows.get(table.inplace.get(name), {})
    return written.get("infer") if written.get("view") else "inPlace"


def traits_of(table, name, flags):
    base = name.split(".")[1]
    is_copy = base.endswith("_copy") or "unsafe_" in base  # copies the data that a view would share
    row = table.rows.get(table.aliases.get(name, name), {})
    if "i" in flags:
        traits = ["inplace"]
    else:
        traits = [] if row.get("impure") else ["pure"]
    traits += [t for f, t in (("p", "pointwise"), ("c", "core"), ("d", "composite")) if f in flags]
    if row.get("view") and not is_copy:
        traits.append("view")
    return traits


def dialect(table):
    ops, classes = [], set()
    for name in sorted(table.schemas):
        arguments, results, flags = table.schemas[name]
        row = table.rows.get(name, {})
        op = {"name": name, "class": row.get("class", class_name(name)), "operands": [], "attributes": []}
        if op["class"] in classes:
            op["class"] += "Default" if name.endswith(".default") else "Overload"
        classes.add(op["class"])
        for text in split_arguments(arguments):
            which, declared = argument(text)
            op["operands" if which == "operand" else "attributes"].append(declared)
        declared = split_arguments(results)
        op["results"] = [{"name": "output" if len(declared) == 1 else f"output{i}",
                          "arity": "variadic" if r.endswith("[]") else "one"} for i, r in enumerate(declared)]
        op["traits"] = traits_of(table, name, flags)
        function = inference(table, name, flags)
        if function:
            op["infer"] = function
        op["view"] = bool(function) or "c" in flags
        ops.append(op)
    return {"namespace": "carina::aten", "header": "aten/ops.hpp", "include": "aten/infer.hpp", "ops": ops}


def quoted(text):
    return json.dumps(text)


def checked(row, key, allowed, name):
    value = row.get(key)
    if value is not None and value not in allowed:
        raise SystemExit(f'{name}: "{key}": "{value}" is none of {", ".join(sorted(allowed))}')
    return value


def facts(table, classes):
    lines = []
    for name in sorted(table.rows):
        row = table.rows[name]
        fields = [f".{key} = {quoted(row[key])}" for key in ("summary", "instead") if key in row]
        for key, allowed, kind in (("quantize", QUANTIZE, "QuantizeRule"), ("cost", COSTS, "CostClass"),
                                   ("work", WORK, "WorkClass"),
                                   ("tosa", TOSA, "TosaForm")):
            value = checked(row, key, allowed, name)
            if value:
                fields.append(f".{key} = {kind}::{value.capitalize()}")
        fields += [f".{key} = true" for key in ("identity", "homogeneous") if row.get(key)]
        for key in ("range", "domain"):
            if key in row:
                fields.append(f".{key} = {{{row[key][0]}, {row[key][1]}}}")
        lines.append(f"{{OpId::{classes[name]}, {{{', '.join(fields)}}}}},")
    return "\n".join(lines) + "\n"


def cases(table):
    lines = []
    for name, row in table.rows.items():
        for case in row.get("cases", []):
            fields = [field.strip() for field in case.split(";")]
            fields += [""] * (3 - len(fields))
            lines.append(f"{{{', '.join(quoted(field) for field in [name] + fields)}}},")
    return "\n".join(lines) + "\n"


def main():
    schemas, folder, out = sys.argv[1:4]
    table = Table(schemas, folder)
    written = dialect(table)
    classes = {op["name"]: op["class"] for op in written["ops"]}
    aliases = "".join(f"{{{quoted(a)}, {quoted(table.aliases[a])}}},\n" for a in sorted(table.aliases))
    for name, text in (("aten.json", json.dumps(written, indent=0)), ("operator_facts.inc", facts(table, classes)),
                       ("operator_aliases.inc", aliases), ("operator_cases.inc", cases(table))):
        write_if_changed(os.path.join(out, name), text)


if __name__ == "__main__":
    main()
