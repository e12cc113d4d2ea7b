#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicts what was measured on boards, for the table of docs/boards.md.

usage: board_predictions.py CARINA [--nuvoton FOLDER] [--fixtures FOLDER] [--check]

The programs and networks are not part of the repository: --nuvoton is a checkout of OpenNuvoton/ML_M55M1_SampleCode, --fixtures the
fixture collection (default: $CARINA_FIXTURES, or `shared` beside the repository). Writes the table into docs/boards.md, or with
--check compares it and ends with status 1 where it differs: rows whose files are there are predicted anew, of the others the
measurement and the difference are held against the figures beside them, and the boards of the page against those of
src/firmware/boards.json. A model that is only there as a C array (NAME.tflite.cpp) is read from that.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BEGIN, END = "<!-- predictions -->", "<!-- end -->"
M55M1 = "Nuvoton M55M1, U55-256, 220 MHz"
NUEDGEWISE = "M55M1BSP-3.01.002/SampleCode/NuEdgeWise"
MPS4 = "MPS4 FPGA, U85-1024"

# Board, network, measured cycles of the NPU's clock, file: a compiled program, or a network to compile for a target.
ROWS = [
    (M55M1, "RNNoise", 113000, "nuvoton", f"{NUEDGEWISE}/AudioDenoise/Model/rnnoise_INT8_vela_H256.tflite.cpp", None),
    (M55M1, "YOLO-fastest face 192", 1678108, "nuvoton", f"{NUEDGEWISE}/FaceDetection/Model/yolo-fastest_192_face_v4_vela.tflite", None),
    (M55M1, "YOLOv8n 192, objects", 6470588, "nuvoton", f"{NUEDGEWISE}/ObjectDetection_YOLOv8n/Model/YOLOv8n-od.tflite", None),
    (M55M1, "YOLOv8n 192, poses", 6727829, "nuvoton", f"{NUEDGEWISE}/PoseLandmark_YOLOv8n/Model/YOLOv8n-pose.tflite", None),
    (M55M1, "hand landmarks 224", 5569620, "nuvoton", f"{NUEDGEWISE}/HandLandmark/Model/hand_landmark.tflite", None),
    (M55M1, "MobileFaceNet 112", 5069124, "nuvoton", f"{NUEDGEWISE}/FaceRecognition/Model/face_mobilenet.tflite", None),
    (M55M1, "anti-spoofing MobileNetV3 128", 3956835, "nuvoton",
     f"{NUEDGEWISE}/SafetyRecognition/Model/anti-spoof-mn3_full_integer_quant_per_tensor_vela.tflite", None),
    (MPS4, "KWS (MicroNet medium)", 97362, "fixtures", "vectors/cycles/streams/kws_micronet_m.shapes.tflite", "ethos-u85-1024"),
    (MPS4, "MobileNetV2 224", 1453996, "fixtures", "fixtures/models/mobilenet_v2.pt2", "ethos-u85-1024"),
]
SOURCES = {
    M55M1: "Nuvoton's ML_M55M1_SampleCode, READMEs of NuEdgeWise: 220 MHz by inferences per second, CPU included",
    MPS4: "Kwon-GiHwan/mps4_prototyping_board, canonical_board_cost.csv, programs of Vela 5.0.0",
}


def model_file(path, folder):
    """The file itself, or the model in a C array."""
    if not path.endswith(".cpp"):
        return path
    with open(path, encoding="utf-8") as file:
        array = file.read().split("nn_model[]", 1)[1].split("{", 1)[1].split("}", 1)[0]
    out = os.path.join(folder, os.path.basename(path)[:-4])
    with open(out, "wb") as file:
        file.write(bytes(int(number, 16) for number in re.findall(r"0x([0-9a-fA-F]{1,2})\b", array)))
    return out


def predicted(carina, path, target):
    options = [] if target is None else ["--target", target]
    if path.endswith(".pt2"):
        options += ["--calibrate", path[:-4] + ".npz"]
    done = subprocess.run([carina, "profile", path, *options, "--json", "-"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return sum(part["cycles"] for part in json.loads(done.stdout)["parts"])


def predicted_text(cycles, measured, target):
    if target is not None:
        return f"Carina's own program {cycles:,}"
    off = 100 * (cycles / measured - 1)
    return f"{cycles:,}, {abs(off):.0f} % {'less' if off < 0 else 'more'}"


def shown_cycles(shown):
    """The cycles that a row of the page has; nothing where it has none."""
    found = re.search(r"(\d[\d,]*)", shown.split(" | ")[3]) if shown.count(" | ") == 4 else None
    return int(found.group(1).replace(",", "")) if found else None


def table(carina, folders, shown):
    """The table, and how many rows were predicted. Rows without their files keep the cycles of `shown`."""
    lines = ["| board | network | measured | predicted | source of the measurement |", "|---|---|---|---|---|"]
    board, made = None, 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, network, measured, place, path, target) in enumerate(ROWS):
            file = os.path.join(folders[place] or "", path)
            if folders[place] and os.path.exists(file):
                cycles = predicted(carina, model_file(file, folder), target)
                made += 1
            elif shown is None:
                raise SystemExit(f"there is no {file}: give --{place} FOLDER")
            else:
                cycles = shown_cycles(shown[number + 2]) if number + 2 < len(shown) else None
            text = predicted_text(cycles, measured, target) if cycles is not None else "nothing"
            same = name == board
            lines.append(f"| {'the same' if same else name} | {network} | {measured:,} | {text} | {'the same' if same else SOURCES[name]} |")
            board = name
    return "\n" + "\n".join(lines) + "\n", made


def boards_amiss(text):
    """Boards of the tool that the page's table lacks, or tells another date or clock of."""
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text[:text.index(BEGIN)].split("\n") if line.startswith("| ")]
    with open(os.path.join(ROOT, "src", "firmware", "boards.json"), encoding="utf-8") as file:
        boards = json.load(file)
    boards = boards["boards"] if isinstance(boards, dict) else boards
    for board in boards:
        row = next((row for row in rows if board["name"] in row[0].split(", ")), None)
        clock = board.get("clock_mhz")
        if row is None or row[-1] != board["date"] or (clock and f"{clock} MHz" not in " ".join(row)):
            yield board["name"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("carina")
    parser.add_argument("--nuvoton")
    parser.add_argument("--fixtures", default=os.environ.get("CARINA_FIXTURES", os.path.join(os.path.dirname(ROOT), "shared")))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    page = os.path.join(ROOT, "docs", "boards.md")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    shown = text[begin:end].strip().split("\n") if options.check else None
    made, rows = table(os.path.abspath(options.carina), {"nuvoton": options.nuvoton, "fixtures": options.fixtures}, shown)
    if options.check:
        amiss = list(boards_amiss(text))
        if amiss:
            raise SystemExit(f"docs/boards.md lacks boards, or tells another date or clock of them than boards.json: {', '.join(amiss)}")
        if text[begin:end] != made:
            print(f"docs/boards.md differs from what is predicted now:{made}", end="")
            sys.exit(1)
        print(f"{rows} of {len(ROWS)} rows predicted anew, the others agree with themselves")
        return
    with open(page, "w", encoding="utf-8") as file:
        file.write(text[:begin] + made + text[end:])


main()
