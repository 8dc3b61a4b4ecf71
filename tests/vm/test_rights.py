#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What somebody can attach to the guest's kernel who has CAP_BPF and CAP_PERFMON and nothing else."""

import json
import unittest

from guest import main, run_guest

CAPABILITIES = "+bpf,+perfmon"
SCRIPT = f"""\
export OTEL_LOG_LEVEL=warn # not how much room a small machine has
setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps={CAPABILITIES} --ambient-caps={CAPABILITIES} \\
	bpfpush list --json --config=/dev/null --for=1ms >/result/list 2>/result/errors
"""


class TestRights(unittest.TestCase):
    def test_two_capabilities_attach_every_collector(self):
        guest = run_guest(SCRIPT)
        self.assertEqual(guest.status, 0, guest.output + guest.file("errors"))
        self.assertEqual(guest.file("errors"), "")
        listed = [json.loads(line) for line in guest.file("list").splitlines()]
        self.assertGreaterEqual({each["collector"] for each in listed},
                                {"cgroup", "fileio", "memory", "network", "scheduler", "syscalls", "tcpstate"})
        for each in listed:
            self.assertIn("attached", {program["state"] for program in each["programs"]}, each["collector"])


if __name__ == "__main__":
    main()
