#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NAME.conf of probe/ is a configuration whose probes, or settings of metrics, are wrong: `bpfpush check` must say all that
NAME.expect holds, and exit with 78. GOLDEN_UPDATE=1 writes NAME.expect anew, for a person to read."""

import os
import platform
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
from patience import PATIENCE_S

DIRECTORY = sys.argv.pop(1)
EXIT_SETTINGS = 78


class ProbeTest(unittest.TestCase):
    maxDiff = None

    def test_mistakes(self):
        names = sorted(name[:-5] for name in os.listdir(DIRECTORY) if name.endswith(".conf"))
        self.assertTrue(names)
        for name in names:
            with self.subTest(name):
                done = subprocess.run([os.environ["BPFPUSH"], "check", f"--config={name}.conf"], cwd=DIRECTORY, text=True,
                                      capture_output=True, check=False, timeout=PATIENCE_S)
                done.stderr = done.stderr.replace(platform.machine() + "-linux-gnu", "MACHINE-linux-gnu")
                if os.environ.get("GOLDEN_UPDATE"):
                    with open(os.path.join(DIRECTORY, name + ".expect"), "w", encoding="utf-8") as file:
                        file.write(done.stderr)
                with open(os.path.join(DIRECTORY, name + ".expect"), encoding="utf-8") as file:
                    self.assertEqual(done.stderr, file.read())
                self.assertEqual(done.returncode, EXIT_SETTINGS)

    def test_the_metric_of_a_collector(self):
        """Whichever comes first."""
        collector, probe = "[collector scheduler]\n", "[probe waits]\nname = process.context_switches\nhook = uprobe:libc:rename\n"
        for text, line in ((collector + probe, 3), (probe + collector, 2)):
            with self.subTest(line), tempfile.NamedTemporaryFile("w", suffix=".conf") as config:
                config.write(text + "[agent]\ncollectors = cgroup\n")
                config.flush()
                done = subprocess.run([os.environ["BPFPUSH"], "check", "--config=" + config.name], text=True, capture_output=True,
                                      check=False, timeout=PATIENCE_S)
                self.assertEqual(done.returncode, EXIT_SETTINGS)
                self.assertRegex(done.stderr, f'^{config.name}:{line}: scheduler makes metric "process.context_switches", too '
                                 '\\(/.*/scheduler.conf:\\d+\\); give the probe another one: name = …\n$')

    def test_of_the_command_line(self):
        for text, said in (("latency", 'bpfpush: --probe "latency" is not as it should be; write MEASURE HOOK by VALUES, like '
                            '"latency uprobe:libc:getaddrinfo by unit"\n'),
                           ("count kprob:vfs_read", 'bpfpush --probe: unknown kind of hook "kprob": did you mean "kprobe"?\n'),
                           ("sum arg0:text usdt:a:b:c by arg1:u8", 'bpfpush --probe: measure: "arg0" is a text; name a number\n'),
                           ("profile:hz:99", 'bpfpush --probe: unknown kind of hook "profile": there are kprobe, kretprobe, '
                            'uprobe, uretprobe, usdt, tracepoint, rawtp, perf\n'),
                           ("sum usdt:a:b:c", 'bpfpush --probe: measure: sum needs a value; write sum arg0, or another one '
                            'that the hook has\n'),
                           ("count kprobe:vfs_read by ", 'bpfpush --probe: by "" ends where a word should follow; '
                            'write one, such as unit\n')):
            with self.subTest(text):
                done = subprocess.run([os.environ["BPFPUSH"], "dump", "--config=/dev/null", "--probe", text, "shape"], text=True,
                                      capture_output=True, check=False, timeout=PATIENCE_S)
                self.assertEqual((done.returncode, done.stderr), (EXIT_SETTINGS, said))


unittest.main()
