#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates a dialect's operator table and typed accessors from its JSON table.

usage: gen_dialect.py TABLE.json OUT_DIR      writes OUT_DIR/ops.hpp and OUT_DIR/ops.cpp

TABLE.json:
  "namespace": "carina::tosa"
  "include":   header that declares the functions named by "infer" (namespace::infer::NAME) and "verify"
               (namespace::check::NAME)
  "enums":     {"ResizeMode": ["UNKNOWN", "NEAREST", "BILINEAR"]}
  "ops": [{
    "name":       "tosa.CONV2D",
    "class":      "Conv2d"            typed accessor class; absent: only the descriptor (id "Conv2d" from the name)
    "operands":   [{"name": "input", "arity": "one" | "optional" | "variadic", "nullable": false}]
    "results":    [{"name": "output", "arity": "one" | "variadic"}]
    "attributes": [{"name": "pad", "kind": "ints", "optional": false, "default": "[0, 0]", "enum": "ResizeMode"}]
                  kinds: bool int real scalar string type ints reals strings enum tensor
    "infer": "conv2d", "verify": "conv2d", "traits": ["pure", "pointwise", "inplace", "view", "core", "composite"],
    "regions": 0,
    "types": {"T T -> T": "int fp: i32; fp: f16 f32", "i8 i8 -> i32 acc i32": "int"}, "kernel": "matmul", "work": "product"
  }]
  "facts":  headers of OpFacts and of the bits kProInt, ... ; the file gets factsOf(def), and its operators say what they take:
            operands their "rank" (4; [1]: one or more; absent: any) and whether they are "constant", "types" the element types of
            operands, results and accumulator with the profiles and extensions that have them, T standing for each type of the list,
            "kernel" the interpreter's function (namespace::kernels::NAME), "work" the class of what it does beyond visiting every
            element (namespace::WorkClass)
  "types":  {"float": {...}}: types of several operators, which name them
"""
import json
import keyword
import os
import sys

KINDS = {
    "bool": ("Bool", "bool", "bool"), "int": ("Int", "int64_t", "int64_t"), "real": ("Real", "double", "double"),
    "scalar": ("Scalar", None, "ir::Attribute"), "string": ("String", "std::string", "const std::string&"),
    "type": ("Type", "DType", "DType"), "ints": ("Ints", "ir::Ints", "const ir::Ints&"),
    "reals": ("Reals", "ir::Reals", "const ir::Reals&"), "strings": ("Strings", "ir::Strings", "const ir::Strings&"),
    "enum": ("Enum", "int64_t", None), "tensor": ("Tensor", "Tensor", "const Tensor&"),
}
TRAITS = {"pure": "kPure", "pointwise": "kPointwise", "inplace": "kInPlace", "view": "kView", "core": "kCoreAten",
          "composite": "kComposite"}
RESERVED = {"default", "this", "float", "double", "int", "bool", "operator", "new", "delete", "register", "union",
            "template", "class", "struct", "switch", "case", "node", "def", "create", "node_", "auto", "char", "long",
            "short", "signed", "unsigned", "const", "static", "return", "for", "while", "if", "else", "and", "or", "not",
            "xor", "true", "false", "builder", "result"}


def identifier(name):
    parts = [p for p in name.replace("-", "_").split("_") if p]
    text = "".join([parts[0][0].lower() + parts[0][1:]] + [p[0].upper() + p[1:] for p in parts[1:]]) if parts else "x"
    if name.isupper():
        text = name.lower()
    return text + "_" if text in RESERVED else text


def class_of(op):
    if op.get("class"):
        return op["class"]
    base = op["name"].split(".", 1)[1]
    parts = [p for p in base.replace(".", "_").replace("-", "_").split("_") if p]
    text = "".join(p[:1].upper() + p[1:].lower() if p.isupper() else p[:1].upper() + p[1:] for p in parts)
    if base.split(".")[0].endswith("_"):
        text += "Inplace"
    return "Op" + text if text[0].isdigit() else text


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def attribute_types(attribute, enums):
    """(C++ type returned by the accessor, parameter type of create, what NodeMaker::attribute takes of parameter p)."""
    kind, stored, passed = KINDS[attribute["kind"]]
    optional = attribute.get("optional", False)
    if attribute["kind"] == "enum":
        name = attribute["enum"]
        return name, name, lambda p: f"static_cast<int64_t>({p})"
    if attribute["kind"] == "scalar":
        return "ir::Attribute", "ir::Attribute", lambda p: f"std::move({p})"
    if optional:
        t = f"std::optional<{stored}>"
        return t, t, lambda p: f"ir::optionalToAttribute(std::move({p}))"
    return passed, stored, lambda p: f"std::move({p})"


def default_argument(attribute):
    """The attribute's default as an initializer of create's parameter; None where it has none."""
    text, kind = attribute.get("default"), attribute["kind"]
    if text == "None":
        return "{}"
    if text is None or kind in ("tensor", "type"):
        return None
    if kind == "enum":
        return f"{attribute['enum']}::{text}"
    if kind == "scalar":
        return f"int64_t{{{text}}}" if text.lstrip("-").isdigit() else text
    return text.lower() if kind == "bool" else text.replace("[", "{").replace("]", "}")


def emit_accessors(op, enums, out, definitions):
    """The class of an operator, in `out`, and what is not in the class, in `definitions`."""
    cls = op["_class"]
    operands, attributes = op.get("operands", []), op.get("attributes", [])
    out.append(f"/// {op['name']}")
    out.append(f"class {cls} : public ir::OpView {{")
    out.append(" public:")
    out.append("  using OpView::OpView;")
    out.append("  static const ir::OpDef& def();")
    for i, operand in enumerate(operands):
        name = identifier(operand["name"])
        if operand.get("arity", "one") == "variadic":
            out.append(f"  std::span<ir::Value* const> {name}() const {{ return node_->operandGroup({i}); }}")
        else:
            out.append(f"  ir::Value* {name}() const {{ return node_->operand({i}); }}")
    taken = {identifier(o["name"]) for o in operands}
    for i, attribute in enumerate(attributes):
        name = identifier(attribute["name"])
        if name in taken:
            name += "Attr"
        taken.add(name)
        attribute["_id"] = name
        returned, _, _ = attribute_types(attribute, enums)
        kind, stored, _ = KINDS[attribute["kind"]]
        if attribute["kind"] == "enum":
            body = f"static_cast<{returned}>(node_->attributeAs<int64_t>({i}))"
        elif attribute["kind"] == "scalar":
            body = f"node_->attribute({i})"
        elif attribute.get("optional"):
            body = f"ir::optionalAttribute<{stored}>(node_, {i})"
        else:
            body = f"node_->attributeAs<{stored}>({i})"
        out.append(f"  {returned} {name}() const {{ return {body}; }}")
    parameters, steps = ["const ir::Builder& builder"], []
    for operand in operands:
        name = identifier(operand["name"])
        arity = operand.get("arity", "one")
        if arity == "variadic":
            parameters.append(f"std::vector<ir::Value*> {name}")
            steps.append(f"variadic(std::move({name}))")
        elif arity == "optional":
            parameters.append(f"ir::Value* {name}")
            steps.append(f"optional({name})")
        else:
            parameters.append(f"ir::Value* {name}")
            steps.append(f"one({name})")
    for attribute in attributes:
        _, parameter, store = attribute_types(attribute, enums)
        parameters.append(f"{parameter} {attribute['_id']}")
        steps.append(f"attribute({store(attribute['_id'])})")
    out.append("  /// Result types are inferred when not given." if op.get("infer") else "  /// Result types must be given.")
    parameters.append("std::vector<ir::Type> types")
    declared = list(parameters)  # trailing parameters get their default arguments
    defaults = [default_argument(a) for a in attributes] + ["{}" if op.get("infer") else None]
    while defaults and defaults[-1] is not None:
        declared[len(parameters) - len(attributes) - 2 + len(defaults)] += f" = {defaults.pop()}"
    out.append(f"  static {cls} create({', '.join(declared)});")
    definitions.append(f"{cls} {cls}::create({', '.join(parameters)}) {{")
    definitions.append("  ir::NodeMaker maker(builder, def());")
    definitions += [f"  maker.{step};" for step in steps]
    definitions.append(f"  return {cls}(maker.create(std::move(types)));")
    definitions.append("}")
    for i, r in enumerate(op.get("results", [])):
        name = identifier(r["name"])
        if name in taken or r.get("arity", "one") == "variadic":
            continue
        taken.add(name)
        out.append(f"  ir::Value* {name}() const {{ return node_->result({i}); }}")
    if [r.get("arity", "one") for r in op.get("results", [])] == ["one"]:
        out.append("  operator ir::Value*() const { return node_->result(); }")
    out.append("};")
    out.append("")


EXTENSIONS = {"int": "kProInt", "fp": "kProFp", "int4": "kExtInt4", "int16": "kExtInt16", "bf16": "kExtBf16", "fft": "kExtFft"}
DTYPES = {"bool": "DType::Bool", "i4": "DType::Int4", "i8": "DType::Int8", "i16": "DType::Int16", "i32": "DType::Int32",
          "i48": "DType::Int48", "f16": "DType::Float16", "bf16": "DType::BFloat16", "f32": "DType::Float32",
          "shape": "DType::Shape", "any": "TypeRow::kAny", "none": "TypeRow::kNone"}


def type_rows(types):
    """Initializers of TypeRow, one for each combination."""
    rows = []
    for pattern, lists in types.items():
        operands, _, results = pattern.partition(" -> ")
        results, _, accumulator = results.partition(" acc ")
        for entry in lists.split("; "):
            extensions, _, of = entry.partition(": ")
            for dtype in of.split() or ["T"]:
                def codes(text):
                    return ", ".join(f"uint8_t({DTYPES[dtype if word == 'T' else word]})" for word in text.split())
                rows.append("{{%s}, {%s}, %s, %s}" % (codes(operands), codes(results), codes(accumulator or "none"),
                                                      " | ".join(EXTENSIONS[e] for e in extensions.split())))
    return rows


def operand_fact(operand):
    rank = operand.get("rank", [0])
    least, most = (rank[0], "OperandFact::kMaxRank") if isinstance(rank, list) else (rank, rank)
    return "{%s, %s, %s}" % (least, most, "true" if operand.get("constant") else "false")


def emit_facts(table, array):
    """The definition of factsOf(); rows come from `array`."""
    rows = []
    for op in table["ops"]:
        types = op.get("types", {})
        facts = [array("TypeRow", type_rows(table["types"][types] if isinstance(types, str) else types)),
                 array("OperandFact", [operand_fact(o) for o in op["operands"]] if types else []),
                 f"&kernels::{op['kernel']}" if "kernel" in op else "nullptr", "WorkClass::" + op.get("work", "elements").title()]
        rows.append("    {%s}," % ", ".join(facts))
    return ["constexpr OpFacts kFacts[] = {"] + rows + ["};"]


def main():
    table_path, out_dir = sys.argv[1], sys.argv[2]
    table = json.load(open(table_path))
    namespace, enums, ops = table["namespace"], table.get("enums", {}), table["ops"]
    seen = {}
    for op in ops:
        cls = class_of(op)
        if cls in seen:
            raise SystemExit(f"{table_path}: {op['name']} and {seen[cls]} both become class {cls}")
        seen[cls] = op["name"]
        op["_class"] = cls

    h = ["// Generated by scripts/gen_dialect.py from " + os.path.basename(table_path) + "; do not edit.", "#pragma once", "",
         "#include <optional>", "#include <span>", "#include <string_view>", "#include <utility>", "#include <vector>", "",
         '#include "ir/op_view.hpp"', "", f"namespace {namespace} {{", ""]
    for name, enumerators in enums.items():
        h.append(f"enum class {name} : int64_t {{ " + ", ".join(f"{e} = {i}" for i, e in enumerate(enumerators)) + " };")
    h += ["", "/// Identifies an operator in a switch: opId(node).", "enum class OpId : uint16_t {"]
    h += [f"  {op['_class']} = {i}," for i, op in enumerate(ops)]
    h += ["};", "", "/// All descriptors, in the order of OpId.", "std::span<const ir::OpDef> operators();",
          "/// By full name; null when the dialect has no such operator.", "const ir::OpDef* findOperator(std::string_view name);",
          "/// Whether a node belongs to this dialect.", "bool isOperator(const ir::Node* node);",
          "inline OpId opId(const ir::Node* node) { return static_cast<OpId>(node->def().id); }", ""]
    creations = []
    for op in ops:
        if op.get("view", True):
            emit_accessors(op, enums, h, creations)
    h += [f"}}  // namespace {namespace}"]

    c = ["// Generated by scripts/gen_dialect.py from " + os.path.basename(table_path) + "; do not edit.",
         f'#include "{table["header"]}"', "", "#include <algorithm>", "#include <array>", "#include <unordered_map>", ""]
    for header in [table["include"]] * ("include" in table) + table.get("facts", []):
        c.append(f'#include "{header}"')
    c += ["", f"namespace {namespace} {{", "namespace {", "using ir::Arity;", "using ir::AttributeKind;", ""]
    for name, enumerators in enums.items():
        c.append(f"[[maybe_unused]] constexpr std::string_view kEnum{name}[] = {{" + ", ".join(quote(e) for e in enumerators) + "};")
    arity = {"one": "Arity::One", "optional": "Arity::Optional", "variadic": "Arity::Variadic"}
    shared = {}

    def array(ctype, rows):
        """The name of a constant array with these rows; equal arrays are shared. '{}' when empty."""
        if not rows:
            return "{}"
        key = (ctype, tuple(rows))
        if key not in shared:
            shared[key] = f"k{ctype.removeprefix('ir::')}s{len(shared)}"
            c.append(f"constexpr {ctype} {shared[key]}[] = {{" + ", ".join(rows) + "};")
        return shared[key]

    definitions = []
    for i, op in enumerate(ops):
        operand_rows = ["{%s, %s, %s}" % (quote(o["name"]), arity[o.get("arity", "one")], "true" if o.get("nullable") else "false")
                        for o in op.get("operands", [])]
        result_rows = ["{%s, %s}" % (quote(r["name"]), arity[r.get("arity", "one")]) for r in op.get("results", [])]
        attribute_rows = []
        for a in op.get("attributes", []):
            enumerators = f"kEnum{a['enum']}" if a["kind"] == "enum" else "{}"
            attribute_rows.append("{%s, AttributeKind::%s, %s, %s, %s}" % (
                quote(a["name"]), KINDS[a["kind"]][0], "true" if a.get("optional") else "false",
                quote(str(a.get("default", ""))), enumerators))
        operands, results = array("ir::OperandDef", operand_rows), array("ir::ResultDef", result_rows)
        attributes = array("ir::AttributeDef", attribute_rows)
        traits = " | ".join("ir::" + TRAITS[t] for t in op.get("traits", [])) or "0"
        infer = f"&infer::{op['infer']}" if op.get("infer") else "nullptr"
        verify = f"&check::{op['verify']}" if op.get("verify") else "nullptr"
        definitions.append(f"    {{{quote(op['name'])}, {i}, {op.get('regions', 0)}, {traits}, {operands}, {results}, {attributes}, {infer}, {verify}}},")
    facts = emit_facts(table, array) if "facts" in table else []
    c += ["", f"constexpr std::array<ir::OpDef, {len(ops)}> kOperators{{{{"] + definitions + ["}};", ""] + facts + ["}  // namespace", "",
          "std::span<const ir::OpDef> operators() { return kOperators; }", "",
          "const ir::OpDef* findOperator(std::string_view name) {",
          "  static const std::unordered_map<std::string_view, const ir::OpDef*> index = [] {",
          "    std::unordered_map<std::string_view, const ir::OpDef*> map;",
          "    for (const ir::OpDef& def : kOperators) map.emplace(def.name, &def);",
          "    return map;",
          "  }();",
          "  auto it = index.find(name);",
          "  return it == index.end() ? nullptr : it->second;",
          "}", "",
          "bool isOperator(const ir::Node* node) {",
          "  return &node->def() >= kOperators.data() && &node->def() < kOperators.data() + kOperators.size();",
          "}", ""]
    if facts:
        c += ["const OpFacts& factsOf(const ir::OpDef& def) {",
              '  CARINA_CHECK(def.id < std::size(kFacts), "not an operator of the tosa dialect");', "  return kFacts[def.id];", "}", ""]
    for i, op in enumerate(ops):
        if op.get("view", True):
            c.append(f"const ir::OpDef& {op['_class']}::def() {{ return kOperators[{i}]; }}")
    c += creations + ["", f"}}  // namespace {namespace}"]

    os.makedirs(out_dir, exist_ok=True)
    for name, lines in (("ops.hpp", h), ("ops.cpp", c)):
        path, text = os.path.join(out_dir, name), "\n".join(lines) + "\n"
        if not os.path.exists(path) or open(path).read() != text:
            open(path, "w").write(text)


if __name__ == "__main__":
    main()
