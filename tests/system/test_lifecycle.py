#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The life of the installed package, from its installation to its removal, while workloads count themselves.

The steps are one story: each begins where the one before has ended. One that fails does not end it, but the first does: without
a service there is nothing to see. What receivers were told is compared at the end: nothing is uncounted, nothing was counted
twice, no total ever fell.
"""

import contextlib
import ctypes
import errno
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from container import Unavailable
from counting import BUILD, WORKLOADS, Counting
from machine import PATIENCE_S, Machine
from night import IS_NIGHT
from packages import PACKAGES, NotBuilt, debs

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.append(os.path.join(HERE, "..", "peers"))
import rights
from collector import Unavailable as NoCollector
from receiver import Unavailable as NoReceiver

KILLS = 5 if IS_NIGHT else 2  # one of each kind for each change: each takes ten seconds
BPF_GET_FD_BY_ID = {"prog_id": 13, "map_id": 14, "link_id": 30}

STARTED = "3f2a64e6c3b54d0f9d7b2c1e8a90f411"
LOGGED = f"journalctl --sync; journalctl --unit=bpfpush --output=cat MESSAGE_ID={STARTED} | wc -l"

# Signals a process whose threads sleep, and have slept for a moment.
IDLE = """
switches() { cat /proc/%(pid)d/task/*/status | grep ctxt; }
before=$(switches); sleep 0.02
! grep -v ') S ' /proc/%(pid)d/task/*/stat >/dev/null && [ "$before" = "$(switches)" ] && kill -%(signal)s %(pid)d
"""

# What is not a package's: its own records, logs, and what the steps make.
NOT_OURS = " ".join(f"-path {path} -prune -o" for path in (
    "/var/lib/dpkg", "/var/log", "/var/cache", "/var/lib/systemd", "/tmp", "/var/tmp", "/etc/systemd/system/multi-user.target.wants"))


def kernel_has(kind, number):
    """Does that program, map or link still exist in the kernel?"""
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = number.to_bytes(4, sys.byteorder).ljust(128, b"\0")
    fd = libc.syscall(rights.SYS_BPF[platform.machine()], BPF_GET_FD_BY_ID[kind], attributes, len(attributes))
    if fd >= 0:
        os.close(fd)
    elif ctypes.get_errno() != errno.ENOENT:
        raise OSError(ctypes.get_errno(), "bpf")
    return fd >= 0


class TestLifecycle(unittest.TestCase):
    files_before = None

    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-lifecycle."))
        counts = os.path.join(cls.directory, "counts")
        os.mkdir(counts)
        cls.counting = cls.enterClassContext(Counting())
        cls.machine = cls.enterClassContext(Machine([(PACKAGES, "/packages"), (WORKLOADS, "/workloads"), (counts, "/counts")]))
        cls.counts = counts

    def setUp(self):
        self.counting.cumulative()
        self.falls, self.starts = set(self.counting.falls), self.counting.starts()  # of the steps before

    def run(self, result=None):
        failures = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > failures:
            if self.machine.first_process():
                print(self.machine.run("systemctl status --full bpfpush; journalctl --no-pager --unit=bpfpush | tail -n 60", check=False).stdout)
            if not self.counting.starts():
                result.stop()
        return result

    # What the steps have in common.

    def show(self, name):
        return self.machine.out(f"systemctl show bpfpush --property={name} --value")

    def pid(self):
        return int(self.show("MainPID"))

    def configure(self, text, name="50-test"):
        self.machine.run(f"mkdir -p /etc/bpfpush/bpfpush.conf.d; cat >/etc/bpfpush/bpfpush.conf.d/{name}.conf <<'END'\n{text}END")

    def wait_active(self, but=0):
        """Until it runs as another process than that one; its id."""
        return int(self.machine.until("bpfpush.service is active again", f"""
pid=$(systemctl show bpfpush --property=MainPID --value)
[ "$pid" != {but} ] && [ "$pid" != 0 ] && [ "$(systemctl is-active bpfpush)" = active ] && echo $pid"""))

    def assert_goes_on(self, n_begun=0):
        """It delivers, and to the same series as ever, but for so many that began in this step."""
        self.counting.wait_delivered()
        starts = self.counting.starts()
        self.assertEqual(len(starts), len(self.starts) + n_begun, f"the series began again: {starts}")
        self.counting.cumulative()
        self.assertEqual(self.counting.falls - self.falls, set())

    def end_idle(self, pid, signal):
        """Signals it while it waits: nobody can tell whether a datagram that is being sent at its end was sent."""
        self.machine.until("bpfpush waits", IDLE % {"pid": pid, "signal": signal})

    def install(self, deb):
        return self.machine.run(f"dpkg --install /packages/{os.path.relpath(deb, PACKAGES)}")

    def journal(self, more=""):
        return [json.loads(line) for line in self.machine.out(f"journalctl --sync; journalctl --unit=bpfpush --output=json {more}").split("\n")]

    def kept(self):
        """{(kind, id in the kernel)} of all programs, maps and links that bpfpush and systemd hold."""
        text = self.machine.out(f"cat /proc/{self.pid()}/fdinfo/* /proc/1/fdinfo/* 2>/dev/null || :")
        return {(kind, int(number)) for kind, number in re.findall(r"^(prog_id|map_id|link_id):\t(\d+)$", text, re.MULTILINE)}

    def files(self):
        """All files of the container that packages may bring."""
        return set(self.machine.out(f"find / -xdev {NOT_OURS} -print").split("\n"))

    # The story.

    def test_01_the_package_is_installed_enabled_and_counts(self):
        type(self).files_before = self.files()
        self.configure(self.counting.config())
        self.install(old)
        self.assertEqual(self.machine.out("systemctl is-enabled bpfpush"), "enabled")
        self.machine.run("systemctl enable --now bpfpush")
        self.assertEqual((self.show("ActiveState"), self.show("SubState"), self.show("NRestarts")), ("active", "running", "0"))
        self.counting.start(self.machine, self.counts)
        self.assert_goes_on(n_begun=1)

    def test_02_the_journal_has_its_fields(self):
        (started,) = [entry for entry in self.journal() if entry.get("MESSAGE_ID") == STARTED]
        self.assertEqual((started["PRIORITY"], started["_SYSTEMD_UNIT"], started["_TRANSPORT"], started["SYSLOG_IDENTIFIER"]),
                         ("6", "bpfpush.service", "journal", "bpfpush"))
        self.assertIn("The agent has started", self.machine.out("journalctl --unit=bpfpush --catalog"))

    def test_03_it_is_exposed_to_little(self):
        self.machine.run("systemd-analyze security --threshold=15 --no-pager bpfpush")

    def test_04_a_wrong_configuration_changes_nothing(self):
        pid = self.pid()
        self.configure("[agent]\nintervall = 2s\n", "60-more")
        # Not --unit: the journal may read a message of the check when its process has ended, and not know its unit.
        mistakes = "journalctl --sync; journalctl --identifier=bpfpush --output=cat --no-pager | grep -c '/60-more.conf:2: .*interval'"
        self.assertNotEqual(self.machine.run("systemctl reload bpfpush", check=False).returncode, 0)
        self.assertEqual(self.machine.out(mistakes), "1")
        self.machine.run(f"kill -HUP {pid}")  # without the check before it
        self.machine.until("the agent says so too", f"[ $({mistakes}) = 2 ]")
        # What only root can write: the reload refuses it, and so does a check by root.
        self.configure("[exporter more]\ntype = json\npath = /etc/more\n", "60-more")
        self.assertNotEqual(self.machine.run("systemctl reload bpfpush", check=False).returncode, 0)
        checked = self.machine.run("bpfpush check 2>&1", check=False)
        self.assertEqual(checked.returncode, 78)
        self.assertIn("/60-more.conf:3: path: /etc/more cannot be written: Permission denied", checked.stdout)
        self.assertNotIn("OK", checked.stdout)
        # A service that runs as root may not become another user, so this does not concern it.
        self.assertIn("OK", self.machine.out("systemd-run --quiet --wait --pipe --property=SystemCallFilter='~@privileged' "
                                            "--property=SystemCallErrorNumber=EPERM bpfpush check"))
        self.assertEqual((self.pid(), self.show("ActiveState")), (pid, "active"))
        self.assert_goes_on()

    def test_05_a_reload_changes_the_interval_and_the_exporters(self):
        pid = self.pid()
        self.configure("[agent]\ninterval = 2s\n[exporter more]\ntype = json\npath = /var/log/bpfpush/more\n", "60-more")
        self.machine.run("systemctl reload bpfpush")
        self.machine.until("the new exporter writes", "test -s /var/log/bpfpush/more")
        self.assert_goes_on()
        self.assertEqual(self.pid(), pid)
        self.machine.run("rm /etc/bpfpush/bpfpush.conf.d/60-more.conf; systemctl reload bpfpush")
        self.assert_goes_on()

    def test_06_a_reload_changes_the_collectors(self):
        for more in ("[collector tcpstate]\nenabled = no\n", ""):
            self.configure(more, "60-more")
            started = self.machine.out(LOGGED)
            self.machine.run("systemctl reload bpfpush")
            self.machine.until("it has started again", f"[ $({LOGGED}) -gt {started} ]")
            self.wait_active()
            self.assert_goes_on()

    def test_07_it_has_no_rights(self):
        status = dict(re.findall(r"^(Cap\w+|NoNewPrivs|Uid):\t(\w+)", self.machine.out(f"cat /proc/{self.pid()}/status"), re.MULTILINE))
        none = "0" * 16
        self.assertEqual([status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs")], [none, none, none, none, "1"])
        self.assertNotEqual(status["Uid"], "0")
        with open(rights.__file__, encoding="utf-8") as file:  # the tree may lie in a private directory
            tries = file.read() + "print(bpf_refusal())"
        tried = subprocess.run([shutil.which("setpriv"), f"--reuid={status['Uid']}", "--clear-groups", "--inh-caps=-all", "--no-new-privs",
                                "/usr/bin/python3", "-c", tries], capture_output=True, text=True, check=True)
        self.assertNotEqual(tried.stdout, "None\n", "a program can be loaded with its rights")

    def test_10_a_kill_loses_nothing(self):
        before = int(self.show("NRestarts"))
        for number in range(KILLS):
            pid = self.pid()
            self.end_idle(pid, "KILL")
            if number % 2:  # once more while it starts
                pid = int(self.machine.until("it starts", f"pid=$(systemctl show bpfpush --property=MainPID --value); "
                                             f"[ $pid != {pid} ] && [ $pid != 0 ] && kill -KILL $pid && echo $pid"))
            self.wait_active(but=pid)
            self.assert_goes_on()
        self.assertGreaterEqual(int(self.show("NRestarts")) - before, KILLS)

    def test_11_one_that_hangs_is_started_again_and_loses_nothing(self):
        pid = self.pid()
        self.end_idle(pid, "STOP")
        self.wait_active(but=pid)
        self.assertTrue([entry for entry in self.journal() if "Watchdog timeout" in str(entry["MESSAGE"])])
        self.assert_goes_on()

    def test_13_a_new_systemd_keeps_what_it_has(self):
        pid = self.pid()
        self.machine.run("systemctl daemon-reexec")
        self.assertEqual(self.pid(), pid)
        self.end_idle(pid, "KILL")
        self.wait_active(but=pid)
        self.assert_goes_on()

    def test_14_an_upgrade_loses_nothing(self):
        before, pid = self.kept(), self.pid()
        self.install(new)
        self.assertNotEqual(self.wait_active(), pid, "the new one runs")
        self.assertEqual({key for key in before if key[0] == "link_id"} - self.kept(), set(), "the same programs are attached")
        self.assert_goes_on()

    def test_15_after_a_reboot_it_begins_again(self):
        self.counting.pause()
        self.machine.reboot()
        self.counting.resume()
        self.assert_goes_on(n_begun=1)

    def test_50_nothing_is_uncounted_and_nothing_was_counted_twice(self):
        self.counting.finish()
        wrong = self.counting.differences()
        self.assertEqual(wrong[:20], [], f"{len(wrong)} are wrong")

    def test_90_removed_it_leaves_nothing_in_the_kernel(self):
        self.machine.run("systemctl start bpfpush")
        kept = self.kept()
        self.assertGreaterEqual({kind for kind, _ in kept}, {"prog_id", "map_id", "link_id"})
        self.machine.run("dpkg --remove bpfpush")
        deadline = time.monotonic() + PATIENCE_S
        while left := {key for key in kept if kernel_has(*key)}:
            self.assertLess(time.monotonic(), deadline, f"still in the kernel: {left}")
            time.sleep(0.1)

    def test_91_purged_it_leaves_no_file(self):
        self.machine.run("dpkg --purge bpfpush")
        self.assertEqual(self.files() - self.files_before, set())


if __name__ == "__main__":
    try:
        if not os.access(os.path.join(BUILD, "bpfpush"), os.X_OK):
            raise Unavailable("bpfpush is not built")
        Counting()
        old, new = debs()
    except (Unavailable, NoCollector, NoReceiver, NotBuilt) as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
    unittest.main(verbosity=2)
