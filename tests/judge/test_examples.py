#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All of ebpf_exporter's examples are compiled, imported and checked, and docs/ebpf_exporter.md has a row for each."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import examples
from patience import PATIENCE_S

PAGE = os.path.join(examples.HERE, "..", "..", "docs", "ebpf_exporter.md")


class TestExamples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-judge."))
        cls.chosen = [name for name in [*examples.names(), *examples.NEWER]]
        examples.prepare(cls.directory, cls.chosen)

    def check(self, name):
        return subprocess.run([os.environ["BPFPUSH"], "check", "--config=/dev/null", f"--collector-directory={self.directory}",
                               examples.RENAMED.get(name, name)], capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    def test_every_example_is_a_sound_collector(self):
        self.assertEqual(len(self.chosen), 43)
        for name in self.chosen:
            with self.subTest(name):
                done = self.check(name)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_untyped_keys_and_records_are_named(self):
        names = sorted({*examples.SPANS, *examples.PAIRS})
        with tempfile.TemporaryDirectory() as objects:
            os.makedirs(os.path.join(objects, "objects"))
            for name in names:
                examples.compile_example(name, os.path.join(objects, "objects", name + ".bpf.o"), keep=())
            done = examples.import_examples(objects, names)
        self.assertEqual(done.returncode, 1)
        said = re.findall(r"/([\w-]+)\.yaml:(\d+): (.*)", done.stderr)
        # clang keeps the structure of exec-trace, which one of its maps has.
        self.assertEqual({name for name, _, text in said if "no structure of the object looks like the labels" in text}, set(examples.SPANS) - {"exec-trace"})
        self.assertIn(("regexp", "3", "map mm_shrink_slab_events_total has no type of its keys: in the C source, write __type(key, …) instead of key_size"),
                      said)
        self.assertEqual([name for name, _, text in said if text.startswith("written as")], [])

    def test_the_page_has_a_row_for_each(self):
        with open(PAGE, encoding="utf-8") as file:
            rows = re.findall(r"(?m)^\| `([\w.-]+)` \| (.*?) \| (.*?) \| (.*?) \|$", file.read())
        self.assertEqual([row[0] for row in rows], sorted([*examples.names(), *examples.NEWER]))
        self.assertNotIn("–", [how for _, how, _, _ in rows])


if __name__ == "__main__":
    examples.skip_if_missing()
    unittest.main(verbosity=2)
