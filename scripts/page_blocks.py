#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that the documentation shows and compares what they print with the page.

usage: page_blocks.py check  BIN_DIR PAGE.md...     prints differences; exit status 1 when there are any, 77 when there are
                                                    none but some blocks could not run here
       page_blocks.py update BIN_DIR PAGE.md...     brings the pages into line

In every fenced block that has a line "$ COMMAND" the commands run in order, in bash, with BIN_DIR in front of PATH. The
lines up to the next "$ " are what the command prints (stdout and stderr as they come). A page has one folder of its own,
in which `models` and `tests` are those of the repository: a command works for a reader at the root of a checkout. A
backslash at the end of a command continues it on the next line; a command that ends in "&" stays in the background until it
has printed the lines shown, and its end is awaited at the end of the block. Paths of files in the repository are shown from its
root. CARINA_IMAGES is the folder of the bare-metal test programs.

    ...                          as a line of its own, indented or not: any number of lines that the page leaves out

What a reader does not see stands in HTML comments, one each line, in front of the block:

    <!-- run: COMMAND -->        runs here and has to succeed; what it prints is not shown
    <!-- file: NAME -->          the next block, of any language, is the content of this file
    <!-- needs: PROGRAM... -->   the next block and its `run:` lines only where these programs are installed
    <!-- status: N -->           exit status of the last command of the next block (0 where nothing is said)
    <!-- varies: TEXT -->        in the next block, lines with this text may differ in the places of '#', each of which stands
                                 for one number: "samples in # s"
    <!-- port: N -->             a free TCP port takes the place of port N in the rest of the page's commands

Besides, every relative link of the page has to lead to a file.
"""
import difflib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DIRECTIVE = re.compile(r"^<!-- (run|file|needs|status|varies|port): (.*) -->$")
NUMBER = r"[0-9][0-9,]*(?:\.[0-9]+)?"
SKIPPED = 77


class PageError(Exception):
    """A page that cannot be read or a command that did not do what the page says."""


class Block:
    """A fenced block with commands, or with the content of a file: lines[first:last] of its page."""

    def __init__(self, first, last, directives):
        self.first, self.last = first, last
        self.hidden = [text for kind, text in directives if kind == "run"]
        self.varies = [text for kind, text in directives if kind == "varies"]
        self.needs = [name for kind, text in directives if kind == "needs" for name in text.split()]
        self.file = next((text for kind, text in directives if kind == "file"), None)
        self.ports = [text for kind, text in directives if kind == "port"]
        self.status = next((int(text) for kind, text in directives if kind == "status"), 0)


def blocks_of(lines):
    """The blocks of a page that matter here, in order. Directives belong to the next such block."""
    blocks, directives, first = [], [], None
    for i, line in enumerate(lines):
        if line.startswith("```"):
            if first is None:
                first = i + 1
                continue
            named = any(kind == "file" for kind, _ in directives)
            if named or any(text.startswith("$ ") for text in lines[first:i]):
                blocks.append(Block(first, i, directives))
                directives = []
            first = None
        elif first is None and (found := DIRECTIVE.match(line)):
            directives.append(found.groups())
    if directives:
        raise PageError(f"'{directives[0][0]}: {directives[0][1]}' has no block of commands behind it")
    return blocks


def steps_of(shown):
    """[(command lines, output lines)] of a block."""
    steps, continued = [], False
    for line in shown:
        if continued:
            steps[-1][0].append(line)
        elif line.startswith("$ "):
            steps.append(([line], []))
        elif steps:
            steps[-1][1].append(line)
        else:
            raise PageError(f"'{line}' stands in front of the first command of its block")
        continued = (continued or line.startswith("$ ")) and line.endswith("\\")
    return steps


def reduced(line, varies):
    """A line without the numbers that may vary."""
    for text in varies:
        line = re.sub(NUMBER.join(re.escape(part) for part in text.split("#")), lambda _, kept=text: kept, line)
    return line


def likeness(shown, printed, varies):
    shown, printed = reduced(shown, varies), reduced(printed, varies)
    return 1.0 if shown == printed else 0.9 * difflib.SequenceMatcher(None, shown, printed).ratio()


def place_of(segment, printed, begin, varies):
    """Where lines that stand between two gaps lie in the output: the first best place at or behind `begin`."""
    places = range(begin, max(begin + 1, len(printed) - len(segment) + 1))
    return max(places, key=lambda at: (sum(likeness(*pair, varies) for pair in zip(segment, printed[at:])), -at))


def renewed(shown, printed, varies):
    """The output as the page should show it: printed lines, with the gaps of the page."""
    parts, gaps = [[]], []
    for line in shown:
        if line.strip() == "...":
            gaps.append(line)
            parts.append([])
        else:
            parts[-1].append(line)
    result, begin = [], 0
    for i, part in enumerate(parts):
        result += gaps[max(i - 1, 0):i]
        if i == 0:
            at, end = 0, (len(printed) if len(parts) == 1 else len(part))
        elif i + 1 == len(parts):
            at = len(printed) - len(part)
            end = len(printed)
        else:
            at = place_of(part, printed, begin, varies)
            end = at + len(part)
        lines = printed[max(at, begin):end]
        # A line that differs only in parts that may vary is kept.
        for match in difflib.SequenceMatcher(None, [reduced(x, varies) for x in part],
                                             [reduced(x, varies) for x in lines], False).get_matching_blocks():
            lines[match.b:match.b + match.size] = part[match.a:match.a + match.size]
        result += lines
        begin = max(begin, end)
    return result


class PageRun:
    """The folder, the environment and the ports that the commands of one page share."""

    def __init__(self, programs):
        self.folder = tempfile.mkdtemp(prefix="carina-page-")
        for name in ("models", "tests"):
            os.symlink(os.path.join(ROOT, name), os.path.join(self.folder, name))
        images = os.path.join(os.path.dirname(programs), "tests", "platform")
        self.environment = dict(os.environ, PATH=programs + os.pathsep + os.environ["PATH"], LC_ALL="C.UTF-8",
                                CARINA_IMAGES=images)
        self.ports = {}
        self.background = []

    def close(self):
        for process in self.background:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def open_port(self, shown):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.ports[shown] = str(probe.getsockname()[1])

    def start(self, command, output):
        for shown, real in self.ports.items():
            command = re.sub(rf"\b{shown}\b", real, command)
        return subprocess.Popen(["bash", "-c", command], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=output, stderr=subprocess.STDOUT)

    def lines(self, output):
        output.seek(0)
        text = output.read().decode("utf-8", "replace").replace(ROOT + os.sep, "")
        for shown, real in self.ports.items():
            text = re.sub(rf"\b{real}\b", shown, text)
        return text.splitlines()

    def run(self, command, status):
        """What a command prints, line by line; an error when it ends with another status."""
        with tempfile.TemporaryFile("a+b") as output:
            ended = self.start(command, output).wait()
            printed = self.lines(output)
        if ended != status:
            raise PageError("\n".join([f"'{command}' ended with status {ended}, not {status}:"] + printed))
        return printed

    def run_in_background(self, command, count):
        """The first lines that a command prints; it goes on."""
        with tempfile.TemporaryFile("a+b") as output:
            process = self.start("exec " + command.rstrip("& "), output)
            self.background.append(process)
            while len(printed := self.lines(output)) < count and process.poll() is None:
                time.sleep(0.01)
        return printed

    def finish(self):
        while self.background:
            self.background.pop().wait()


def renewed_block(block, lines, page_run):
    """The lines of a block as they should be."""
    for port in block.ports:
        page_run.open_port(port)
    for command in block.hidden:
        page_run.run(command, 0)
    if block.file is not None:
        with open(os.path.join(page_run.folder, block.file), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        return lines
    result, steps = [], steps_of(lines)
    for i, (command, shown) in enumerate(steps):
        blanks = 0  # between one command's output and the next command
        while shown and not shown[-1]:
            shown, blanks = shown[:-1], blanks + 1
        text = "\n".join(command)[2:]
        if text.endswith("&"):
            printed = page_run.run_in_background(text, len(shown))
        else:
            printed = page_run.run(text, block.status if i + 1 == len(steps) else 0)
        result += command + renewed(shown, printed, block.varies) + [""] * blanks
    page_run.finish()
    return result


def renew_page(page, programs):
    """(lines as they are, lines as they should be, blocks that cannot run here with what they lack)."""
    with open(page, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", "\n".join(lines)):
        if "://" not in target and not os.path.exists(os.path.join(os.path.dirname(page), target)):
            raise PageError(f"the link to {target} leads nowhere")
    result, done, skipped = [], 0, []
    page_run = PageRun(programs)
    try:
        for block in blocks_of(lines):
            missing = [name for name in block.needs if shutil.which(name, path=page_run.environment["PATH"]) is None]
            result += lines[done:block.first]
            if missing:
                skipped.append(f"line {block.first}: needs {', '.join(missing)}")
                result += lines[block.first:block.last]
            else:
                result += renewed_block(block, lines[block.first:block.last], page_run)
            done = block.last
    finally:
        page_run.close()
    return lines, result + lines[done:], skipped


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("check", "update"):
        sys.exit(__doc__)
    status = 0
    for page in sys.argv[3:]:
        name = os.path.relpath(page, ROOT)
        try:
            old, new, skipped = renew_page(page, os.path.abspath(sys.argv[2]))
        except PageError as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = 1
            continue
        for text in skipped:
            print(f"{name}: not run: {text}")
            status = status or SKIPPED
        if old == new:
            continue
        if sys.argv[1] == "update":
            with open(page, "w", encoding="utf-8") as file:
                file.write("\n".join(new))
            print(f"{name}: brought up to date")
        else:
            print("\n".join(difflib.unified_diff(old, new, name, f"{name} (today)", lineterm="")))
            print(f"{name}: shows other output than today's; 'make docs' brings it up to date")
            status = 1
    sys.exit(0 if sys.argv[1] == "update" and status == SKIPPED else status)


if __name__ == "__main__":
    main()
