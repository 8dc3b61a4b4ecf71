# SPDX-License-Identifier: Apache-2.0
"""ebpf_exporter's examples run: for each, work that another source counts too, and the comparison.

    judge.py work NAME...    does the work of these examples, and prints what it knows of it as one line of JSON

A test counts all of its examples with one `bpfpush once -- judge.py work …`, or `bpfpush events` for those of spans. An Example has three parts: snapshot(),
numbers of the kernel's own that are read around the work (inner) and around all of bpfpush's run (outer); work(), what
is done and known; and check(), which compares what bpfpush has exported with both. What also others do on this machine
lies between inner and outer; what only the work does is exact."""

import contextlib
import ctypes
import errno
import json
import os
import re
import socket
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "bpf"))
import harness
import held

TRACING = os.environ.get("JUDGE_TRACING", "/sys/kernel/tracing")
LIBC = ctypes.CDLL(None, use_errno=True)
CLOSED, FULL, WAITED, QUEUED, STEPPED, SMALL = 7771, 7772, 7773, 7774, 7775, 7776  # ports
EXAMPLES = {}


def example(name, *kprobes):
    """Registers the class of an example; kprobes: functions whose calls a kprobe event counts."""
    def register(cls):
        EXAMPLES[name] = cls()
        EXAMPLES[name].name, EXAMPLES[name].kprobes = name, kprobes
        return cls
    return register


class Example:
    amends = ""  # further sections of the descriptor
    is_of_spans = False  # check() gets them instead of points

    def snapshot(self):
        return {function: kprobe_hits(function) for function in self.kprobes}

    def work(self):
        return {}

    def check(self, test, points, facts):
        raise NotImplementedError


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# --- other sources ------------------------------------------------------------------------------------------

def kprobe_hits(function):
    found = re.search(rf"(?m)^\s*judge_{function}\s+(\d+)", read(os.path.join(TRACING, "kprobe_profile")))
    return int(found.group(1)) if found else 0


def add_kprobes(names):
    """A kprobe event for each function that this kernel has."""
    for function in sorted({function for name in names for function in EXAMPLES[name].kprobes}):
        with contextlib.suppress(OSError):
            add_kprobe(function, function)


def add_kprobe(name, what):
    fd = os.open(os.path.join(TRACING, "kprobe_events"), os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, f"p:judge/judge_{name} {what}\n".encode())
    finally:
        os.close(fd)
    write(os.path.join(TRACING, "events/judge", "judge_" + name, "enable"), "1")


def softirqs():
    """{kind: [count of each CPU]}"""
    return {line.split(":")[0].strip(): [int(word) for word in line.split(":")[1].split()] for line in read("/proc/softirqs").splitlines()[1:]}


def snmp(group, name):
    lines = [line.split() for line in read("/proc/self/net/snmp").splitlines() if line.startswith(group + ":")]
    return int(lines[1][lines[0].index(name)])


class Trace:
    """An instance of tracefs that has seen some tracepoints: [(time, pid, event, what follows)]"""
    LINE = re.compile(r"^\s*.*-(\d+)\s+\[\d+\]\s+\S+\s+([\d.]+): (\w+): (.*)$")

    def __init__(self, *events):
        harness.leftovers.remove_instances(TRACING)
        self.directory = os.path.join(TRACING, "instances", f"bpfpush-judge-{os.getpid()}")
        os.mkdir(self.directory)
        write(os.path.join(self.directory, "buffer_size_kb"), "16384")
        write(os.path.join(self.directory, "trace_clock"), "mono")
        for event in events:
            write(os.path.join(self.directory, "events", event, "enable"), "1")

    def end(self):
        write(os.path.join(self.directory, "tracing_on"), "0")
        lines = [self.LINE.match(line) for line in read(os.path.join(self.directory, "trace")).splitlines()]
        os.rmdir(self.directory)
        return [(float(line.group(2)), int(line.group(1)), line.group(3), line.group(4)) for line in lines if line]


# --- what several examples do ---------------------------------------------------------------------------------

def udp_to_nobody(port, count):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(count):
            sender.sendto(b"x", ("127.0.0.1", port))


def udp_to_full(port, count):
    """How many were dropped."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        receiver.bind(("127.0.0.1", port))
        receiver.setblocking(False)
        for _ in range(count):
            sender.sendto(b"x" * 500, ("127.0.0.1", port))
        taken = 0
        with contextlib.suppress(BlockingIOError):
            while receiver.recv(1000):
                taken += 1
        return count - taken


def listening(port, backlog, family=socket.AF_INET):
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(backlog)
    return listener


def connect_all(port, count):
    """These wait in the queue of the listener."""
    return [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]


def close_all(sockets):
    for each in sockets:
        each.close()


def histogram(points, name, **attributes):
    """(count, sum, {bound: count of the bucket})"""
    total = points.total("ebpf_exporter." + name, **attributes)
    return (total["count"], total["sum"], {bound: count for bound, count in total["buckets"].items() if count}) if total else (0, 0, {})


def between(test, value, inner, outer, what=""):
    test.assertTrue(inner <= value <= outer, f"{what}: {value} is not from {inner} to {outer}")


# --- examples that any kernel with their tracepoints can run ----------------------------------------------------

@example("syscalls")
class Syscalls(Example):
    """A call that nobody makes any more, and an error that nobody gets."""
    SYSFS, CALLS, ERRORS = 139, 1234, 77

    def work(self):
        for _ in range(self.CALLS):
            LIBC.syscall(self.SYSFS, 3)
        for _ in range(self.ERRORS):
            if LIBC.mount(b"/dev/null", b"/", b"ext4", 0, None) == 0 or ctypes.get_errno() != errno.ENOTBLK:
                raise OSError(ctypes.get_errno(), "mount")
        return {}

    def check(self, test, points, facts):
        test.assertEqual(points.total("ebpf_exporter.syscalls", syscall="sysfs"), self.CALLS)
        test.assertEqual(points.total("ebpf_exporter.syscall_errors", errno="ENOTBLK"), self.ERRORS)


def migrate(pid, rounds):
    """Wakes a child on the other CPU, again and again, so that whoever wakes it migrates it. (this pid, the child's)"""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, cpus[:1])
    ask, answer = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        while os.read(ask[0], 1) == b"x":
            os.write(answer[1], b"x")
        os._exit(0)
    for i in range(rounds):
        deadline = time.monotonic() + 10
        while read(f"/proc/{child}/stat").rsplit(")", 1)[1].split()[0] != "S" and time.monotonic() < deadline:
            pass
        os.sched_setaffinity(child, [cpus[(i + 1) % len(cpus)]])
        os.write(ask[1], b"x")
        os.read(answer[0], 1)
    os.write(ask[1], b"e")
    os.waitpid(child, 0)
    return [pid, child]


CHOOSE = {"cgroup_id_map", "cgroup_id_map_cgrp_storage"}


def wait_known():
    """Until bpfpush, which runs this, has taken what its ring says of cgroups: at once, if one of CHOOSE wants to know."""
    ring = held.Ring(os.getppid(), "cgroup_names")
    while ring.unread_bytes():
        time.sleep(0.001)


class Migrations(Example):
    """By the cgroup of the process that migrates another, next to the kernel's trace of the same tracepoint."""
    ROUNDS = 100
    metric = "cgroup_sched_migrations"
    events = ("sched/sched_migrate_task",)

    def work(self):
        # Three examples count the same work; the first of them does it, once in each of two cgroups.
        if not Migrations.facts:
            for place in ("system.slice/wanted.service", "other"):
                Migrations.facts[place] = self.work_in(place)
        return Migrations.facts
    facts = {}

    def work_in(self, place):
        directory = os.path.join(harness.cgroup_root(), f"bpfpush-test-judge-{os.getpid()}", place)
        os.makedirs(directory, exist_ok=True)
        if CHOOSE & set(sys.argv[2:]):
            wait_known()
        child = os.fork()
        if not child:
            entering = time.monotonic()
            write(os.path.join(directory, "cgroup.procs"), "0")
            begin = time.monotonic()
            print(json.dumps({place: {"entering": entering, "begin": begin, "pids": migrate(os.getpid(), self.ROUNDS)}}), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        return directory[len(harness.cgroup_root()):]

    def check(self, test, points, facts):
        for place, path in facts["work"].items():
            mine = points.expected[place]
            times = [at for at, pid, event, text in facts["trace"] if event == "sched_migrate_task" and self.subject(pid, text) in mine["pids"]]
            inner, outer = (sum(at >= mine[since] for at in times) for since in ("begin", "entering"))
            test.assertGreaterEqual(inner, self.ROUNDS)
            self.check_place(test, place, inner, outer, *(points.total(f"ebpf_exporter.{self.metric}{end}", cgroup=path) for end in ("", "_not_match")))

    @staticmethod
    def subject(pid, _):
        return pid

    def check_place(self, test, place, inner, outer, count, _):
        between(test, count, inner, outer, place)


@example("cgroup")
class Cgroup(Migrations):
    pass


class CgroupMap(Migrations):
    def check_place(self, test, place, inner, outer, count, not_wanted):
        if place.startswith("system.slice"):
            between(test, count, inner, outer, place)
            between(test, not_wanted, 0, outer - inner, place)
        else:
            test.assertEqual(count, 0)
            between(test, not_wanted, inner, outer, place)


@example("cgroup_id_map")
class CgroupIdMap(CgroupMap):
    pass


@example("cgroup_id_map_cgrp_storage")
class CgroupStorage(CgroupMap):
    """By the cgroup of the one that is migrated."""
    metric = "cgroup_cgrp_storage_sched_migrations"

    @staticmethod
    def subject(_, text):
        return int(re.search(r"pid=(\d+)", text).group(1))


@example("kfree_skb")
class KfreeSkb(Example):
    COUNT = 197

    def work(self):
        udp_to_nobody(CLOSED, self.COUNT)
        return {}

    def check(self, test, points, facts):
        found = points.select("ebpf_exporter.kfree_skb", port=CLOSED)
        test.assertEqual([(point["attributes"]["eth_proto"], point["attributes"]["ip_proto"], point["total"]) for point in found],
                         [("ipv4", "udp", self.COUNT)])
        test.assertRegex(found[0]["attributes"]["reason"].upper(), "NO_SOCKET$")


@example("udp-drops")
class UdpDrops(Example):
    def snapshot(self):
        return {"errors": snmp("Udp", "RcvbufErrors")}

    def work(self):
        return {"dropped": udp_to_full(FULL, 200)}

    def check(self, test, points, facts):
        test.assertGreater(facts["work"]["dropped"], 100)
        test.assertEqual(facts["inner"]["errors"], facts["work"]["dropped"])
        test.assertEqual(points.total("ebpf_exporter.udp_fail_queue_rcv_skbs", local_port=FULL), facts["work"]["dropped"])


@example("xdp")
class Xdp(Example):
    """On lo of this network namespace: what is sent there is received there."""
    def work(self):
        udp_to_nobody(CLOSED + 20, 123)
        return {}

    def check(self, test, points, facts):
        test.assertEqual(points.total("ebpf_exporter.xdp_incoming_packets", ip="ipv4", protocol="udp", dst_port=CLOSED + 20), 123)


class Softirqs(Example):
    """Served softirqs next to /proc/softirqs."""
    def snapshot(self):
        return softirqs()

    def work(self):
        udp_to_nobody(CLOSED + 1, 2000)
        return {}

    def served(self, facts, kind):
        return [sum(each["after"][kind]) - sum(each["before"][kind]) for each in (facts["inner_all"], facts["outer_all"])]


@example("percpu-softirq")
class PercpuSoftirq(Softirqs):
    def check(self, test, points, facts):
        for kind in ("TIMER", "NET_RX", "SCHED", "RCU"):
            for cpu in range(len(facts["inner_all"]["before"][kind])):
                inner, outer = [each["after"][kind][cpu] - each["before"][kind][cpu] for each in (facts["inner_all"], facts["outer_all"])]
                between(test, points.total("ebpf_exporter.softirqs", vec=kind + "_SOFTIRQ", cpu=cpu), inner, outer, f"{kind} {cpu}")
        test.assertGreaterEqual(points.total("ebpf_exporter.softirqs", vec="NET_RX_SOFTIRQ"), 2000)


@example("softirq-latency")
class SoftirqLatency(Softirqs):
    events = ("irq/softirq_raise",)

    def check(self, test, points, facts):
        for kind in ("TIMER", "NET_RX", "SCHED", "RCU"):
            of = {"kind": kind + "_SOFTIRQ"}
            served = points.total("ebpf_exporter.softirq_serviced", **of)
            between(test, served, *self.served(facts, kind), kind)
            traced = [time for time, _, event, text in facts["trace"] if event == "softirq_raise" and f"action={kind}]" in text]
            within = sum(facts["begin"] <= time <= facts["end"] for time in traced)
            between(test, points.total("ebpf_exporter.softirq_raised", **of), within, len(traced), kind)
            waits, runs = histogram(points, "softirq_entry_latency", **of), histogram(points, "softirq_service_latency", **of)
            # The programs leave out one that was raised before they ran, or again just before it was served.
            between(test, waits[0], served * 0.9 - os.cpu_count(), served, kind)
            between(test, runs[0], waits[0] - os.cpu_count(), waits[0] + os.cpu_count(), kind)
            upper = sum(bound * count for bound, count in runs[2].items())
            between(test, runs[1], upper / 2 - 1e-6 * runs[0], upper, kind)


@example("softirq-latency-net-rx")
class SoftirqLatencyNetRx(Softirqs):
    def check(self, test, points, facts):
        served = points.total("ebpf_exporter.softirq_serviced")
        between(test, served, *self.served(facts, "NET_RX"))
        test.assertEqual([point["attributes"] for point in points.select("ebpf_exporter.softirq_serviced")], [{}])
        waits, runs = histogram(points, "softirq_wait"), histogram(points, "softirq_runtime")
        between(test, waits[0], served * 0.9 - os.cpu_count(), served)
        between(test, runs[0], waits[0] - os.cpu_count(), waits[0] + os.cpu_count())
        # Nanoseconds, summed next to powers of two: each bucket holds what its bounds say.
        upper = sum(bound * count for bound, count in runs[2].items())
        between(test, runs[1], upper / 2 - 1e-9 * runs[0], upper)


class Timers(Example):
    """Timers by function, next to the kernel's trace."""
    metric = "timer_starts"
    events = ("timer/timer_start",)

    def work(self):
        for _ in range(20):  # each connection has timers of its own
            with listening(0, 1) as listener, socket.create_connection(listener.getsockname()) as client:
                client.send(b"x")
        return {}

    def check(self, test, points, facts):
        inner, outer = {}, {}
        for at, _, event, text in facts["trace"]:
            found = re.search(r"function=(\w+)", text)
            if event == "timer_start" and found:
                outer[found.group(1)] = outer.get(found.group(1), 0) + 1
                if facts["begin"] <= at <= facts["end"]:
                    inner[found.group(1)] = inner.get(found.group(1), 0) + 1
        test.assertTrue(inner)
        for function, count in inner.items():
            between(test, points.total("ebpf_exporter." + self.metric, function=function), count, outer[function], function)


@example("timers")
class TimersBtf(Timers):
    pass


@example("raw-tracepoints")
class TimersRaw(Timers):
    metric = "raw_timer_starts"


@example("biolatency")
class Biolatency(Example):
    """Writes to a loop device of the test's own, next to its line in /proc/diskstats."""
    COUNT = 24

    def work(self):
        backing = f"/dev/shm/judge-{os.getpid()}"
        write(backing, "")
        os.truncate(backing, 1 << 20)
        device = subprocess.run(["losetup", "--find", "--show", backing], check=True, capture_output=True, text=True).stdout.strip()
        os.unlink(backing)
        try:
            before = self.writes(device)
            self.write_blocks(device)
            return {"device": os.path.basename(device), "writes": self.writes(device) - before}
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)

    def write_blocks(self, device):
        import mmap
        block = mmap.mmap(-1, 4096)
        fd = os.open(device, os.O_WRONLY | os.O_DIRECT)
        for i in range(self.COUNT):
            os.pwrite(fd, block, 4096 * i)
        os.close(fd)

    @staticmethod
    def writes(device):
        return int(re.search(rf" {os.path.basename(device)} (?:\d+ ){{4}}(\d+)", read("/proc/diskstats")).group(1))

    def check(self, test, points, facts):
        work = facts["work"]
        count, total, _ = histogram(points, "bio_latency", device=work["device"], operation="write")
        test.assertEqual((count, work["writes"]), (self.COUNT, self.COUNT))
        test.assertTrue(0 < total < facts["end"] - facts["begin"])


@example("uprobe")
class Uprobe(Example):
    COUNT = 5000

    def work(self):
        path = f"/bpfpush-test-malloc-{os.getpid()}"
        os.mkdir(harness.cgroup_root() + path)
        subprocess.run([harness.workload("judge"), "malloc", harness.cgroup_root() + path + "/cgroup.procs", str(self.COUNT)], check=True)
        return {"path": path}

    def check(self, test, points, facts):
        test.assertEqual(points.total("ebpf_exporter.libc_malloc_calls", cgroup=facts["work"]["path"]), self.COUNT)


@example("usdt")
class Usdt(Example):
    """No Python of Debian has this USDT; a program of the tests has one of the same name."""
    COUNT = 300
    amends = f"\n[program do_count]\nbinary = {os.path.realpath(harness.workload('judge'))}\n"

    def work(self):
        subprocess.run([harness.workload("judge"), "import", str(self.COUNT)], check=True)
        return {}

    def check(self, test, points, facts):
        test.assertEqual(points.by("module", "ebpf_exporter.python_module_imports"), {"json": 200, "os.path": 100})


@example("llcstat")
class Llcstat(Example):
    """These machines have no PMU: page faults, which the kernel counts too, instead of cache references and misses."""
    amends = "\n[program on_cache_reference]\nevent = page-faults\nperiod = 1\n\n[program on_cache_miss]\nevent = page-faults\nperiod = 1\n"

    def snapshot(self):
        return {"faults": int(re.search(r"(?m)^pgfault (\d+)", read("/proc/vmstat")).group(1))}

    def work(self):
        import mmap
        memory = mmap.mmap(-1, 4096 * 2000)
        for i in range(2000):
            memory[4096 * i] = 1
        return {}

    def check(self, test, points, facts):
        for metric in ("llc_references", "llc_misses"):
            between(test, points.total("ebpf_exporter." + metric), 2000, facts["outer"]["faults"], metric)
            test.assertLessEqual(set(points.by("cpu", "ebpf_exporter." + metric)), set(range(os.cpu_count())))


# --- the work, and what comes of it ----------------------------------------------------------------------------

def difference(before, after):
    return {key: after[key] - before[key] for key in before if isinstance(before[key], int)}


def work(names):
    with open(os.environ["JUDGE_FACTS"], "w", encoding="utf-8") as facts:
        for name in names:
            begin_ns, begin, before = time.time_ns(), time.monotonic(), EXAMPLES[name].snapshot()
            work = EXAMPLES[name].work()
            after, end, end_ns = EXAMPLES[name].snapshot(), time.monotonic(), time.time_ns()
            known = {"begin": begin, "end": end, "begin_ns": begin_ns, "end_ns": end_ns, "work": work, "before": before, "after": after}
            print(json.dumps({name: known}), file=facts, flush=True)


def run(names, directory, facts):
    is_of_spans = EXAMPLES[names[0]].is_of_spans
    command = ["events"] if is_of_spans else ["once"]
    worker = os.path.join(os.path.dirname(os.path.realpath(__file__)), "spans.py" if is_of_spans else "judge.py")
    if "inside" in sys.argv[0]:
        worker = sys.argv[0]
    return subprocess.run([harness.agent(), *command, "--config=/dev/null", "--format=json", f"--collector-directory={directory}",
                           *[RENAMED.get(name, name) for name in names], "--whole-machine", "--", sys.executable, "-B", os.path.realpath(worker), "work", *names],
                          env={**os.environ, "JUDGE_FACTS": facts}, capture_output=True, text=True, timeout=harness.PATIENCE_S, check=False)


def count(names, directory):
    """{name: (points, facts)} of one run that counts all of these examples."""
    trace = Trace(*sorted({event for name in names for event in getattr(EXAMPLES[name], "events", ())}))
    before = {name: EXAMPLES[name].snapshot() for name in names}
    facts_path = os.path.join(directory, "facts.txt")
    write(facts_path, "")
    try:
        done = run(names, directory, facts_path)
    finally:
        traced = trace.end()
    after = {name: EXAMPLES[name].snapshot() for name in names}
    records = [json.loads(line) for line in done.stdout.split("\n") if line.startswith("{")]
    said = [json.loads(line) for line in read(facts_path).splitlines()] + [record for record in records if "collector" not in record]
    expected = {key: value for each in said for key, value in each.items()}
    results = {}
    for name in names:
        points = [record for record in records if record.get("collector") == RENAMED.get(name, name)]
        if not EXAMPLES[name].is_of_spans:
            points = harness.Points(points)
            points.expected, points.status, points.stderr = expected, done.returncode, done.stderr
        if name not in expected:
            raise RuntimeError(f"{name}: exit status {done.returncode}\n{done.stderr}")
        facts = {**expected[name], "trace": traced, "outer": difference(before[name], after[name]),
                 "inner": difference(expected[name]["before"], expected[name]["after"]),
                 "inner_all": expected[name], "outer_all": {"before": before[name], "after": after[name]}}
        results[name] = (points, facts)
    return results, done


RENAMED = {"cgroup": "ebpf-cgroup", "syscalls": "ebpf-syscalls"}  # as the importer does

if __name__ == "__main__":
    work(sys.argv[2:])
