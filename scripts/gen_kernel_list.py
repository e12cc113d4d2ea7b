#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the runtime's list of CPU kernels from the rows of ATen operators (operator_rows.py).

usage: gen_kernel_list.py SCHEMAS.json OPERATORS_FOLDER OUT.def

A line each, sorted by name: KERNEL(function in namespace kernels, operator name, arguments of its schema, the functional
operator that it serves in the aten dialect or "").
"""
import json
import os
import sys

from operator_rows import Table, split_arguments, write_if_changed

# Arguments of functional forms that out-variants lack: the output tensor determines them.
OF_THE_RESULT = {"layout", "device", "pin_memory"}
TYPES = {"number": "Scalar", "number?": "Scalar?", "int dtype": "ScalarType dtype", "int? dtype": "ScalarType? dtype",
         "int? out_dtype": "ScalarType? out_dtype", "int? memory_format": "MemoryFormat? memory_format"}


def out_variant(schema, outs):
    """Arguments of the out-variant of a functional schema."""
    arguments, results = split_arguments(schema[0]), split_arguments(schema[1])
    names = [a.partition("=")[0].rsplit(" ", 1)[1] for a in arguments]
    makes_type = "device" in names or "memory_format" in names
    kept = []
    for text, name in zip(arguments, names):
        if name in OF_THE_RESULT or (name == "dtype" and makes_type):
            continue
        declared, equals, default = text.partition("=")
        kind = declared.rsplit(" ", 1)[0]
        declared = TYPES.get(declared, declared.replace(kind, TYPES.get(kind, kind), 1))
        kept.append(declared + equals + default.replace('"', ""))
    outs = outs or (["out"] if len(results) == 1 else [f"out{i}" for i in range(len(results))])
    for letter, result, name in zip("abcdef", results, outs):
        kept.append(f"{result.replace('Tensor', f'Tensor({letter}!)', 1)} {name}")
    return ", ".join(kept)


def main():
    schemas, folder, out = sys.argv[1:4]
    table = Table(schemas, folder)
    kernels = {name: (row["cpu"], row["arguments"], row.get("operator", "")) for name, row in table.kernels.items()}
    for operator, row in table.rows.items():
        if "cpu" in row:
            function, name = row["cpu"].split()
            if name in kernels:
                raise SystemExit(f"{operator}: the kernel {name} has another row")
            kernels[name] = (function, out_variant(table.schemas[operator], row.get("outs")), operator)
    lines = ["// Made by scripts/gen_kernel_list.py from src/aten/operators."]
    for name in sorted(kernels):
        function, arguments, operator = kernels[name]
        lines.append(f"KERNEL({function}, {json.dumps(name)}, {json.dumps(arguments)}, {json.dumps(operator)})")
    os.makedirs(os.path.dirname(out), exist_ok=True)
    write_if_changed(out, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
