#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/vm/kernel-fetch in a network namespace without a network."""

import os
import subprocess
import tempfile
import time
import unittest

from guest import main
from image import HERE
from patience import PATIENCE_S

FETCH = os.path.join(HERE, "kernel-fetch")
DAY_S = 24 * 60 * 60


class TestFetch(unittest.TestCase):
    def setUp(self):
        self.cache = self.enterContext(tempfile.TemporaryDirectory())

    def fetch(self, *words):
        return subprocess.run(["unshare", "--net", FETCH, *words], capture_output=True, text=True, check=False, timeout=PATIENCE_S,
                              env={**os.environ, "BPFPUSH_CACHE": self.cache})

    def put(self, kernel, days):
        path = os.path.join(self.cache, "kernel-" + kernel)
        with open(path, "w", encoding="utf-8") as file:
            file.write("a kernel\n")
        os.utime(path, times=(time.time() - days * DAY_S,) * 2)
        return path

    def test_what_is_cached_needs_no_network(self):
        paths = [self.put(kernel, 6) for kernel in ("5.10", "6.1", "6.12", "newest")]
        done = self.fetch()
        self.assertEqual((done.returncode, done.stdout.split(), done.stderr), (0, paths, ""))

    def test_an_old_one_is_taken_if_no_newer_one_can_be_had(self):
        path = self.put("6.1", 8)
        done = self.fetch("6.1")
        self.assertEqual((done.returncode, done.stdout), (0, path + "\n"))
        self.assertRegex(done.stderr, r"\A.*kernel 6.1 cannot be fetched: .+\n.*taking the one of \d{4}-\d\d-\d\d\n\Z")
        self.assertEqual(self.fetch("--cached", "6.1").stdout, path + "\n")

    def test_what_cannot_be_fetched_is_said_in_one_sentence(self):
        for words in (("6.12",), ("--refresh", "6.12")):
            done = self.fetch(*words)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"\A.*kernel 6.12 cannot be fetched: .+\n\Z")
        self.assertEqual(os.listdir(self.cache), ["kernel.lock"])

    def test_what_is_not_fetched_is_not_cached(self):
        done = self.fetch("--cached", "6.1")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, "6.1 is not fetched yet: tests/vm/kernel-fetch 6.1\n")

    def test_a_kernel_that_is_unknown_is_refused(self):
        done = self.fetch("5.11")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, '"5.11" is none of: 5.10 6.1 6.12 newest\n')


if __name__ == "__main__":
    main()
