#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bpfpush says where it cannot run, each in one sentence and nothing else; what it attaches with the two rights
that it asks for; and OOM kills, on each kernel."""

import json
import unittest

from guest import COMPLAINT, main, run_guest
from patience import PATIENCE_S

KILLS = 3
# Ends what should have been refused; says everything that a person or a script would see.
SAY = """\
export OTEL_LOG_LEVEL=warn # not what bpfpush does
say() { # CASE COMMAND...
	local case=$1
	shift
	timeout PATIENCE_S "$@" >/result/$case.out 2>/result/$case.err
	echo $? >/result/$case.status
}
""".replace("PATIENCE_S", str(PATIENCE_S))
OLD = SAY + """\
say run bpfpush run
say once bpfpush once --for=1ms
say list bpfpush list --for=1ms
"""
OOM = SAY + f"""\
cd /sys/fs/cgroup
echo +memory >cgroup.subtree_control
mkdir oom.service
echo 16M >oom.service/memory.max
cat >/tmp/kill <<'END'
for i in $(seq {KILLS}); do
	workload-memory /sys/fs/cgroup/oom.service oom /sys/fs/cgroup/oom.service/cgroup.procs || exit 1
done
END
say oom bpfpush once --format=json --whole-machine memory -- sh /tmp/kill
cp oom.service/memory.events /result/oom.truth
cd /
"""
SCRIPT = OOM + """\
say whole bpfpush once --for=1ms

cat >/tmp/as <<'END'
capabilities=$1 # of another user, and then what it does
shift
exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=$capabilities --ambient-caps=$capabilities "$@"
END
say user bash /tmp/as -all bpfpush once --for=1ms
say user-run bash /tmp/as -all bpfpush run
say user-list bash /tmp/as -all bpfpush list
say rights bash /tmp/as +bpf,+perfmon bpfpush list --json --config=/dev/null --for=1ms
say one-right bash /tmp/as +bpf bpfpush once --for=1ms
say namespace unshare -U -r bpfpush once --for=1ms

mount -t tmpfs none /sys/kernel/btf
say types bpfpush once --for=1ms
say types-run bpfpush run
say types-list bpfpush list
umount /sys/kernel/btf

mount --bind /tmp/as /sys/kernel/btf/vmlinux
say foreign bpfpush once --for=1ms
umount /sys/kernel/btf/vmlinux

mount -t tmpfs none /sys
say sys bpfpush once --for=1ms
umount /sys

umount /proc
say proc bpfpush once --for=1ms
mount -t proc proc /proc

echo 0 >/proc/sys/net/core/bpf_jit_enable
say compiler bpfpush once --for=1ms
echo 1 >/proc/sys/net/core/bpf_jit_enable

mount -t tmpfs none /sys/fs/cgroup
say hidden bpfpush once --format=json --whole-machine syscalls -- sh -c :
umount /sys/fs/cgroup
umount /sys/fs/cgroup
say cgroup bpfpush once --format=json --whole-machine syscalls -- sh -c :
mount -t tmpfs none /sys/fs/cgroup
mkdir /sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
mkdir /sys/fs/cgroup/systemd/some.service
echo 'echo 0 >/sys/fs/cgroup/systemd/some.service/cgroup.procs; exec ls / >/dev/null' >/tmp/move
say cgroup1 bpfpush once --format=json --whole-machine syscalls -- sh /tmp/move
umount /sys/fs/cgroup/systemd /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup

echo 0 >/proc/sys/kernel/ftrace_enabled
if [ $(cat /proc/sys/kernel/ftrace_enabled) = 0 ]; then # newer kernels leave it at 1
say functions bpfpush once --for=1ms pagecache filesystem
say functions-check bpfpush check --config=/dev/null pagecache
echo 1 >/proc/sys/kernel/ftrace_enabled
cat >/tmp/functions.conf <<'END'
[agent]
interval = 1s
collectors = pagecache syscalls
[exporter file]
type = json
path = /tmp/functions.json
END
until_said() {
	for i in $(seq $((10 * PATIENCE_S))); do
		! grep -q "$1" /result/functions-run.err || return
		sleep 0.1
	done
}
OTEL_LOG_LEVEL=info bpfpush run --config=/tmp/functions.conf 2>/result/functions-run.err &
agent=$!
until_said 'started: '
echo 0 >/proc/sys/kernel/ftrace_enabled
until_said 'counting only in part'
echo 1 >/proc/sys/kernel/ftrace_enabled
until_said 'counting again'
kill $agent
wait $agent
echo $? >/result/functions-run.status
fi

mount -t securityfs securityfs /sys/kernel/security
echo integrity >/sys/kernel/security/lockdown
say integrity bpfpush once --for=1ms
echo confidentiality >/sys/kernel/security/lockdown
say lockdown bpfpush once --for=1ms
say lockdown-run bpfpush run
say lockdown-list bpfpush list
""".replace("PATIENCE_S", str(PATIENCE_S))
RIGHTS = "CAP_BPF and CAP_PERFMON are missing: run as root, or with CAP_BPF and CAP_PERFMON"
TYPES = ("this kernel has no type information (/sys/kernel/btf/vmlinux): use one built with CONFIG_DEBUG_INFO_BTF, like the "
         "kernels of Debian, Fedora and RHEL")
LOCKDOWN = ("this kernel is locked down, so programs may not read its memory: start it without lockdown=confidentiality; "
            "lockdown=integrity does no harm")
REFUSALS = {  # case: (exit status, sentence)
    "user": (77, RIGHTS),
    "user-run": (77, RIGHTS),
    "one-right": (77, "CAP_PERFMON is missing: run as root, or with CAP_BPF and CAP_PERFMON"),
    "namespace": (77, "bpf() is refused although CAP_BPF and CAP_PERFMON are there: the system call filter (seccomp) must allow "
                      "it, and the user namespace must be that of the machine"),
    "types": (69, TYPES),
    "types-run": (69, TYPES),
    "types-list": (69, TYPES),
    "foreign": (69, "/sys/kernel/btf/vmlinux is not the kernel's own: something else is mounted there; unmount it"),
    "sys": (69, "/sys is not mounted: mount it (mount -t sysfs sysfs /sys)"),
    "proc": (69, "/proc is not mounted: mount it (mount -t proc proc /proc)"),
    "compiler": (69, "the kernel's compiler for BPF programs (JIT) is off: run sysctl net.core.bpf_jit_enable=1"),
    "lockdown": (69, LOCKDOWN),
    "lockdown-run": (69, LOCKDOWN),
    "lockdown-list": (69, LOCKDOWN),
}
CGROUPS = ("no cgroup2 tree is mounted, so numbers do not show units and containers: mount it (mount -t cgroup2 cgroup2 "
           "/sys/fs/cgroup) or, where cgroup v1 is in use, start the machine with systemd.unified_cgroup_hierarchy=1")


# Of no concern here: events that a busy kernel skipped.
OTHER = "numbers are too low, because the kernel skipped events"


def said(guest, case):
    """-> its exit status, and the other lines that it said."""
    lines = guest.file(f"{case}.err").splitlines()
    return int(guest.file(f"{case}.status")), [line for line in lines if not line.startswith(OTHER)]


class TestOldKernel(unittest.TestCase):
    def test_a_kernel_that_is_too_old_is_refused(self):
        guest = run_guest("uname -r >/result/release\n" + OLD, kernel="5.10")
        release = guest.file("release").strip()
        self.assertRegex(release, "^5\\.10\\.")
        for case in ("run", "once", "list"):
            with self.subTest(case):
                self.assertEqual(said(guest, case), (69, [f"not started: this kernel ({release}) is too old: bpfpush needs Linux 5.15 or later"]))
                self.assertEqual(guest.file(f"{case}.out"), "")
        self.assertNotRegex(guest.kernel_log, COMPLAINT)


class Kills:
    script = OOM

    @classmethod
    def setUpClass(cls):
        cls.guest = run_guest(cls.script, kernel=cls.kernel)

    def test_three_kills_are_those_of_their_unit(self):
        self.assertEqual(said(self.guest, "oom"), (0, []))
        self.assertIn(f"oom_kill {KILLS}\n", self.guest.file("oom.truth"))
        points = [json.loads(line) for line in self.guest.file("oom.out").splitlines() if line.startswith('{"collector"')]
        kills = [(point["attributes"], point["total"]) for point in points if point["name"] == "bpfpush.memory.oom_kills"]
        self.assertEqual(kills, [({"systemd.unit.name": "oom.service"}, KILLS)])

    def test_the_kernel_has_nothing_to_complain_of(self):
        self.assertNotRegex(self.guest.kernel_log, COMPLAINT)


class Refusals(Kills):
    script = SCRIPT

    def test_each_refusal_is_one_sentence(self):
        for case, (status, sentence) in REFUSALS.items():
            with self.subTest(case):
                self.assertEqual(said(self.guest, case), (status, ["not started: " + sentence]))
                self.assertEqual(self.guest.file(f"{case}.out"), "")

    def test_nothing_is_said_where_nothing_is_wrong(self):
        for case in ("whole", "integrity"):
            self.assertEqual(said(self.guest, case), (0, []), case)

    def test_without_rights_list_shows_what_the_files_say(self):
        status, lines = said(self.guest, "user-list")
        self.assertEqual((status, lines), (0, ["not started: " + RIGHTS, "bpfpush list: nothing was attached: only what the files say is shown"]))
        self.assertRegex(self.guest.file("user-list.out"), "\n  sys_exit.* not loaded\n")

    def test_without_a_tree_of_cgroups_the_owner_is_the_root(self):
        self.assertEqual(said(self.guest, "hidden"), (0, [CGROUPS]))
        for case in ("cgroup", "cgroup1"):
            with self.subTest(case):
                self.assertEqual(said(self.guest, case), (0, [CGROUPS]))
                points = [json.loads(line) for line in self.guest.file(f"{case}.out").splitlines()]
                self.assertGreater(len(points), 5)
                self.assertEqual({point["attributes"].get("process.linux.cgroup") for point in points}, {"/"})


class TestDebian12(Refusals, unittest.TestCase):
    kernel = "6.1"

    def test_where_functions_are_not_traced_it_says_so(self):
        cause = "the sysctl kernel.ftrace_enabled is 0, so the kernel runs no program at functions: set it to 1"
        for case in ("functions", "functions-check"):
            self.assertIn(cause, "\n".join(said(self.guest, case)[1]), case)
        status, lines = said(self.guest, "functions-run")
        self.assertEqual((status, [line for line in lines if "functions" in line]),
                         (0, ["counting only in part: pagecache: " + cause,
                              "counting again at functions: pagecache: the sysctl kernel.ftrace_enabled is 1"]))

    def test_two_capabilities_attach_every_collector(self):
        self.assertEqual((self.guest.file("rights.status"), self.guest.file("rights.err")), ("0\n", ""))
        listed = [json.loads(line) for line in self.guest.file("rights.out").splitlines()]
        self.assertGreaterEqual({each["collector"] for each in listed},
                                {"cgroup", "fileio", "memory", "network", "scheduler", "syscalls", "tcpstate", "usage"})
        for each in listed:
            self.assertIn("attached", {program["state"] for program in each["programs"]}, each["collector"])


class TestDebian13(Kills, unittest.TestCase):
    kernel = "6.12"


class TestNewest(Refusals, unittest.TestCase):
    kernel = "newest"


if __name__ == "__main__":
    main()
