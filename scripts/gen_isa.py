#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes gen/npu/isa/isa.hpp from src/npu/isa/isa.json: command opcodes, and per architecture the tables of commands, fields,
enums, host registers and PMU events. Header-only C++17 without library types beyond integers.

usage: gen_isa.py isa.json out.hpp"""
import json
import os
import sys

SHORT = {"ethos-u55": "U55", "ethos-u65": "U65", "ethos-u85": "U85"}
USERS = ["CONV", "DEPTHWISE", "POOL", "ELEMENTWISE", "RESIZE", "DMA_START"]
SIGNED = {None: "Sign::None", True: "Sign::Signed", "by_tensor_type": "Sign::ByTensorType"}


def rows_of(rows, arch):
    """The rows that hold for an architecture, as they are there."""
    return [{**row, **row.get(arch, {})} for row in rows if arch in row.get("on", SHORT)]


def mirror(command):
    """The host registers that show the state of a SET command: one of 32 or 64 bits, and one for the shift where that lies apart."""
    opcode, rule = command["opcode"], command.get("register", {})
    if rule is None:
        return []
    if command["kind"] == "cmd0":
        offset, width = 0x800 + 0x100 * (opcode >> 7 & 1) + 4 * (opcode & 0x3F), 32
    else:
        offset, width = 0xA00 + 0x100 * (opcode >> 7) + 0x40 * (opcode >> 4 & 7) + 8 * (opcode & 15), 64
    first = {"name": command["name"].removeprefix("NPU_SET_"), "offset": f"0x{offset:04x}", "access": "RW", "width": width,
             "state_of": command["name"], **rule}
    shift = {**first, "name": first["name"] + "_SHIFT", "offset": f"0x{offset + 4:04x}"}
    return [first, shift] if "shift" in rule else [first]


def architecture(data, arch):
    """What the file says of one architecture: commands by opcode, registers by offset, events by number."""
    entry = {name: rows_of(data[name], arch) for name in ("enums", "commands", "registers", "pmu_events")}
    operations = {command["name"].removeprefix("NPU_OP_") for command in entry["commands"] if is_operation(command)}
    for command in entry["commands"]:
        command["used_by"] = [user for user in command.get("used_by", []) if user in operations]
        if not is_operation(command):
            entry["registers"] += mirror(command)
    for port in rows_of(data["ports"], arch):
        entry["pmu_events"] += [{**event, "name": f"{port['name']}_{event['name']}", "id": port["first"] + event["id"],
                                 "desc": f"{event['desc']} on {port['name'][:-1]} port {port['name'][-1]}"}
                                for event in data["port_events"]]
    entry["registers"].sort(key=lambda register: int(register["offset"], 16))
    entry["pmu_events"].sort(key=lambda event: event["id"])
    return {**data["architectures"][arch], **entry}


def is_operation(command):
    return command["name"].startswith("NPU_OP_")


def camel(name):
    return "".join(part[:1].upper() + part[1:].lower() for part in name.split("_"))


def text(value):
    return json.dumps(value)


def opcode_enum(kind, name, architectures):
    opcodes = {}
    for architecture in architectures.values():
        for command in architecture["commands"]:
            if command["kind"] == kind:
                known = opcodes.setdefault(command["name"], command["opcode"])
                if known != command["opcode"]:
                    sys.exit(f"{command['name']} has two opcodes")
    lines = [f"enum class {name} : uint16_t {{"]
    lines += [f"  {camel(n.removeprefix('NPU_'))} = {hex(o)}," for n, o in opcodes.items()]
    return lines + ["};"]


def tables(arch, entry):
    short = SHORT[arch]
    out = [f"namespace {short.lower()} {{"]
    index = {}
    for n, enum in enumerate(entry["enums"]):
        index[enum["name"]] = n
        out.append(f"inline constexpr EnumValue kEnum{camel(enum['name'])}[] = {{")
        out.append("  " + ", ".join(f"{{{text(v)}, {i}}}" for v, i in enum["values"]) + "};")
    out.append("inline constexpr Enumeration kEnums[] = {")
    out += [f"  {{{text(e['name'])}, kEnum{camel(e['name'])}, {len(e['values'])}}}," for e in entry["enums"]]
    out.append("};")
    out.append("inline constexpr Field kFields[] = {")
    first, count = [], 0
    for command in entry["commands"]:
        first.append(count)
        for f in command.get("fields", []):
            parts = f["parts"] + [[0, 0]] * (2 - len(f["parts"]))
            enum = f"&kEnums[{index[f['enum']]}]" if "enum" in f else "nullptr"
            out.append("  {%s, {{%d, %d}, {%d, %d}}, %d, %s, %s}," % (
                text(f["name"]), *parts[0], *parts[1], f.get("bias", 0), SIGNED[f.get("signed")], enum))
            count += 1
    out.append("};")
    out.append("inline constexpr Command kCommands[] = {")
    for command, start in zip(entry["commands"], first):
        users = sum(1 << USERS.index(u) for u in command["used_by"])
        out.append("  {%s, %#x, %s, %s, &kFields[%d], %d, %#x, %s}," % (
            text(command["name"]), command["opcode"], "true" if command["kind"] == "cmd1" else "false",
            "true" if is_operation(command) else "false", min(start, count - 1), len(command.get("fields", [])), users,
            text(command["desc"])))
    out.append("};")
    out.append("inline constexpr Register kRegisters[] = {")
    for r in entry["registers"]:
        out.append("  {%s, %s, %s, %d, %s, %d, %d, %s}," % (
            text(r["name"]), r["offset"], "Access::" + r["access"].title(), r["width"], r.get("reset", "0x0"),
            r.get("count", 1), r.get("stride", 0), text(r["state_of"]) if "state_of" in r else "nullptr"))
    out.append("};")
    out.append("inline constexpr PmuEvent kPmuEvents[] = {")
    out += ["  {%s, %d, %s, %s}," % (text(e["name"]), e["id"], text(e["unit"]), text(e["desc"])) for e in entry["pmu_events"]]
    out.append("};")
    out.append("inline constexpr Architecture kArchitecture = {%s, %s, %d, %d, %d, %s, kCommands, %d, kRegisters, %d, "
               "kPmuEvents, %d};" % (text(arch), text(entry["version"]), entry["config_product"],
                                     entry["command_stream_version"], entry["address_bits"], entry["id_word"],
                                     len(entry["commands"]), len(entry["registers"]), len(entry["pmu_events"])))
    out.append(f"}}  // namespace {short.lower()}")
    return out


PRELUDE = """// SPDX-License-Identifier: Apache-2.0
// Generated from src/npu/isa/isa.json by scripts/gen_isa.py. The programming interface of Ethos-U55, U65 and U85 as tables.
#pragma once

#include <cstdint>

namespace carina::npu::isa {

struct EnumValue {
  const char* name;
  uint16_t value;
};
struct Enumeration {
  const char* name;
  const EnumValue* values;
  uint8_t count;
};
enum class Sign : uint8_t { None, Signed, ByTensorType };
/// Bits [lsb, lsb + width) of the command, word 0 first; width 0: absent.
struct FieldPart {
  uint8_t lsb, width;
};
/// A field in one or two parts, low part first. Logical value = stored + bias.
struct Field {
  const char* name;
  FieldPart parts[2];
  uint8_t bias;
  Sign sign;
  const Enumeration* enumeration;
};
/// Bits of Command::usedBy.
enum User : uint8_t { kConv = 1, kDepthwise = 2, kPool = 4, kElementwise = 8, kResize = 16, kDma = 32 };
struct Command {
  const char* name;  // NPU_SET_..., NPU_OP_...
  uint16_t opcode;
  bool twoWords;
  bool operation;
  const Field* fields;
  uint8_t fieldCount;
  uint8_t usedBy;
  const char* description;
};
enum class Access : uint8_t { Ro, Rw, Wo };
/// Host register; arrays have count > 1 and a stride. stateOf: the command whose state it mirrors.
struct Register {
  const char* name;
  uint32_t offset;
  Access access;
  uint8_t width;
  uint32_t reset;
  uint16_t count, stride;
  const char* stateOf;
};
struct PmuEvent {
  const char* name;
  uint16_t id;
  const char* unit;
  const char* description;
};
struct Architecture {
  const char* name;     // "ethos-u55"
  const char* version;  // architecture version
  uint8_t product;      // CONFIG.product
  uint8_t commandStreamVersion;
  uint8_t addressBits;
  uint32_t idWord;
  const Command* commands;
  uint16_t commandCount;
  const Register* registers;
  uint16_t registerCount;
  const PmuEvent* pmuEvents;
  uint16_t pmuEventCount;
};
"""


def main():
    source, target = sys.argv[1], sys.argv[2]
    with open(source, encoding="utf-8") as f:
        data = json.load(f)
    architectures = {arch: architecture(data, arch) for arch in data["architectures"]}
    out = [PRELUDE, "/// One-word commands. Names that exist on some architectures only share the space."]
    out += opcode_enum("cmd0", "Cmd0", architectures)
    out.append("\n/// Two-word commands.")
    out += opcode_enum("cmd1", "Cmd1", architectures) + [""]
    for arch, entry in architectures.items():
        out += tables(arch, entry) + [""]
    out.append("}  // namespace carina::npu::isa\n")
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w", encoding="utf-8") as f:
        f.write("\n".join(out))


if __name__ == "__main__":
    main()
