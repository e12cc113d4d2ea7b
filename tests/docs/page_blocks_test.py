#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/page_blocks.py on pages and a program of its own. usage: page_blocks_test.py SCRIPT"""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop()
PROGRAM = """#!/bin/sh
echo begin
echo "two apples"
echo "took 0.5 s"
echo end
exit "${1:-0}"
"""
SHOWN = "$ fruit\nbegin\ntwo apples\ntook 0.5 s\nend\n"


class Pages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.programs = os.path.join(self.folder.name, "bin")
        os.mkdir(self.programs)
        with open(os.path.join(self.programs, "fruit"), "w", encoding="utf-8") as file:
            file.write(PROGRAM)
            os.fchmod(file.fileno(), 0o755)

    def tearDown(self):
        self.folder.cleanup()

    def run_on(self, word, directives, block):
        page = os.path.join(self.folder.name, "page.md")
        with open(page, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in directives) + "```\n" + block + "```\n")
        done = subprocess.run([sys.executable, SCRIPT, word, self.programs, page], capture_output=True, text=True, check=False)
        with open(page, encoding="utf-8") as file:
            return done.returncode, file.read().split("```\n")[1], done.stdout + done.stderr

    def test_what_is_printed_passes(self):
        self.assertEqual(self.run_on("check", [], SHOWN)[0], 0)

    def test_what_is_not_printed_fails_and_is_mended(self):
        for wrong in (SHOWN.replace("two", "six"), SHOWN.replace("end\n", ""), SHOWN + "more\n", "$ fruit\n"):
            status, block, text = self.run_on("check", [], wrong)
            self.assertEqual((status, block), (1, wrong))
            self.assertIn("make docs", text)
            self.assertEqual(self.run_on("update", [], wrong)[:2], (0, SHOWN))

    def test_numbers_may_vary_where_the_page_says_so(self):
        other = SHOWN.replace("0.5 s", "17 s")
        self.assertEqual(self.run_on("check", [], other)[0], 1)
        self.assertEqual(self.run_on("check", ["<!-- varies: took # s -->"], other)[0], 0)
        self.assertEqual(self.run_on("check", ["<!-- varies: took # s -->"], SHOWN.replace("took", "lost"))[0], 1)
        kept = self.run_on("update", ["<!-- varies: took # s -->"], other.replace("two", "six"))
        self.assertEqual(kept[:2], (0, other))

    def test_gaps_stand_for_any_lines(self):
        for gaps in ("$ fruit\n...\n", "$ fruit\nbegin\n...\n", "$ fruit\n...\nend\n", "$ fruit\n...\ntook 0.5 s\n...\n",
                     "$ fruit\nbegin\n  ...\nend\n"):
            self.assertEqual(self.run_on("check", [], gaps)[0], 0, gaps)
        self.assertEqual(self.run_on("update", [], "$ fruit\n...\ntwo pears\n...\n")[1], "$ fruit\n...\ntwo apples\n...\n")
        self.assertEqual(self.run_on("check", [], "$ fruit\n...\nbegin\n")[0], 1)

    def test_the_status_counts(self):
        block = SHOWN.replace("fruit", "fruit 3")
        self.assertEqual(self.run_on("check", [], block)[0], 1)
        self.assertEqual(self.run_on("check", ["<!-- status: 3 -->"], block)[0], 0)
        self.assertEqual(self.run_on("check", ["<!-- status: 3 -->"], SHOWN)[0], 1)
        self.assertEqual(self.run_on("check", ["<!-- run: fruit 3 -->"], SHOWN)[0], 1)

    def test_what_cannot_run_here_is_said(self):
        status, block, text = self.run_on("check", ["<!-- needs: no-such-program -->"], "$ no-such-program\nwords\n")
        self.assertEqual((status, block), (77, "$ no-such-program\nwords\n"))
        self.assertIn("needs no-such-program", text)

    def test_files_come_from_the_page(self):
        page = "a\nb\n```\n\n```\n$ cat x\na\nb\n"
        self.assertEqual(self.run_on("check", ["<!-- file: x -->"], page)[0], 0)

    def test_comments_without_a_block_are_mistakes(self):
        self.assertEqual(self.run_on("check", ["<!-- status: 1 -->"], "no command\n")[0], 1)

    def test_links_lead_somewhere(self):
        self.assertEqual(self.run_on("check", ["[x](missing.md)"], SHOWN)[0], 1)
        self.assertEqual(self.run_on("check", ["[x](page.md#part)"], SHOWN)[0], 0)


if __name__ == "__main__":
    unittest.main()
