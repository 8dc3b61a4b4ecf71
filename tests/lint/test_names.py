#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""names.py finds the definitions of static functions with a name of one word, and nothing else."""

import unittest

import names


class TestNames(unittest.TestCase):
    def test_one_word_is_found(self):
        text = "int x;\n\nstatic int add(int a)\n{\n\treturn a;\n}\n\nstatic const char *find(const char *at,\n\t\t\tsize_t n)\n{\n}\n"
        self.assertEqual(list(names.one_word(text)), [(3, "add"), (8, "find")])

    def test_attributes_are_no_names(self):
        text = "static void __attribute__((format(printf, 1, 2))) tell(const char *format, ...)\n{\n}\n"
        self.assertEqual(list(names.one_word(text)), [(1, "tell")])

    def test_what_is_right_is_left_alone(self):
        text = "static int add_point(int a)\n{\n\tadd(a);\n}\n\nstatic int add(int a);\n\nint main(void)\n{\n}\n\n" \
            "static const struct size size = SIZE(1);\n\n/* static int add(void)\n{\n} */\n"
        self.assertEqual(list(names.one_word(text)), [])


unittest.main(verbosity=2)
