#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: embed.py page.html: a C header with what comes before the content of the page and after it. The page allows only
the style and the script that it has itself, by their hashes."""
import base64
import hashlib
import re
import sys


def hashed(text, tag):
    body = re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL).group(1)
    return "sha256-" + base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()


def as_c(name, text):
    lines = "".join('\t"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"\n' for line in text.splitlines())
    return f"static const char {name}[] =\n{lines};\n"


with open(sys.argv[1], encoding="utf-8") as file:
    page = file.read()
page = page.replace("@STYLE@", hashed(page, "style")).replace("@SCRIPT@", hashed(page, "script"))
page = re.sub(r"<!-- SPDX.*?-->\n", "", page)
head, tail = page.split("@CONTENT@\n")
print(as_c("page_head", head) + as_c("page_tail", tail), end="")
