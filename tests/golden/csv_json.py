#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The CSV and the JSON lines of one batch say the same: csv_json.py GOLDEN-EXPORT"""

import csv
import decimal
import json
import subprocess
import sys

FIXED = ["time", "collector", "name", "kind", "unit", "value", "delta", "rate", "count", "sum", "p50", "p90", "p99", "max"]


def export(kind):
    return subprocess.run([sys.argv[1], kind], check=True, stdout=subprocess.PIPE).stdout.decode()


def number(value):
    return "" if value is None else decimal.Decimal(str(value))


def text(value):
    """As the CSV has it, without the apostrophe that keeps it from being a formula."""
    return json.dumps(value) if isinstance(value, (bool, int)) else value


def of_json(point):
    total, delta = point.get("total", point.get("value")), point.get("delta")
    if point["kind"] == "histogram":
        numbers = [None, delta["count"], total["count"], total.get("sum")]
    else:
        numbers = [total, delta, None, None]
    return (point["collector"], point["name"], point["kind"], point["unit"], *map(number, numbers),
            tuple(sorted((name, text(value)) for name, value in point["attributes"].items())))


def of_csv(line):
    attributes = {name: value.removeprefix("'") for name, value in line.items() if name not in FIXED and value}
    numbers = [line[name] for name in ("value", "delta", "count", "sum")]
    return (line["collector"], line["name"], line["kind"], line["unit"],
            *(decimal.Decimal(value) if value else "" for value in numbers), tuple(sorted(attributes.items())))


points = [json.loads(line, parse_float=decimal.Decimal) for line in export("json").splitlines()]
whole = export("csv")
reader = csv.DictReader(whole.splitlines(keepends=True), strict=True)
lines = list(reader)
assert reader.fieldnames[:len(FIXED)] == FIXED, reader.fieldnames
assert all(None not in line and None not in line.values() for line in lines), "a line has too many or too few fields"
assert whole.count("\r\n") == len(lines) + 1, "lines must end in CR LF"
expected, got = sorted(map(of_json, points), key=str), sorted(map(of_csv, lines), key=str)
for left, right in zip(expected, got):
    assert left == right, f"JSON: {left}\nCSV:  {right}"
assert len(expected) == len(got) > 10, (len(expected), len(got))
