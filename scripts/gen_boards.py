#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of src/firmware/boards.json as C++: gen_boards.py boards.json OUT.inc

A row: name, title, cpu, npu (targets, the first is taken where none is named), memories (name, address, kib, holds: kinds of memory
of a system configuration, or data: stack and what else only the CPU needs), source, date; optional: system_config (a section of
vela.ini with its name), or clock_mhz of the target's default one; memory_mode (default: the target's); note.
"""
import json
import sys

from operator_rows import write_if_changed

HOLDS = {"Sram", "Dram", "OnChipFlash", "OffChipFlash", "data"}


def text(value):
    return json.dumps(value, ensure_ascii=True)


def row(board):
    for memory in board["memories"]:
        if not set(memory["holds"]) <= HOLDS:
            raise SystemExit(f"{board['name']}: {memory['name']} holds what does not exist")
    memories = ", ".join(
        "{%s, %s, %d, {%s}}" % (text(m["name"]), m["address"], m["kib"] * 1024, ", ".join(text(h) for h in m["holds"]))
        for m in board["memories"])
    config = board.get("system_config")
    ini = ""
    if config:
        ini = f"[System_Config.{config['name']}]\n" + "".join(f"{key}={value}\n" for key, value in config.items() if key != "name")
    fields = [text(board[key]) for key in ("name", "title", "cpu")]
    fields.append("true" if board["helium"] else "false")
    fields.append("{%s}" % ", ".join(text(npu) for npu in board["npu"]))
    fields += [text(config["name"] if config else ""), text(ini), str(float(board.get("clock_mhz", 0)) * 1e6),
               text(board.get("memory_mode", "")), "{%s}" % memories, text(board.get("note", "")), text(board["source"]),
               text(board["date"])]
    return "{" + ", ".join(fields) + "},"


def main():
    boards = json.load(open(sys.argv[1]))
    lines = ["// Made by scripts/gen_boards.py from src/firmware/boards.json."] + [row(board) for board in boards]
    write_if_changed(sys.argv[2], "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
