#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `meson install` installs, run by a real systemd: start, READY, status, journal, watchdog, stop."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from container import Unavailable, rootfs, run_container

BUILD = os.environ.get("BUILD_DIR") or os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "build"))
README = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "README.md")
LOG_H = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "src", "util", "log.h")

INSTALL = """\
tar -C /payload -c . | tar -C / -x --keep-directory-symlink
ldconfig
systemd-sysusers
systemctl daemon-reload
journalctl --update-catalog
mkdir -p /etc/bpfpush
configure() { cat >/etc/bpfpush/bpfpush.conf; }
show() { systemctl show bpfpush --property="$1" --value; }
entries() { # Also by identifier: of a process that has ended, the journal may not know the unit any more.
	journalctl --sync
	journalctl --output=json --all _SYSTEMD_UNIT=bpfpush.service + UNIT=bpfpush.service + SYSLOG_IDENTIFIER=bpfpush >/result/journal
}
pushed() { bpfpush status --json | grep -o '"pushed":[0-9]*' | tr -dc 0-9; }
wait_collections() { # N more, of which the exporter was told
	local i before
	for i in $(seq $1); do
		before=$(pushed)
		until_true '[ "0$(pushed)" -gt "0$before" ]'
	done
}
comes_back() { until_true '[ "$(show NRestarts) $(show ActiveState)" = "1 active" ]'; }
"""

# Nobody listens there: the endpoint's absence must not matter to the service.
NOBODY = """\
configure <<'X'
[agent]
interval = 1s
shutdown_timeout = 1s
[exporter nobody]
type = otlp
endpoint = http://127.0.0.1:9
X
"""


def log_ids():
    with open(LOG_H, encoding="utf-8") as file:
        return dict(re.findall(r'#define\s+LOG_ID_(\w+)\s+"([0-9a-f]{32})"', file.read()))


class TestService(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stage = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-stage."))
        os.chmod(cls.stage, 0o755)  # it becomes the root of the container
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.stage], check=True,
                       stdout=subprocess.DEVNULL)
        cls.ids = log_ids()

    def boot(self, script, **options):
        result = run_container(INSTALL + script, payload=self.stage, **options)
        self.assertEqual(result.status, 0, result.output)
        return result

    def journal(self, result):
        return [json.loads(line) for line in result.file("journal").splitlines()]

    def find(self, entries, name):
        found = [entry for entry in entries if entry.get("MESSAGE_ID") == self.ids[name]]
        self.assertTrue(found, f"no {name} among:\n" + "\n".join(str(entry.get("MESSAGE")) for entry in entries))
        return found

    def test_the_installed_files_are_where_systemd_looks(self):
        result = self.boot("systemctl cat bpfpush >/result/unit; systemd-analyze verify --man=no bpfpush.service >/result/verify 2>&1; "
                           "systemd-analyze security --offline=true --threshold=15 --no-pager bpfpush.service >/result/exposure || exit 1; "
                           "journalctl --list-catalog >/result/catalog; bpfpush --version")
        self.assertIn("Type=notify", result.file("unit"))
        self.assertEqual(result.file("verify"), "")
        for name, identity in self.ids.items():
            self.assertIn(identity, result.file("catalog"), name)

    def test_start_returns_when_it_counts_and_stop_ends_it_well(self):
        result = self.boot(NOBODY + """
systemctl enable --now bpfpush || exit 1
echo "$(show ActiveState) $(show SubState) $(show NRestarts)" >/result/started
wait_collections 2
show StatusText >/result/text
pid=$(show MainPID)
systemctl stop bpfpush || exit 1
echo "$(show ActiveState) $(show Result) $(show ExecMainStatus)" >/result/stopped
[ ! -e /proc/$pid ] || exit 1
entries
""")
        self.assertEqual(result.file("started"), "active running 0\n", result.output)
        self.assertNotEqual(result.file("text").strip(), "", "STATUS= says what it does")
        self.assertEqual(result.file("stopped"), "inactive success 0\n")
        entries = self.journal(result)
        for name in ("STARTED", "STOPPED"):
            for entry in self.find(entries, name):
                self.assertEqual((entry["PRIORITY"], entry["_SYSTEMD_UNIT"], entry["_TRANSPORT"]),
                                 ("6", "bpfpush.service", "journal"))

    def test_a_reload_takes_the_new_name_of_the_host(self):
        self.boot("""
perl -MIO::Socket::INET -e '$| = 1; $s = IO::Socket::INET->new(Listen => 9, LocalAddr => "127.0.0.1:2003") or die; while ($c = $s->accept) { print while <$c> }' >/tmp/lines &
configure <<'X'
[agent]
interval = 1s
[exporter paths]
type = graphite
endpoint = 127.0.0.1:2003
X
hostname first-name
systemctl start bpfpush || exit 1
until_true 'grep -q "^first-name[.]" /tmp/lines'
hostname second-name
systemctl reload bpfpush || exit 1
until_true 'grep -q "^second-name[.]" /tmp/lines'
""")

    def test_an_endpoint_that_fails_is_one_warning_with_fields(self):
        result = self.boot(NOBODY + f"""
systemctl start bpfpush || exit 1
until_true '[ -n "$(journalctl --unit=bpfpush --output=cat MESSAGE_ID={self.ids["EXPORT_FAILING"]})" ]'
wait_collections 2
entries
""")
        failing = self.find(self.journal(result), "EXPORT_FAILING")
        self.assertEqual([(entry["PRIORITY"], entry["BPFPUSH_EXPORTER"]) for entry in failing], [("4", "nobody")])

    def test_a_wrong_configuration_fails_for_good_and_says_where(self):
        result = self.boot("""
configure <<'X'
[agent]
intervall = 1s
X
systemctl start bpfpush
echo "$(show ActiveState) $(show ExecMainStatus) $(show NRestarts)" >/result/state
entries
""")
        self.assertEqual(result.file("state"), "failed 78 0\n")  # where it is to start again, it is not failed but activating
        entries = self.journal(result)
        self.assertTrue([entry for entry in entries if "/etc/bpfpush/bpfpush.conf:2: " in str(entry["MESSAGE"])
                         and "interval" in entry["MESSAGE"] and entry["PRIORITY"] == "3"],
                        [entry["MESSAGE"] for entry in entries])
        self.find(entries, "CONFIG_REJECTED")

    def test_a_check_says_how_many_probes_fit_into_the_unit(self):
        result = self.boot(r"""
for i in $(seq 300); do printf '[probe many%s]\nhook = uprobe:libc:getpid\nmeasure = count\n' $i; done | configure
bpfpush check >/result/many 2>&1 || exit 1
configure </dev/null
bpfpush check >/result/few 2>&1 || exit 1
""")
        found = re.findall(r"descriptors.* suffice for some (\d+) objects and probes of (3\d\d); raise (\w+)= of the unit",
                           result.file("many"))
        self.assertEqual([limit for _, _, limit in found], ["LimitNOFILE", "FileDescriptorStoreMax"], result.file("many"))
        for fitting, _, limit in found:
            self.assertTrue(50 <= int(fitting) < 250, (limit, fitting))
        self.assertNotIn("descriptors", result.file("few"))

    def test_no_address_of_the_kernel_is_exported(self):
        """Without the right to see its functions they have no names; with it, also after a reload, which has no rights."""
        result = self.boot(r"""
drop() {
    for i in $(seq 50); do echo x >/dev/udp/127.0.0.1/9; done
    wait_collections $1
    cp /var/log/bpfpush/points.json /result/$2
}
configure <<'X'
[agent]
interval = 1s
[exporter file]
type = json
path = /var/log/bpfpush/points.json
[collector drops]
function = yes
X
systemctl start bpfpush || exit 1
bpfpush check >/result/check 2>&1 || exit 1
entries
drop 2 before
bpfpush allow symbols || exit 1
until_true '[ "$(show ActiveState)" = active ]'
bpfpush check >/result/check_after 2>&1 || exit 1
drop 2 allowed
systemctl reload bpfpush || exit 1
drop 2 reloaded
journalctl --quiet --unit=bpfpush --output=cat >/result/log
""")
        cure = 'functions of the kernel are called "unknown": CAP_SYSLOG is missing; "sudo bpfpush allow symbols" gives it to the service'
        self.assertEqual([text.count(cure) for text in (result.file("check"), result.file("check_after"))], [1, 0])
        self.assertEqual(result.file("log").count(cure), 1, result.file("log"))
        start = 0
        for name, may_name in (("before", False), ("allowed", True), ("reloaded", True)):
            text, grown = result.file(name), {}
            for point in map(json.loads, text[start:].splitlines()):
                attributes = point["attributes"]
                if attributes.get("bpfpush.network.drop.reason") == "NO_SOCKET":
                    function = attributes["code.function.name"]
                    grown[function] = grown.get(function, 0) + point["delta"]
            functions = {function for function, n in grown.items() if n}
            self.assertGreaterEqual(sum(grown.values()), 50, (name, grown))
            self.assertFalse([function for function in functions if (function != "unknown") != may_name], (name, grown))
            self.assertNotIn("0xffff", text)
            start = len(text)

    def test_what_the_readme_configures_counts_or_says_what_to_do(self):
        with open(README, encoding="utf-8") as file:
            probe = re.search(r"```ini\n(\[probe lookups\]\n.*?)```", file.read(), re.DOTALL)[1]
        result = self.boot(f"""
configure <<'X'
[agent]
interval = 1s
collectors = memory
[exporter file]
type = json
path = /var/log/bpfpush/points.json
[collector dns]
{probe}
X
systemctl start bpfpush || exit 1
bpfpush check >/result/check 2>&1; echo $? >>/result/check
bpfpush status >/result/page
entries
bpfpush allow >/result/before
pid=$(show MainPID)
bpfpush allow perf-events >/result/allowed 2>&1 || exit 1
until_true '[ "$(show MainPID) $(show ActiveState)" != "$pid active" ] && [ "$(show ActiveState)" = active ]'
bpfpush allow perf-events >/result/again 2>&1 || exit 1
until_true '[ "$(show ActiveState)" = active ]'
bpfpush allow >/result/after
bpfpush check >/result/check_after 2>&1 || exit 1
wait_collections 1
# Not in the unit of this script: other containers have one of that name, and the same C library.
systemd-run --quiet --wait --unit=counted-lookups sh -c 'for i in $(seq 7); do getent ahosts localhost >/dev/null; done; :' || exit 1
wait_collections 2
setpriv --reuid=nobody --regid=bpfpush --clear-groups bpfpush top --count=2 >/result/top 2>&1 || exit 1
setpriv --reuid=nobody --regid=nogroup --clear-groups bpfpush top --count=2 >/result/no_top 2>&1; echo $? >>/result/no_top
cp /var/log/bpfpush/points.json /result/points
""")
        cure = 'CAP_SYS_ADMIN is missing; "sudo bpfpush allow perf-events" gives it to the service'
        for name in ("check", "page"):
            self.assertGreaterEqual(result.file(name).count(cure), 2, result.file(name))
        self.assertRegex(result.file("check"), r"(?m)^OK, but not all of it will count here: .*\n(.*\n)*0\n$")
        self.assertIn(cure, "\n".join(str(entry["MESSAGE"]) for entry in self.journal(result)))
        self.assertEqual(len(re.findall(r"(?m) UTC, [\d.]+ ?[a-z]+, .*by the service$", result.file("top"))), 2, result.file("top"))
        self.assertRegex(result.file("no_top"), r"^/run/bpfpush/collections: Permission denied; run it as root .*\n77\n$")
        self.assertRegex(result.file("before"), r"(?m)^perf-events +For probes")
        self.assertRegex(result.file("after"), r"(?m)^perf-events +on +For probes")
        self.assertIn("perf-events.conf is new; to undo it, ", result.file("allowed"))
        self.assertIn("perf-events.conf is there already; to undo it, ", result.file("again"))
        self.assertRegex(result.file("check_after"), r"(?m)^OK: \d+ collectors")
        totals = {}
        for line in result.file("points").splitlines():
            point = json.loads(line)
            if point["collector"] == "lookups" and point["attributes"].get("systemd.unit.name") == "counted-lookups.service":
                totals[str(point["attributes"])] = point["total"]["count"]
        self.assertEqual(sum(totals.values()), 7, result.file("points")[-2000:])

    @unittest.skipIf(os.path.isdir("/run/systemd/system"), "systemd puts the container into a cgroup of its own choice")
    def test_in_a_guest_all_units_have_their_own_names(self):
        """Those that were there before the agent, and those that came later, even if they are gone."""
        for below in ("t.slice/machine-box.scope", "lxc.payload.c1", "docker-" + 64 * "a" + ".scope"):
            with self.subTest(below):
                result = self.boot("""
configure <<'X'
[agent]
interval = 1s
collectors = syscalls
[exporter file]
type = json
path = /var/log/bpfpush/points.json
X
mkfifo /run/go
calls='for i in 1 2 3 4 5 6 7; do cat /dev/null; done'
systemd-run --quiet --unit=before-it sh -c "read go </run/go; $calls"
until_true '[ "$(systemctl is-active before-it)" = active ]'
systemctl start bpfpush || exit 1
echo >/run/go
systemd-run --quiet --wait --unit=after-it sh -c "$calls" || exit 1
until_true '[ "$(systemctl is-active before-it)" != active ]'
wait_collections 3
cp /var/log/bpfpush/points.json /result/points
""", below=below)
                calls = {}
                for line in result.file("points").splitlines():
                    point = json.loads(line)
                    if point["attributes"].get("bpfpush.syscall.name") == "execve":
                        unit = point["attributes"].get("systemd.unit.name") or next(iter(point["attributes"].values()))
                        calls[unit] = point["total"]
                self.assertEqual(calls.get("before-it.service"), 7, calls)
                self.assertIn(calls.get("after-it.service"), (8, 9), calls)  # with its shell, which newer systemds start in two steps
                self.assertNotIn(os.path.basename(below), calls)

    def test_a_table_in_the_journal_is_warned_of_once(self):
        result = self.boot("""
configure <<'X'
[agent]
collectors = memory
[exporter table]
type = console
X
systemctl start bpfpush || exit 1
entries
""")
        said = [entry["MESSAGE"] for entry in self.journal(result) if "writes to standard output" in str(entry["MESSAGE"])]
        self.assertEqual(len(said), 1, said)
        self.assertTrue(said[0].startswith("/etc/bpfpush/bpfpush.conf:3: exporter table "), said)

    def test_without_rights_it_says_why_it_did_not_start(self):
        result = self.boot(NOBODY + """
mkdir -p /run/systemd/system/bpfpush.service.d
printf '[Service]\\nCapabilityBoundingSet=\\nAmbientCapabilities=\\n' >/run/systemd/system/bpfpush.service.d/rights.conf
systemctl daemon-reload
systemctl start bpfpush
echo "$(show ActiveState) $(show ExecMainStatus)" >/result/state
entries
""")
        self.assertEqual(result.file("state"), "failed 77\n")
        (why,) = self.find(self.journal(result), "CANNOT_RUN")
        self.assertTrue(why["MESSAGE"].startswith("not started: CAP_BPF and CAP_PERFMON are missing"), why)

    def test_an_agent_that_hangs_is_started_again(self):
        result = self.boot(NOBODY + """
mkdir -p /run/systemd/system/bpfpush.service.d
printf '[Service]\\nWatchdogSec=20s\\nRestartSec=100ms\\n' >/run/systemd/system/bpfpush.service.d/quick.conf
systemctl daemon-reload
systemctl start bpfpush
# It has told the watchdog of itself when the time was up for the first time.
until_true '[ $(show WatchdogTimestampMonotonic) -gt $(($(show ExecMainStartTimestampMonotonic) + 20000000)) ]'
echo "before $(show NRestarts)" >/result/restarts
kill -STOP $(show MainPID)
comes_back
echo "after $(show NRestarts) $(show ActiveState)" >>/result/restarts
""")
        self.assertEqual(result.file("restarts"), "before 0\nafter 1 active\n")

    def test_an_agent_that_is_killed_is_started_again(self):
        result = self.boot(NOBODY + """
systemctl start bpfpush
kill -KILL $(show MainPID)
comes_back
echo "$(show NRestarts) $(show ActiveState)" >/result/restarts
""")
        self.assertEqual(result.file("restarts"), "1 active\n")

    def test_numbers_carry_the_units_of_this_systemd(self):
        result = self.boot("""
configure <<'X'
[agent]
interval = 1s
[exporter lines]
type = json
path = /run/bpfpush-test/lines
X
mkdir -p /run/bpfpush-test /run/systemd/system/bpfpush.service.d
chown bpfpush /run/bpfpush-test
printf '[Service]\\nReadWritePaths=/run/bpfpush-test\\n' >/run/systemd/system/bpfpush.service.d/write.conf
systemctl daemon-reload
systemctl start bpfpush || exit 1
systemd-run --quiet --wait --unit=busy.service bash -c 'for i in $(seq 200); do read -r x </proc/self/stat; done'
wait_collections 2
systemctl stop bpfpush
cp /run/bpfpush-test/lines /result/lines
""")
        lines = [json.loads(line) for line in result.file("lines").splitlines()]
        opened = [line["total"] for line in lines if line["name"] == "bpfpush.syscalls"
                  and line["attributes"].get("systemd.unit.name") == "busy.service"
                  and line["attributes"].get("bpfpush.syscall.name") == "openat" and "error.type" not in line["attributes"]]
        self.assertTrue(opened, sorted({str(line["attributes"].get("systemd.unit.name")) for line in lines}))
        self.assertGreaterEqual(max(opened), 200)

    def test_events_are_entries_of_the_journal(self):
        result = self.boot("""
configure <<'X'
[agent]
collectors = exec
[exporter journal]
type = journal
[exporter nobody]
type = otlp
endpoint = http://127.0.0.1:9
X
systemctl start bpfpush || exit 1
systemd-run --quiet --wait --unit=busy.service bash -c '/bin/true one "two words"; exit 0'
events() { journalctl --quiet --output=json EVENT_NAME=process.exec SYSTEMD_UNIT_NAME=busy.service PROCESS_EXECUTABLE_PATH=/bin/true; }
until_true '[ -n "$(events)" ]'
events >/result/events
""")
        entry, = map(json.loads, result.file("events").splitlines())
        self.assertEqual([entry[name] for name in ("PROCESS_COMMAND_ARGS", "PRIORITY", "SYSLOG_IDENTIFIER", "_SYSTEMD_UNIT")],
                         ["/bin/true one two words", "6", "bpfpush-events", "bpfpush.service"])
        self.assertTrue(entry["MESSAGE"].startswith("process.exec systemd.unit.name=busy.service "), entry)


if __name__ == "__main__":
    try:
        if not os.access(os.path.join(BUILD, "bpfpush"), os.X_OK):
            raise Unavailable("bpfpush is not built")
        rootfs()
    except Unavailable as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
    unittest.main()
