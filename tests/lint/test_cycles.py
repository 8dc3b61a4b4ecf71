#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cycles.py finds circles of includes and of calls, and takes nothing else for one."""

import unittest

import cycles


def function(name, *called, static=False):
    body = "".join(f"\t{other}();\n" for other in called)
    return f"{'static ' if static else ''}int {name}(void)\n{{\n{body}}}\n\n"


class TestCycles(unittest.TestCase):
    def test_includes_in_a_circle_are_found(self):
        texts = {"src/a/x.h": '#include "a/y.h"\n', "src/a/y.h": '#include "util/z.h"\n', "src/util/z.h": '#include "../a/x.h"\n',
                 "src/a/x.c": '#include "x.h"\n'}
        self.assertEqual(cycles.circles(cycles.includes(texts)), [["src/a/x.h", "src/a/y.h", "src/util/z.h"]])

    def test_a_file_and_its_header_are_one_module(self):
        texts = {"src/x.h": "", "src/y.h": "", "src/x.c": '#include "x.h"\n#include "y.h"\n', "src/y.c": '#include "y.h"\n'}
        self.assertEqual(cycles.circles(cycles.modules(cycles.includes(texts))), [])
        texts["src/y.c"] += '#include "x.h"\n'
        self.assertEqual(cycles.circles(cycles.modules(cycles.includes(texts))), [["src/x", "src/y"]])

    def test_calls_in_a_circle_are_found(self):
        texts = {"src/a.c": function("a", "b") + function("a_helper"), "src/b.c": function("b", "c"), "src/c.c": function("c", "a_helper"),
                 "src/d.c": function("d", "a")}
        self.assertEqual(cycles.circles(cycles.calls(texts)), [["src/a.c", "src/b.c", "src/c.c"]])

    def test_a_function_that_is_passed_on_counts(self):
        texts = {"src/a.c": "struct ops a = { .run = b };\n\n" + function("a_run"), "src/b.c": function("b", "a_run")}
        self.assertEqual(cycles.circles(cycles.calls(texts)), [["src/a.c", "src/b.c"]])

    def test_static_functions_and_comments_are_no_calls(self):
        texts = {"src/a.c": function("find", static=True) + function("a", "b", "find"),
                 "src/b.c": "/* see a() */\n" + function("find", static=True) + function("b", "find")}
        self.assertEqual(cycles.circles(cycles.calls(texts)), [])


unittest.main(verbosity=2)
