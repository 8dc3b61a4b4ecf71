#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package on one of Debian's kernels: the rights that the service has, what it does without them, and what memory it may take.

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


class TestService(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.guest = run_system(UNTIL_TRUE + SCRIPT, kernel, {
            packages.debs()[0]: "/bpfpush.deb", os.path.join(WORKLOADS, "workload-steady"): "/usr/bin/workload-steady"})
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
        disk()
        packages.debs()
    except (Unavailable, packages.NotBuilt) as lacking:
        print(f"skipped: needs {lacking}")
        sys.exit(77)
    main(kernel)
