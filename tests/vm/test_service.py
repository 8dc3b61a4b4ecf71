#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package on one of Debian's kernels: the rights that the service has, what it does without them, what memory it may take,
and what a reload refuses. Linux 6.12 has the systemd of Debian 13.

    test_service.py KERNEL
"""

import os
import re
import sys
import unittest

from guest import COMPLAINT, main
from image import TESTS, WORKLOADS, Unavailable
from system import disk, run_system

sys.path += [TESTS, os.path.join(TESTS, "system")]
import json_lines
import packages
from container import UNTIL_TRUE

# What the exit status of a reload is, with a configuration that is right or has a mistake that only the service can see.
RELOADS = r"""
reload() { # WHAT
	local status=0
	systemctl reload bpfpush || status=$?
	until_true '[ $(systemctl is-active bpfpush) = active ]'
	echo "$1 $status $(systemctl is-active bpfpush) $(show NRestarts)" >>/result/reloads
}
systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p' >/result/systemd
echo 'Bearer 5f0c0ffee' | install -m 600 /dev/stdin /etc/bpfpush/collector-token
printf '[Service]\nLoadCredential=collector-token:/etc/bpfpush/collector-token\n' >/run/systemd/system/bpfpush.service.d/credential.conf
cat >/etc/bpfpush/bpfpush.conf.d/60-token.conf <<'END'
[exporter central]
type = otlp
endpoint = http://localhost:1
headers = Authorization: file:%d/collector-token
END
systemctl daemon-reload
systemctl restart bpfpush
goes_on
reload right
goes_on
sed -i s/collector-token/other-token/ /etc/bpfpush/bpfpush.conf.d/60-token.conf
reload wrong
goes_on
bpfpush reload >/result/by-hand 2>&1
echo $? >>/result/by-hand
setpriv --reuid=nobody --regid=nogroup --clear-groups bpfpush reload >/result/by-nobody 2>&1
echo $? >>/result/by-nobody
sed -i s/other-token/collector-token/ /etc/bpfpush/bpfpush.conf.d/60-token.conf
reload right
goes_on
bpfpush reload >/dev/null && echo "by hand $?" >>/result/reloads
goes_on
rm /etc/bpfpush/bpfpush.conf.d/60-token.conf
reload without
goes_on
journalctl --unit=bpfpush --output=cat >/result/journal-of-reloads
"""
SCRIPT = r"""
show() { systemctl show bpfpush --property=$1 --value; }
collections() { grep -o '"time_ns":[0-9]*' /var/log/bpfpush/points | sort -u | wc -l; }
goes_on() { # two collections from now
	local before
	before=$(collections)
	until_true "[ \$(collections) -ge $((before + 2)) ]"
}
comes_back() { # BUT: as another process than that
	until_true "[ \$(systemctl is-active bpfpush) = active ] && [ \$(show MainPID) != $1 ]"
	goes_on
}
mkdir -p /etc/bpfpush/bpfpush.conf.d /run/systemd/system/bpfpush.service.d
# An emulated machine that gets no CPU is no fault of the service.
printf '[Service]\nTimeoutStartSec=600\nTimeoutStopSec=600\nWatchdogSec=600\n' >/run/systemd/system/bpfpush.service.d/slow.conf
cat >/etc/bpfpush/bpfpush.conf.d/50-test.conf <<'END'
[agent]
interval = 1s
include_units = counted.service
[exporter lines]
type = json
path = /var/log/bpfpush/points
END
dpkg --install /bpfpush.deb >/dev/null || exit 1
until_true '[ $(systemctl is-active bpfpush) = active ]'
systemd-run --quiet --unit=counted workload-steady /counts || exit 1
goes_on

RELOADS
cp /proc/$(show MainPID)/status /result/rights
setpriv --reuid=bpfpush --regid=bpfpush --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs \
	bpfpush once --config=/dev/null --for=1ms >/result/refused 2>&1
echo $? >/result/refused.status

pid=$(show MainPID)
systemctl set-property --runtime bpfpush MemoryMax=1M
until_true '[ $(show NRestarts) -ge 1 ]'
systemctl set-property --runtime bpfpush MemoryMax=infinity
comes_back $pid
journalctl --unit=bpfpush --output=cat >/result/journal

pid=$(show MainPID)
kill -KILL $pid
comes_back $pid

systemctl stop counted
systemctl stop bpfpush
od -An -t u8 /counts >/result/counts
cp /var/log/bpfpush/points /result/points
"""
kernel = "6.1"
SUITES = {"6.12": ["trixie"]}


class TestService(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.guest = run_system(UNTIL_TRUE + SCRIPT.replace("RELOADS", RELOADS), kernel, {
            packages.debs()[0]: "/bpfpush.deb", os.path.join(WORKLOADS, "workload-steady"): "/usr/bin/workload-steady"},
            *SUITES.get(kernel, []))
        print(cls.guest.output)

    def setUp(self):
        self.assertEqual(self.guest.status, 0, self.guest.output)

    def test_the_kernel_complains_of_nothing(self):
        self.assertNotRegex(self.guest.kernel_log, COMPLAINT)

    def test_it_has_no_rights_once_it_counts(self):
        rights = dict(re.findall(r"^(Cap\w+|NoNewPrivs):\t(\w+)$", self.guest.file("rights"), re.MULTILINE))
        none = "0" * 16
        self.assertEqual({name: rights[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs")},
                         {"CapInh": none, "CapPrm": none, "CapEff": none, "CapAmb": none, "NoNewPrivs": "1"})

    def test_with_its_rights_no_program_can_be_loaded(self):
        self.assertEqual(self.guest.file("refused.status"), "77\n", self.guest.file("refused"))

    def test_a_reload_fails_if_the_service_lacks_a_credential(self):
        print("systemd", self.guest.file("systemd"))
        if kernel in SUITES:
            self.assertGreater(int(self.guest.file("systemd")), 252)
        self.assertEqual(self.guest.file("reloads"), "right 0 active 0\nwrong 1 active 0\nright 0 active 0\nby hand 0\nwithout 0 active 0\n")
        journal = self.guest.file("journal-of-reloads")
        self.assertEqual(journal.count("%d/other-token: the service has no such credential"), 2, journal)
        self.assertNotIn("not checked", journal)

    def test_who_asks_for_a_reload_hears_why_there_is_none(self):
        self.assertRegex(self.guest.file("by-hand"), r"^OK: .*\nbpfpush reload: the service does not use the new configuration, and goes on as before; its "
                         r"log says why: journalctl --unit=bpfpush\n78\n$")
        self.assertRegex(self.guest.file("by-nobody"), r"\nbpfpush reload: /run/bpfpush/reload: Permission denied; run it as root\n77\n$")

    def test_nothing_is_lost_when_memory_ends_or_it_is_killed(self):
        n_oom_kills = self.guest.file("journal").count("'oom-kill'")
        self.assertGreater(n_oom_kills, 0)
        found = [{}, {}]
        for line in json_lines.points(self.guest.file("points").split("\n")[:-1], n_oom_kills + 1):
            for number, call in enumerate(("timer_getoverrun", "ioprio_get")):
                if line["attributes"].get("bpfpush.syscall.name") == call and line["attributes"].get("systemd.unit.name") == "counted.service":
                    found[number][line["start_time_ns"]] = line["total"]
        self.assertEqual([list(totals.values()) for totals in found], [[int(count)] for count in self.guest.file("counts").split()])


if __name__ == "__main__":
    kernel = sys.argv.pop(1) if len(sys.argv) > 1 else kernel
    try:
        disk(*SUITES.get(kernel, []))
        packages.debs()
    except (Unavailable, packages.NotBuilt) as lacking:
        print(f"skipped: needs {lacking}")
        sys.exit(77)
    main(kernel)
