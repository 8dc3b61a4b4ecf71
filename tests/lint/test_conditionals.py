#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""conditionals.py finds statements with several conditionals, and members of an initialiser count each for itself."""

import unittest

import conditionals


class TestConditionals(unittest.TestCase):
    def found(self, *lines):
        return list(conditionals.doubled("\n".join(lines) + "\n"))

    def test_several_in_one_statement_are_found(self):
        self.assertEqual(self.found("int f(int a, int b)", "{", "\treturn a ? 1 :", "\t       b ? 2 : 3;", "}"), [(3, 2)])
        self.assertEqual(self.found("{", "\terr = err ?: a() ?: b();", "}"), [(2, 2)])
        self.assertEqual(self.found("int f(void)", "{", "\tint a = x ? 1 : 2, b = y ? 3 : 4;", "}"), [(3, 2)])
        self.assertEqual(self.found("{", "\tif (a ? b : c)", "\t\tf(d ?: e);", "}"), [(2, 2)])
        self.assertEqual(self.found("#define SIGN(a) \\", "\t((a) > 0 ? 1 : (a) ? -1 : 0)", "int a;"), [(1, 2)])

    def test_one_in_each_is_right(self):
        self.assertEqual(self.found("{", "\ta = b ? 1 : 2;", "\tc = d ?: e;", "\tfor (i = a ? 1 : 0; i < (b ?: c); i++)", "}"), [])
        self.assertEqual(self.found("{", "\tputs(\"what? why?\"); /* who? when? */", "}"), [])

    def test_members_of_an_initialiser_count_alone(self):
        self.assertEqual(self.found("struct a b = {", "\t.c = d ? 1 : 2,", "\t.e = f ? 1 : 2,", "};"), [])
        self.assertEqual(self.found("{", "\tf(&(struct a){ b ?: 1, c ?: 2 });", "}"), [])
        self.assertEqual(self.found("{", "\tstruct a b = { .c = g(d ?: 1, e ?: 2) };", "}"), [(2, 2)])


unittest.main(verbosity=2)
