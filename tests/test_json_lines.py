#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
import io
import os
import tempfile
import unittest
from unittest import mock

import json_lines


class Growing(io.FileIO):
    """A file to which more is written whenever somebody has come to its end."""

    more = []

    def grow(self, data):
        if not data and self.more:
            with open(self.name, "ab") as file:
                file.write(self.more.pop(0))
        return data

    def readinto(self, buffer):
        return self.grow(super().readinto(buffer))

    def readall(self):
        data = super().readall()
        self.grow(b"")
        return data


class JsonLinesTest(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "lines")

    def test_a_line_that_is_not_whole_comes_when_it_is(self):
        self.assertEqual(json_lines.read_on(self.path, 0), ([], 0))
        with open(self.path, "wb", buffering=0) as file:
            file.write(b"a\nb\xc3")
            self.assertEqual(json_lines.read_on(self.path, 0), ([b"a"], 2))
            self.assertEqual(json_lines.read_on(self.path, 2), ([], 2))
            file.write(b"\xa9\n\nc")
            self.assertEqual(json_lines.read_on(self.path, 2), ([b"b\xc3\xa9", b""], 7))
            self.assertEqual(json_lines.read(self.path), [b"a", b"b\xc3\xa9", b""])

    def test_a_line_that_grows_while_it_is_read_is_not_cut_in_two(self):
        more = [b"2}\n", b'{"c"', b": 3}\n"]
        with open(self.path, "wb") as file:
            file.write(b'{"a": 1}\n{"b": ')
        with mock.patch.object(Growing, "more", more), \
                mock.patch.object(json_lines, "open", lambda path, _: io.BufferedReader(Growing(path)), create=True):
            found, place = [], 0
            while more:
                lines, place = json_lines.read_on(self.path, place)
                found += lines
        found += json_lines.read_on(self.path, place)[0]
        self.assertEqual(found, [b'{"a": 1}', b'{"b": 2}', b'{"c": 3}'])

    def test_a_part_of_a_line_needs_an_agent_that_was_killed(self):
        lines = [b'{"a": 1}', b'{"b": "\xc3', b'{"c": 3}']
        self.assertEqual(json_lines.points(lines, 1), [{"a": 1}, {"c": 3}])
        with self.assertRaisesRegex(AssertionError, "0 agents were killed, but 1 lines are not whole"):
            json_lines.points(lines)


if __name__ == "__main__":
    unittest.main()
