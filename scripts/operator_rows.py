# SPDX-License-Identifier: Apache-2.0
"""The rows of ATen operators: src/aten/schemas.json and src/aten/operators/*.json.

schemas.json is PyTorch's interface, as it is: {"aten.conv2d.default": ["Tensor input, Tensor weight, ...", "Tensor", "d"]},
arguments with types and defaults, results, flags (c: Core ATen, p: pointwise, d: run_decompositions() replaces it).

operators/FAMILY.json says what Carina knows of an operator, one row each:
  "summary"      what it computes, in a line
  "instead"      what the NPU computes in its place, where the operator stays on the CPU: the remedy in messages
  "schema"       for operators that schemas.json lacks
  "class"        name of the typed accessor where the derived one would mislead
  "tosa"         the operator has a form in TOSA (a rule in src/lower): "elementwise" where an element of the result depends on
                 the operands' elements at its place only, else "other"
  "infer"        function of aten::infer that checks a node and gives its types; these operators get typed accessors
  "aliases"      other names of the same operator: readers replace them, nothing behind a reader sees them
  "inplace"      forms that write into self; functionalize() replaces them
  "view"         the result shares memory with the operand
  "impure"       gives other numbers each time, or is there for its effect (the key may leave the overload away: all of them)
  "identity"     gives its operand unchanged where types are equal
  "quantize"     how ranges of operands and results belong together (aten::QuantizeRule)
  "homogeneous"  f(s * x) = s * f(x) for s > 0, channel by channel
  "range"        what results cannot leave
  "domain"       what operands cannot leave
  "cost"         class of the cycles that the CPU needs for an element (aten::CostClass)
  "work"         class of what the float executor does beyond visiting every element (aten::WorkClass)
  "cpu"          "FUNCTION KERNEL": the function of the runtime and ExecuTorch's name of the out-variant that it is
  "outs"         names of the out-variant's results where they are not out, or out0, out1, ...
  "cases"        sample nodes, "OPERANDS ; ATTRIBUTES ; NOTE" (pipeline/operator_cases.cpp)
A key with "::" is a kernel that no operator of torch.export becomes; "arguments" is its schema, "operator" one that computes
the same.
"""
import glob
import json
import os

KEYS = {"summary", "instead", "schema", "class", "infer", "tosa", "aliases", "inplace", "view", "impure", "identity", "quantize", "homogeneous",
        "range", "domain", "cost", "work", "cpu", "outs", "cases"}
KERNEL_KEYS = {"summary", "cpu", "operator", "arguments"}


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


def functional_name(name):
    """aten.relu_.default -> aten.relu.default"""
    namespace, base, overload = name.split(".", 2)
    return f"{namespace}.{base[:-1]}.{overload}"


class Table:
    """All rows, with what they imply: `schemas` of every operator, `rows` by full name, `kernels` without operator."""

    def __init__(self, schema_file, folder):
        self.schemas = json.load(open(schema_file))
        self.rows, self.kernels, places = {}, {}, {}
        every = {}
        for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
            for name, row in json.load(open(path), object_pairs_hook=lambda pairs: unique(pairs, path)).items():
                if name in places:
                    raise SystemExit(f"{path}: {name} has a row in {places[name]} too")
                places[name] = path
                unknown = set(row) - (KERNEL_KEYS if "::" in name else KEYS)
                if unknown or "summary" not in row:
                    raise SystemExit(f"{path}: {name}: " + (f"unknown {sorted(unknown)}" if unknown else "no summary"))
                (self.kernels if "::" in name else every)[name] = row
        for name, row in every.items():
            if "schema" in row:
                self.schemas[name] = row["schema"]
        for name, row in every.items():
            named = [name] if name in self.schemas else [o for o in self.schemas if o.rsplit(".", 1)[0] == name]
            if not named:
                raise SystemExit(f"{places[name]}: no schema of {name}")
            for operator in named:
                self.rows[operator] = row
        self.add_inplace()
        self.aliases = {alias: name for name, row in self.rows.items() for alias in row.get("aliases", [])}
        for alias, name in self.aliases.items():
            self.check_alias(alias, name)

    def add_inplace(self):
        """Schemas of in-place forms: those of the functional operators."""
        self.inplace = {}
        for name, row in self.rows.items():
            for form in row.get("inplace", []):
                # A functional form can have another overload name (floor_divide.default, floor_divide_.Tensor).
                functional = self.schemas.get(functional_name(form), self.schemas[name])
                # The tensor written to is `self` in torch, even if the functional form calls it `input`.
                arguments = functional[0].replace("Tensor input", "Tensor self", 1)
                self.schemas[form] = [arguments, functional[1], "i" + functional[2].replace("c", "")]
                self.inplace[form] = name

    def check_alias(self, alias, name):
        """Arguments are taken over by position."""
        if alias not in self.schemas or alias in self.rows:
            raise SystemExit(f"{alias}: an alias of {name} needs a schema and no row of its own")
        kinds = [[a.partition("=")[0].rsplit(" ", 1)[0] for a in split_arguments(self.schemas[n][0])] for n in (alias, name)]
        if kinds[0] != kinds[1] or self.schemas[alias][1] != self.schemas[name][1]:
            raise SystemExit(f"{alias}: takes {kinds[0]}, {name} takes {kinds[1]}")


def unique(pairs, path):
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise SystemExit(f"{path}: {name} twice")
    return dict(pairs)


def write_if_changed(path, text):
    try:
        if open(path).read() == text:
            return
    except OSError:
        pass
    with open(path, "w") as out:
        out.write(text)
