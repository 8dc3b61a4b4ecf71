# SPDX-License-Identifier: Apache-2.0
"""example.py PAGE NAME OUTPUT: writes the code that stands below "`NAME`:" in PAGE."""

import re
import sys


def example(page, name):
    with open(page, encoding="utf-8") as file:
        found = re.findall(rf"`{re.escape(name)}`[^`\n]*:\n\n```\w+\n(.*?)```", file.read(), re.DOTALL)
    if len(found) != 1:
        sys.exit(f"{page}: {len(found)} examples called {name}")
    return found[0]


def main():
    page, name, output = sys.argv[1:]
    with open(output, "w", encoding="utf-8") as file:
        file.write(example(page, name))


main()
