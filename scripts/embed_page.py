#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a header with the page of `carina report`: embed_page.py FOLDER HEADER

page.html with page.css and the scripts in its places; @DATA@ stays, and is filled when a page is written."""
import sys
from pathlib import Path

# Each script uses those before it; main.js starts the page.
SCRIPTS = ["model.js", "canvas.js", "timeline.js", "memory.js", "roofline.js", "graph.js", "tables.js", "views.js", "main.js"]


def main():
    folder, header = Path(sys.argv[1]), Path(sys.argv[2])
    page = (folder / "page.html").read_text()
    page = page.replace("@STYLE@", (folder / "page.css").read_text())
    page = page.replace("@SCRIPT@", "\n".join((folder / name).read_text() for name in SCRIPTS))
    assert ')page"' not in page
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text(
        "// SPDX-License-Identifier: Apache-2.0\n// Generated from src/report/page by scripts/embed_page.py.\n#pragma once\n\n"
        "#include <string_view>\n\nnamespace carina::report {\n\n"
        f'constexpr std::string_view kPage = R"page({page})page";\n\n}}  // namespace carina::report\n')


if __name__ == "__main__":
    main()
