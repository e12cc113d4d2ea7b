#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of carina report in a real browser: page_test.py CARINA SOURCE [SCREENSHOTS]. Exits with 77 if there is no Chromium."""
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from browser import Browser, executable

carina, source = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
shots = Path(sys.argv[3]) if len(sys.argv) > 3 else None


def run(*arguments):
    subprocess.run([carina, *map(str, arguments)], check=True, capture_output=True)


def network(name, *more):
    return [source / "models" / f"{name}.pt2", "--calibrate", source / "models" / f"{name}.npz", *more]


def drawn(browser):
    """Number of colours on the canvas: a canvas that was not drawn has one."""
    return browser.evaluate("""(() => {
        const canvas = document.querySelector("#view canvas");
        const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        return new Set(pixels).size;
    })()""")


def text(browser, selector):
    return browser.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")


def many_operations(page, folder, count):
    """The page with its first part and its graph repeated until it has `count` operations, layers, buffers and nodes, no two alike."""
    begin, end = '<script type="application/json" id="data">', "</script>"
    html = page.read_text()
    at = html.index(begin) + len(begin)
    until = html.index(end, at)
    data = json.loads(html[at:until])
    part, nodes = data["profile"]["parts"][0], data["graph"]
    del data["profile"]["inference"]["steps"]
    draw = random.Random(1).uniform
    copies = count // len(part["operations"]) + 1
    large = {**part, "operations": [], "layers": [], "memory": [], "steps": [], "cycles": part["cycles"] * copies}
    for copy in range(copies):
        for operation in part["operations"]:
            later = {"layer_index": operation["layer_index"] + copy * len(part["layers"])}
            for time in ("start", "end"):
                later[time] = operation[time] + copy * part["cycles"]
            large["operations"].append({**operation, **later})
        for record in part["memory"]:
            steps = {name: record[name] + copy * len(part["steps"]) for name in ("first_step", "last_step")}
            large["memory"].append({**record, **steps, "address": record["address"] + 16 * copy})
        large["steps"] += part["steps"]
    # Each layer has its own point in the roofline, as in a network of that many layers.
    for number in range(count):
        layer = part["layers"][number % len(part["layers"])]
        large["layers"].append({**layer, "name": f"layer_{number}", "macs": int(1000 * 10 ** draw(0, 4)), "cycles": int(100 * 10 ** draw(0, 4))})
    data["profile"]["parts"] = [large]
    data["graph"] = []
    while len(data["graph"]) < count:
        first = len(data["graph"])
        for node in nodes:
            inputs = [first + i for i in node["inputs"]] or ([first - 1] if first > 0 else [])
            data["graph"].append({**node, "inputs": inputs, "name": f"layer_{first + len(inputs)}"})
    path = folder / "large.html"
    path.write_text(html[:at] + json.dumps(data).replace("<", "\\u003c") + html[until:])
    return path


def check_views(browser, page, profile, lines):
    browser.open(page)
    cycles = profile["parts"][0]["cycles"]
    assert f"{cycles:,} cycles" in text(browser, "#headline"), text(browser, "#headline")
    tabs = browser.evaluate("[...document.querySelectorAll('#tabs button')].map((b) => b.textContent)")
    assert tabs == ["overview", "timeline", "memory", "layers", "roofline", "graph", "targets", "comparison"], tabs
    for number, name in enumerate(tabs, 1):
        browser.key(str(number))
        assert browser.evaluate("document.querySelector('[aria-selected=true]').textContent") == name
        if name in ("timeline", "memory", "roofline", "graph"):
            assert drawn(browser) > 8, name
        if name == "overview":
            # The lines that the command prints, word for word.
            shown = [text(browser, "#inference")] + browser.evaluate("[...document.querySelectorAll('.advice')].map((p) => p.textContent)")
            assert shown == lines, (shown, lines)
        if name == "graph":
            check_graph(browser)
        if name == "overview":
            check_bounds(browser, profile)
        if shots:
            browser.screenshot(shots / f"{name}.png")
            browser.key("t")
            browser.screenshot(shots / f"{name}_other_theme.png")
            browser.key("t")
    browser.key("4")
    rows = browser.evaluate("[...document.querySelectorAll('#view tr.row')].map((r) => r.children[0].textContent + '|' + r.children[4].textContent)")
    expected = sorted(profile["parts"][0]["layers"], key=lambda layer: -layer["cycles"])
    assert rows[0] == f"{expected[0]['name']}|{expected[0]['cycles']:,}", rows[0]
    assert len(rows) > 3


def check_bounds(browser, profile):
    """What limits the network: every share is listed, and no segment of the bar truncates its words."""
    cycles = {}
    for layer in profile["parts"][0]["layers"]:
        cycles[layer["bound"]] = cycles.get(layer["bound"], 0) + layer["cycles"]
    expected = [f"{name} {100 * spent / profile['parts'][0]['cycles']:.1f} %" for name, spent in sorted(cycles.items(), key=lambda item: -item[1])]
    key = text(browser, ".bar + .key")
    assert all(share in key for share in expected), (key, expected)
    words = browser.evaluate("""[...document.querySelectorAll(".bar span")].map((span) => [span.clientWidth, span.firstChild.scrollWidth, span.firstChild.offsetWidth])""")
    assert len(words) == len(cycles) and all(wanted <= room for room, wanted, _ in words), words
    assert any(shown > 0 for _, _, shown in words), words


def printed_lines(*arguments):
    """The lines that `carina compile` prints about the whole inference."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([carina, "compile", *map(str, arguments), "-o", folder + "/x.pte"], check=True, capture_output=True, text=True)
    return [re.sub(r"^  faster  ", "faster: ", line) for line in done.stdout.splitlines() if line.startswith(("inference ", "  faster  "))]


def check_memory(browser, page, profile):
    """The tip for the buffer under the mouse says what it is, where it is and for how long."""
    browser.open(page, "#view=memory")
    left, top, width, height = browser.evaluate(
        "(() => { const b = document.querySelector('#view canvas').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
    browser.mouse("mouseMoved", left + width * 0.02, top + height * 0.08)
    tip = text(browser, "#tip")
    assert "input" in tip and "bytes" in tip.replace("KiB", "bytes"), tip
    if shots:
        browser.screenshot(shots / "memory_tip.png")


def canvas_image(browser):
    return browser.evaluate("document.querySelector('#view canvas').toDataURL()")


def check_graph(browser):
    """Colours by SQNR differ from those of places."""
    places = canvas_image(browser)
    browser.evaluate("[...document.querySelectorAll('#view button')].find((b) => b.textContent === 'SQNR').click()")
    browser.settle()
    assert canvas_image(browser) != places and drawn(browser) > 8
    if shots:
        browser.screenshot(shots / "sqnr.png")
    browser.evaluate("document.querySelector('#view button').click()")
    browser.settle()
    assert canvas_image(browser) == places


def check_time_line(browser, profile, left, top, width):
    """CPU work is in its lane for as long as the profile says, before and after the NPU's part."""
    inference = profile["inference"]
    assert sum(step["cycles"] for step in inference["steps"]) == inference["cycles"]
    seen = set()
    for step in inference["steps"]:
        if step["kind"] == "npu" or width * step["cycles"] < 4 * inference["cycles"]:
            continue
        browser.mouse("mouseMoved", left + width * (step["start"] + step["cycles"] / 2) / inference["cycles"], top + 34 + 20)
        tip = text(browser, "#tip")
        assert step["name"] in tip and f"{step['start']:,} to " in tip and f": {step['cycles']:,} cycles" in tip, (tip, step)
        seen.add(step["kind"])
    assert seen == {"call", "kernel"}, seen


def check_interaction(browser, page, profile):
    browser.open(page, "#view=timeline")
    box = browser.evaluate("(() => { const b = document.querySelector('canvas').getBoundingClientRect(); return [b.left, b.top, b.width]; })()")
    check_time_line(browser, profile, *box)
    start = next(step["start"] for step in profile["inference"]["steps"] if step["kind"] == "npu")
    longest = max(profile["parts"][0]["operations"], key=lambda o: o["end"] - o["start"] if not o["kind"].startswith("DMA") else 0)
    x = box[0] + box[2] * (start + (longest["start"] + longest["end"]) / 2) / profile["inference"]["cycles"]
    y = box[1] + 34 + 56 + 20
    browser.mouse("mouseMoved", x, y)
    assert longest["what"] in text(browser, "#tip"), text(browser, "#tip")
    browser.click(x, y)
    assert longest["layer"] in text(browser, "#details h2")
    layer = next(l for l in profile["parts"][0]["layers"] if l["name"] == longest["layer"])
    assert layer["source"] in text(browser, "#details")
    assert f"layer={longest['layer']}" in browser.evaluate("location.hash")
    before = drawn(browser)
    for key in ("+", "+", "ArrowRight", "-", "0"):
        browser.key(key)
    assert drawn(browser) == before
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-600)
    browser.settle()
    if shots:
        browser.screenshot(shots / "zoomed.png")
    # Search fades what does not match; Escape ends the search.
    browser.key("/")
    browser.call("Input.insertText", text=longest["layer"])
    browser.settle()
    assert "search=" in browser.evaluate("location.hash")
    browser.key("Escape")
    assert "search=" not in browser.evaluate("location.hash")
    assert browser.evaluate("document.getElementById('details').hidden")
    theme = browser.evaluate("document.documentElement.dataset.theme")
    browser.key("t")
    assert browser.evaluate("document.documentElement.dataset.theme") != theme
    if shots:
        browser.screenshot(shots / "theme.png")


FRAMES = 20


def frame_cost(browser):
    """Drawing operations, and milliseconds of CPU time of the page's thread, per frame while the view zooms."""
    def spent():
        metrics = browser.call("Performance.getMetrics")["metrics"]
        return 1000 * next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    browser.evaluate("""(() => {
        const drawing = CanvasRenderingContext2D.prototype;
        window.drawn = 0;
        for (const name of ["fillRect", "strokeRect", "fill", "stroke", "fillText", "drawImage"]) {
            const plain = drawing[name];
            drawing[name] = function (...given) { ++window.drawn; return plain.apply(this, given); };
        }
    })()""")
    before = spent()
    browser.evaluate("""(() => {
        const canvas = document.querySelector("#view canvas"), box = canvas.getBoundingClientRect();
        return new Promise((done) => {
            let frame = 0;
            const step = () => {
                canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: frame %% 10 < 5 ? -200 : 200, clientX: box.left + 300, clientY: box.top + 40, cancelable: true }));
                if (++frame < %d) requestAnimationFrame(step);
                else requestAnimationFrame(() => done(true));
            };
            step();
        });
    })()""" % FRAMES)
    return browser.evaluate("window.drawn") / FRAMES, (spent() - before) / FRAMES


# Maximum number of drawing operations per frame, with 10,000 operations, buffers, layers or nodes.
MOST_DRAWN = {"timeline": 2500, "memory": 7000, "roofline": 5500, "graph": 5000}


def check_large(browser, page, folder):
    """10,000 operations: what a frame draws is bounded by the window and the content, a table by its height."""
    large = many_operations(page, folder, 10000)
    browser.open(large, "#view=layers")
    assert browser.evaluate("document.querySelectorAll('#view tr.row').length") < 100
    browser.call("Performance.setTimeDomain", timeDomain="threadTicks")
    browser.call("Performance.enable")
    for view, most in MOST_DRAWN.items():
        browser.open(large, f"#view={view}")
        assert drawn(browser) > 5, view
        count, cost = frame_cost(browser)
        # The time is informative: it depends on the load of the machine, and decides no test.
        print(f"10,000 operations, {view}: {count:,.0f} drawn, {cost:.1f} ms of CPU per frame")
        assert 0 < count <= most, (view, count)
        if shots:
            browser.screenshot(shots / f"large_{view}.png")
    browser.call("Performance.disable")


def main():
    program = executable()
    if program is None:
        print("there is no Chromium: skipped")
        return 77
    with tempfile.TemporaryDirectory() as name, Browser(program) as browser:
        folder = Path(name)
        target = ("--target", "ethos-u85-256")
        run("profile", *network("mobile", *target), "--json", folder / "profile.json")
        run("profile", *network("mobile", "--target", "ethos-u55-128"), "--json", folder / "before.json")
        run("sweep", *network("mobile"), "--targets", "ethos-u55-128,ethos-u85-256", "--json", folder / "sweep.json")
        page = folder / "page.html"
        run("report", *network("mobile", *target), "--sweep", folder / "sweep.json", "--against", folder / "before.json", "-o", page)
        profile = json.loads((folder / "profile.json").read_text())
        check_views(browser, page, profile, printed_lines(*network("mobile", *target)))
        check_memory(browser, page, profile)
        check_interaction(browser, page, profile)
        check_large(browser, page, folder)
        assert not browser.problems, "\n".join(browser.problems)
    return 0


if __name__ == "__main__":
    sys.exit(main())
