# SPDX-License-Identifier: Apache-2.0
"""ebpf_exporter's examples that make spans: for each, work that says what it does, and the comparison.

Examples that look at one trace get its id from USDT of a program of the tests, where their own demonstrations have them."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import judge
from judge import Example, between, example, write

TRACE = (0x1122334455667788, 0x99aabbccddeeff00)
PARENT = 0x0123456789abcdef


def text_of(*numbers):
    """As they are in memory, in hexadecimal."""
    return struct.pack("=%dQ" % len(numbers), *numbers).hex()


def say(*words):
    """What the program of the tests says of its work."""
    words = [judge.harness.workload("judge"), words[0], *map(str, [*TRACE, PARENT, *words[1:]])]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


class Spans(Example):
    is_of_spans = True
    usdt = ()  # programs that wait for the program of the tests

    @property
    def amends(self):
        path = os.path.realpath(judge.harness.workload("judge"))
        return "".join(f"\n[program {name}]\nbinary = {path}\n" for name in self.usdt)

    @staticmethod
    def mine(spans, **attributes):
        return [span for span in spans if attributes.items() <= span["attributes"].items()]

    def check_trace(self, test, spans, facts):
        """All are of the trace that was said, and within the time of the work."""
        test.assertEqual({(span["attributes"]["trace_id"], span["attributes"]["parent_span_id"]) for span in spans}, {(text_of(*TRACE), text_of(PARENT))})
        test.assertEqual(len({span["attributes"]["span_id"] for span in spans}), len(spans))
        for span in spans:
            test.assertTrue(facts["begin_ns"] <= span["time_ns"] <= facts["end_ns"], (span, facts["begin_ns"], facts["end_ns"]))


@example("exec-trace")
class ExecTrace(Spans):
    """A shell that executes a program and another shell, which does so too: who began whom is known."""

    def work(self):
        directory = tempfile.mkdtemp(prefix="bpfpush-judge.")
        paths = [os.path.join(directory, name) for name in ("first", "second")]
        for path in paths:
            shutil.copy("/bin/true", path)
        subprocess.run(["/bin/bash", "-c", f"{paths[0]}; /bin/bash -c '{paths[1]}; :'; :"], check=True)
        shutil.rmtree(directory)
        return {"paths": paths}

    def check(self, test, spans, facts):
        first, = self.mine(spans, span_name=facts["work"]["paths"][0])
        trace = self.mine(spans, trace_id=first["attributes"]["trace_id"])
        by_id = {span["attributes"]["span_id"]: span for span in trace}

        def ancestors(span):
            parent = by_id.get(span["attributes"].get("parent_span_id"))
            return [span["attributes"]["span_name"]] + (ancestors(parent) if parent else [])
        second, = self.mine(trace, span_name=facts["work"]["paths"][1])
        test.assertEqual(ancestors(first), [facts["work"]["paths"][0], "/bin/bash"])
        test.assertEqual(ancestors(second), [facts["work"]["paths"][1], "/bin/bash", "/bin/bash"])
        test.assertEqual(len(trace), 4)
        for span in trace:
            test.assertEqual(span["event"], "exec")
            test.assertTrue(facts["begin_ns"] <= span["time_ns"] <= facts["end_ns"])
            test.assertTrue(0 < span["attributes"]["duration"] <= facts["end"] - facts["begin"])


@example("bio-trace")
class BioTrace(Spans, judge.Biolatency):
    """Writes to a loop device of the test's own, next to its line in /proc/diskstats."""

    def check(self, test, spans, facts):
        work = facts["work"]
        served = self.mine(spans, device=work["device"], operation="write")
        served = [span for span in served if span["event"] == "block_rq_service"]
        test.assertEqual((len(served), work["writes"]), (self.COUNT, self.COUNT))
        test.assertEqual(len({span["attributes"]["span_id"] for span in served}), self.COUNT)
        test.assertTrue(0 < sum(span["attributes"]["duration"] for span in served) < facts["end"] - facts["begin"])


@example("sched-trace")
class SchedTrace(Spans):
    """Switches away from a process that sleeps, next to getrusage(2)."""
    COUNT = 50
    usdt = ("sock_set_parent_span", "sched_clear_parent_span")  # as they are called in the example

    def work(self):
        return say("sleep", self.COUNT)

    def check(self, test, spans, facts):
        work = facts["work"]
        self.check_trace(test, spans, facts)
        spans = self.mine(spans, tgid=work["pid"])
        switches = [span for span in spans if span["event"] == "sched_switch"]
        asleep = self.mine(switches, state="interruptible_sleep", preempt="false")
        test.assertGreaterEqual(work["inner"][0], self.COUNT)
        between(test, len(asleep), work["inner"][0], work["outer"][0], "voluntary switches")
        between(test, len(switches), sum(work["inner"]), sum(work["outer"]), "all switches")
        test.assertGreaterEqual(sum(span["event"] == "sched_wakeup" for span in spans), self.COUNT)


@example("sock-trace")
class SockTrace(Spans):
    """A connection whose cookie the program says: what it sends passes functions of the kernel, whose names are spans."""
    COUNT = 20
    usdt = ("sock_set_parent_span",)

    def work(self):
        return say("talk", self.COUNT)

    def check(self, test, spans, facts):
        self.check_trace(test, spans, facts)
        of = {name: [span for span in spans if span["event"] == name] for name in ("stitch", "sock_release", "sk_spans")}
        test.assertEqual([span["attributes"]["socket_cookie"] for span in of["stitch"]], ["0x%x" % facts["work"]["cookie"]])
        test.assertEqual(len(of["sock_release"]), 1)
        functions = [span["attributes"]["span_name"] for span in of["sk_spans"]]
        # The program leaves out as many frames as belong to the trampoline of one kernel: on others, it shows the caller.
        for names in (("__ip_local_out", "ip_local_out"), ("ip_finish_output", "ip_output")):
            test.assertGreaterEqual(sum(function in names for function in functions), self.COUNT, functions)


@example("cfs-throttling-trace")
class CfsThrottlingTrace(Spans):
    """A process that may have a fifth of a CPU, next to the cpu.stat of its cgroup."""
    usdt = ("cfs_set_parent_span", "cfs_clear_parent_span")

    def work(self):
        directory = "/sys/fs/cgroup/judge.trace"
        write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu")
        os.makedirs(directory, exist_ok=True)
        write(directory + "/cpu.max", "10000 50000")
        say("spin", directory + "/cgroup.procs", 1000)
        stat = dict(re.findall(r"(?m)^(\w+) (\d+)$", judge.read(directory + "/cpu.stat")))
        return {"throttled": int(stat["nr_throttled"]), "seconds": int(stat["throttled_usec"]) / 1e6}

    def check(self, test, spans, facts):
        work = facts["work"]
        self.check_trace(test, spans, facts)
        test.assertEqual({span["event"] for span in spans}, {"cfs_throttle"})
        # The program says its trace a moment after it enters the cgroup, and has said it when the last throttling ends.
        between(test, len(spans), 5, work["throttled"], "throttlings")
        test.assertGreaterEqual(len(spans), work["throttled"] - 2)
        test.assertLessEqual(sum(span["attributes"]["duration"] for span in spans), work["seconds"] * 1.01)
        test.assertRegex(spans[0]["attributes"]["kstack"], "unthrottle|distribute|period|timer")


if __name__ == "__main__":
    judge.work(sys.argv[2:])
