#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that somebody else may write, objects that cost time, and words that a terminal would obey."""

import os
import resource
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import rights
from patience import PATIENCE_S

BUILD = os.environ["BUILD_DIR"]
IS_SANITIZED = os.environ["SANITIZE"] != "none"
OTHER = 12345  # a user who is neither root nor the owner of anything here
HEAD = '#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\nchar LICENSE[] SEC("license") = "GPL";\n'
MAP = ('struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, int); __type(value, long long); } '
       'calls SEC(".maps");\n')
CONF = "[collector]\ndescription = x\n[metric calls]\nname = a.b\nunit = 1\ndescription = x\nkind = gauge\n"


class HostileTest(unittest.TestCase):
    def setUp(self):
        self.place = self.enterContext(tempfile.TemporaryDirectory(prefix="bpfpush-hostile."))
        os.chmod(self.place, 0o755)
        self.bpfpush = shutil.copy(os.path.join(BUILD, "bpfpush"), self.place)
        self.config, self.collectors = f"{self.place}/x.conf", f"{self.place}/c"
        os.mkdir(self.collectors, 0o755)
        self.write(self.config, "")

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o644)

    def bpf(self, name, source, conf):
        self.write(f"{self.place}/{name}.bpf.c", HEAD + MAP + source)
        subprocess.run([*shlex.split(os.environ["BPF_COMPILE"]), "-c", f"{self.place}/{name}.bpf.c", "-o",
                        f"{self.collectors}/{name}.bpf.o"], check=True)
        self.write(f"{self.collectors}/{name}.conf", CONF + conf)

    def check(self, *names, is_nobody=False, environment=None, prefix=()):
        """-> exit status, what is said, the CPU time that it took"""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*prefix, self.bpfpush, "check", f"--config={self.config}",
                               f"--collector-directory={self.collectors}", *names],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False,
                              preexec_fn=rights.become_nobody if is_nobody else None, env={**os.environ, **(environment or {})})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = done.stderr.decode().replace(self.place + "/", "")
        return done.returncode, text, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    @unittest.skipIf(rights.nobody_refusal() or os.geteuid(), "needs root")
    def test_files_that_others_may_write_are_refused(self):
        for file in ("cgroup.conf", "cgroup.bpf.o"):
            shutil.copy(os.path.join(BUILD, "bpf", file), self.collectors)
        conf, code = f"{self.collectors}/cgroup.conf", f"{self.collectors}/cgroup.bpf.o"
        everything = {self.config: 0o644, self.collectors: 0o755, conf: 0o644, code: 0o644}

        def reset(owner=0):
            for path, mode in everything.items():
                os.chown(path, owner, 0)
                os.chmod(path, mode)

        os.chmod(self.bpfpush, 0o755)
        reset()
        self.assertEqual(self.check("cgroup")[0], 0)
        for path, mode in everything.items():
            shown = path.replace(self.place + "/", "")
            with self.subTest(shown):
                reset()
                os.chown(path, OTHER, 0)
                said = (f"{shown}: belongs to user {OTHER}, who could change what runs in the kernel: as root, run "
                        f"chown root {shown}\n")
                self.assertEqual(self.check("cgroup")[:2], (78, said))
                self.assertEqual(self.check("cgroup", is_nobody=True)[:2], (78, said))
                self.assertEqual(self.check("cgroup", environment={"SUDO_UID": str(OTHER)})[0], 0)
                for more in (0o020, 0o002):
                    reset()
                    os.chmod(path, mode | more)
                    said = (f"{shown}: can be written by more users than its owner (mode {mode | more:04o}): run chmod go-w "
                            f"{shown}\n")
                    self.assertEqual(self.check("cgroup")[:2], (78, said))
        # Whoever may write the program may write the rest as well; and everybody's own files are their own business.
        reset(OTHER)
        os.chown(self.bpfpush, OTHER, 0)
        self.assertEqual(self.check("cgroup")[:2], (0, ""))
        os.chmod(self.bpfpush, 0o775)
        os.chmod(code, 0o664)
        self.assertEqual(self.check("cgroup")[:2], (0, ""))
        os.chmod(code, 0o666)
        self.assertEqual(self.check("cgroup")[0], 78)
        os.chown(self.bpfpush, 0, 0)
        reset(rights.NOBODY)
        os.chmod(code, 0o666)
        self.assertEqual(self.check("cgroup", is_nobody=True)[:2], (0, ""))
        # A service that was taken over can write its user's files, and must not choose what its next start loads.
        code, text, _ = self.check("cgroup", prefix=["setpriv", "--reuid=%d" % rights.NOBODY, "--clear-groups", "--inh-caps=+chown",
                                                     "--ambient-caps=+chown"])
        self.assertEqual((code, text.count(f": belongs to user {rights.NOBODY}, ")), (78, 4))

    @unittest.skipIf(rights.nobody_refusal() or os.geteuid(), "needs root")
    def test_files_that_the_service_cannot_use_are_refused(self):
        """By a check with the service's rights (ExecReload=); another user's cannot know."""
        for file in ("cgroup.conf", "cgroup.bpf.o"):
            shutil.copy(os.path.join(BUILD, "bpf", file), self.collectors)
        private, secret = f"{self.place}/private", f"{self.place}/secret"
        os.mkdir(private, 0o700)
        self.write(secret, "x")
        os.chmod(secret, 0o600)
        self.write(self.config, f"[exporter a]\ntype = json\npath = {private}/x\n[exporter b]\ntype = json\npath = {self.place}/new\n"
                                f"[exporter c]\ntype = json\npath = {secret}\n[exporter d]\ntype = json\npath = /dev/null\n"
                                f"[exporter e]\ntype = otlp\nheaders = Authorization: file:{secret}\n")
        service = ["setpriv", "--reuid=%d" % rights.NOBODY, "--regid=%d" % rights.NOBODY, "--clear-groups", "--inh-caps=+chown",
                   "--ambient-caps=+chown"]
        self.assertEqual(self.check("cgroup", prefix=service)[:2], (78, "".join(
            f"x.conf:{line}: {what}: Permission denied\n"
            for line, what in ((3, "path: private/x cannot be written"), (6, "path: new cannot be written"),
                               (9, "path: secret cannot be written"), (15, "headers: secret")))))
        self.assertEqual(self.check("cgroup", is_nobody=True)[:2], (0, ""))
        self.assertEqual(self.check("cgroup")[:2], (0, ""))

    def test_many_constants_cost_little(self):
        constants = ", ".join(f"KIND_OF_THING_{i}" for i in range(20000))
        settings = "".join(f"const volatile enum kind s{i} = 0;\n" for i in range(60))
        used = " + ".join(f"s{i}" for i in range(60))
        self.bpf("enum", f'enum kind {{ {constants} }};\n{settings}SEC("tp_btf/sys_enter") int enter(void *ctx) {{ return {used}; }}\n',
                 "".join(f"[param s{i}]\ndefault = {19000 + i}\n" for i in range(60)))
        code, text, seconds = self.check("enum")
        self.assertEqual((code, text), (0, ""))
        self.assertLess(seconds, 10)

    @unittest.skipIf(IS_SANITIZED, "a check with sanitizers has no limit")
    def test_a_check_gives_up_in_time(self):
        names = [f"x{i}" for i in range(40)]
        for name in names:  # each section is compared with those before
            self.write(f"{self.collectors}/{name}.conf", "[collector]\n" + "".join(f"[param number_{i}]\n" for i in range(9990)))
        code, text, seconds = self.check(*names)
        self.assertEqual(code, 78)
        self.assertRegex(text, "^bpfpush check: gave up after ")
        self.assertLess(seconds, 20)

    def test_mistakes_are_limited_in_number(self):
        for i in range(3):
            self.write(f"{self.collectors}/x{i}.conf", "[collector]\n" + f"k{i} = 1\n" * 120)
        code, text, _ = self.check("x0", "x1", "x2")
        self.assertEqual((code, text.count("\n")), (78, 201))
        self.assertTrue(text.endswith("bpfpush: 200 messages, the rest is not shown\n"), text[-200:])

    def test_words_of_the_command_line_are_plain(self):
        for word in ("--\x1b[31m", "\x1b]0;x\x07", "a\nb", b"\xff"):
            done = subprocess.run([self.bpfpush, "check", word], capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stderr),
                             (64, b"bpfpush: argument 2 holds a control character, or is not UTF-8\n"))

    def test_a_page_of_the_service_is_plain(self):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"{self.place}/status")
            server.listen()
            server.settimeout(PATIENCE_S)
            client = subprocess.Popen([self.bpfpush, "status"], env={**os.environ, "RUNTIME_DIRECTORY": self.place},
                                      stdout=subprocess.PIPE)
            with server.accept()[0] as connection:
                connection.sendall(b"0well\x1b[31m\ntold\xc2\x9b\xc3\xa9\n\0{}\n")
            self.assertEqual(client.communicate()[0], b"well?[31m\ntold\xc2?\xc3\xa9\n")
        self.assertEqual(client.returncode, 0)

    def test_a_service_without_an_answer_does_not_run(self):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"{self.place}/status")
            server.listen()
            done = subprocess.run([self.bpfpush, "status"], env={**os.environ, "RUNTIME_DIRECTORY": self.place}, capture_output=True, text=True,
                                  timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (3, "", f"bpfpush status: {self.place}/status: the service does not answer\n"))

    def test_names_of_files_are_plain(self):
        self.write(f"{self.collectors}/\x1b[31m.conf", CONF)
        self.write(self.config, f"[agent]\ncollector_directory = {self.collectors}\n")
        done = subprocess.run([self.bpfpush, "check", f"--config={self.config}"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 78)
        self.assertIn('"?[31m" cannot be a collector\'s name', done.stderr)
        self.assertNotIn("\x1b", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)  # names what it skips
