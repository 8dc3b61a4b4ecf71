#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev test, whole, in a tree of a few small tests that are broken on purpose: what is wrong makes it red, and chance does
not. Its suite is vm, which has no second build. test_summary.py has the many ways in which a log can be wrong."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
COPIED = ["dev", "tests/summary.py", "tests/alone", "tests/flaky"]
PREPARES = ["tests/system/rootfs-build", "tests/system/packages.py", "tests/vm/kernel-fetch", "tests/judge/examples-fetch"]
MESON = """\
project('bpfpush', 'c', meson_version: '>=0.63.0')
program = executable('program', 'program.c')
alias_target('fuzz-targets', program)
add_test_setup('default', is_default: true, exclude_suites: ['vm', 'fuzz'])
python = find_program('python3')
"""
GOOD = "print('2 passed, 0 failed')"
CHANCE = """
import os, sys
if not os.path.exists('been'):
    open('been', 'w').close()
    sys.exit('AssertionError: 3 != 4')
assert 'GOLDEN_UPDATE' not in os.environ
print('the second look')
"""
SKIPPED = "print('skipped: needs a receiver'); exit(77)"
EMPTY = "import unittest\nclass Empty(unittest.TestCase): pass\nunittest.main()"
CRASH = "import os; os.kill(os.getpid(), 11)"
LEAVES = "import subprocess; print(subprocess.Popen(['sleep', '1000'], start_new_session=True).pid, file=open('pid', 'w'))"
# tests/alone is its parent, and meson its grandparent.
# Two seconds of a CPU, one of them by a child that it does not wait for.
BUSY = """
import os, time
end, (reader, writer) = time.process_time() + 1, os.pipe()
is_child = not os.fork()
while time.process_time() < end: pass
if is_child: os.write(writer, b'x'), time.sleep(1000)
os.read(reader, 1)
print('1 passed, 0 failed')
"""
KILLS = "import os; os.kill(int(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1]), 9)"


class TestGate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory(prefix="bpfpush-gate.")
        cls.addClassCleanup(place.cleanup)
        cls.top = place.name
        for path in COPIED:
            cls.write(path)
            shutil.copy(os.path.join(HERE, "..", path), os.path.join(cls.top, path))
        for path in [*PREPARES, "bin/dpkg-query"]:
            cls.write(path, "#!/bin/sh\necho installed\n")
        cls.write("tests/skips", "build/vm / known: needs luck\n")
        cls.write("tests/versions")
        cls.write("meson_options.txt", "option('fuzzers', type: 'boolean', value: false)\noption('tests', type: 'boolean', value: true)\n")
        cls.write("program.c", "int main(void)\n{\n\treturn 0;\n}\n")
        cls.write(".gitignore", "/build*\n")
        subprocess.run(["git", "init", "-q", cls.top], check=True)

    @classmethod
    def write(cls, path, text=""):
        path = os.path.join(cls.top, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def setUp(self):
        for mark in ("been", "pid"):
            if os.path.exists(os.path.join(self.top, "build", mark)):
                os.remove(os.path.join(self.top, "build", mark))

    def run_dev(self, *words, **environment):
        environment = {**os.environ, "PATH": f"{self.top}/bin:{os.environ['PATH']}", **environment}
        environment.pop("MESON_TESTTHREADS", None)
        done = subprocess.run(["./dev", "test", *words], cwd=self.top, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        return done.returncode, done.stdout

    def judge(self, tests, *words, suite="vm", **environment):
        """(exit status, last line, output) of ./dev test with these tests, {name: script}."""
        lines = [MESON]
        for name, script in tests.items():
            self.write(f"{name}.py", script)
            lines.append(f"test('{name}', python, args: files('{name}.py'), suite: '{suite}', timeout: 600, "
                         "workdir: meson.project_build_root(), is_parallel: false)\n")
        self.write("meson.build", "".join(lines))
        status, output = self.run_dev(suite, *words, **environment)
        return status, output.splitlines()[-1], output

    def test_what_chance_made_is_named_and_no_failure(self):
        status, last, output = self.judge({"good": GOOD, "chance": CHANCE, "leaves": LEAVES}, GOLDEN_UPDATE="1")
        self.assertEqual((status, last), (0, "4 passed, 0 failed, 0 skipped"), output)
        self.assertIn("flaky: build/vm / chance: FAIL at first: AssertionError: 3 != 4\n", output)
        for look, said in (("first", "3 != 4"), ("second", "the second look")):
            with open(os.path.join(self.top, f"build/meson-logs/flaky/vm-chance.{look}.txt"), encoding="utf-8") as file:
                self.assertIn(said, file.read())
        with open(os.path.join(self.top, "build/pid"), encoding="utf-8") as file:
            self.assertFalse(os.path.exists(f"/proc/{file.read().strip()}"))
        with open(os.path.join(self.top, "build/gate.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["flaky"], ["build/vm / chance"])
        status, output = self.run_dev("--last")
        self.assertEqual(status, 0, output)
        self.assertIn("of this tree", output)
        self.write("program.c", "int main(void)\n{\n\treturn 0; /* another */\n}\n")
        status, output = self.run_dev("--last")
        self.assertEqual(status, 1, output)
        self.assertIn("of another tree", output)

    def test_the_record_says_what_a_suite_takes(self):
        status, _, output = self.judge({"busy": BUSY})
        self.assertEqual(status, 0, output)
        with open(os.path.join(self.top, "build/gate.json"), encoding="utf-8") as file:
            self.assertIn(json.load(file)["suites"]["build/vm"]["cpu_seconds"], (2, 3))
        self.assertRegex(self.run_dev("--last")[1], r"(?m)^ +\d+ s, +[23] s of a CPU  build/vm: 1 passed, 0 failed, 0 skipped$")

    def test_without_a_second_look_chance_is_red(self):
        status, last, output = self.judge({"good": GOOD, "chance": CHANCE}, DEV_NO_SECOND_LOOK="1")
        self.assertEqual((status, last), (1, "2 passed, 1 failed, 0 skipped"), output)

    def test_a_crash_and_an_empty_class_are_red_at_once(self):
        status, last, output = self.judge({"crash": CRASH, "empty": EMPTY, "chance": CHANCE})
        self.assertEqual((status, last), (1, "0 passed, 3 failed, 0 skipped"), output)
        self.assertIn("no second look: build/vm / crash: signal 11 ended it", output)
        self.assertIn("no second look: build/vm / empty: it did not run", output)

    def test_a_runner_that_is_killed_is_red(self):
        status, last, output = self.judge({"good": GOOD, "kills": KILLS, "last": GOOD})
        self.assertEqual(status, 1, output)
        self.assertRegex(last, "^[02] passed, [23] failed, 0 skipped$")  # what meson had not yet written is lost
        self.assertIn("build/vm: FAILED last (it did not run: the suite ended before it)", output)

    def test_a_suite_that_is_skipped_is_red_where_a_change_is_judged(self):
        tests = {"good": GOOD, "known": SKIPPED.replace("a receiver", "luck"), "other": SKIPPED}
        status, last, output = self.judge(tests)
        self.assertEqual((status, last), (0, "2 passed, 0 failed, 2 skipped"), output)
        status, last, output = self.judge(tests, "--strict")
        self.assertEqual((status, last), (1, "2 passed, 1 failed, 1 skipped"), output)
        self.assertEqual(self.judge({"known": tests["known"]}, "--strict")[:2], (1, "0 passed, 0 failed, 1 skipped"))

    def test_what_a_fuzzer_finds_is_red(self):
        status, last, output = self.judge({"finds": SKIPPED}, suite="fuzz", CC="")
        self.assertEqual((status, last), (1, "0 passed, 1 failed, 0 skipped"), output)

    def test_a_build_that_fails_is_red(self):
        self.write("program.c", "#ifndef __clang__\nint main(void) { return 0; }\n#else\n#error\n#endif\n")
        self.addCleanup(self.write, "program.c", "int main(void)\n{\n\treturn 0;\n}\n")
        status, last, output = self.judge({"target": GOOD}, suite="fuzz")
        self.assertEqual((status, last), (1, "0 passed, 2 failed, 0 skipped"), output)


if __name__ == "__main__":
    unittest.main(verbosity=2)
