# SPDX-License-Identifier: Apache-2.0
"""In a guest: the examples that need kprobes, fentry or a kernel of their own.

    inside.py DIRECTORY NAME...     DIRECTORY holds the collectors"""

import ctypes
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import judge
import spans  # noqa: F401
from judge import Example, between, close_all, connect_all, example, histogram, listening, read, write

EXT4 = ("ext4_file_read_iter", "ext4_file_write_iter", "ext4_file_open", "ext4_sync_file", "ext4_file_getattr", "ext4_mkdir", "ext4_unlink")
DONE = dict(zip(EXT4, (50, 100, 1, 3, 5, 2, 1)))
SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27  # asm/socket.h


@example("accept-latency")
class AcceptLatency(Example):
    COUNT, WAIT = 20, 0.05

    def work(self):
        with listening(judge.WAITED, self.COUNT) as listener:
            clients = connect_all(judge.WAITED, self.COUNT)
            time.sleep(self.WAIT)
            close_all([listener.accept()[0] for _ in clients] + clients)
        return {}

    def check(self, test, points, facts):
        waits, total, _ = histogram(points, "accept_latency", port=judge.WAITED)
        test.assertEqual(waits, self.COUNT)
        between(test, total, self.COUNT * self.WAIT, self.COUNT * (facts["end"] - facts["begin"]))


class Backlog(Example):
    """Connections that nobody accepts: the first finds an empty queue, the last one of COUNT - 1."""
    COUNT = 60

    def work(self):
        with listening(judge.QUEUED, 128):
            close_all(connect_all(judge.QUEUED, self.COUNT))
        return {}


@example("tcp-syn-backlog", "tcp_v4_syn_recv_sock", "tcp_v6_syn_recv_sock")
class BacklogLinear(Backlog):
    def check(self, test, points, facts):
        count, total, buckets = histogram(points, "tcp_syn_backlog")
        between(test, count, *(sum(facts[side].values()) for side in ("inner", "outer")))
        test.assertEqual(buckets, {49: count - 10, 99: 10})


@example("tcp-syn-backlog-exp2zero", "tcp_v4_syn_recv_sock", "tcp_v6_syn_recv_sock")
class BacklogExp2zero(Backlog):
    """Connections of other examples find an empty queue."""
    def check(self, test, points, facts):
        count, total, buckets = histogram(points, "tcp_syn_backlog")
        between(test, count, sum(facts["inner"].values()), sum(facts["outer"].values()))
        test.assertEqual((total, count - buckets[0]), (sum(range(60)), self.COUNT - 1))
        test.assertEqual({bound: buckets[bound] for bound in buckets if bound}, {1: 1, 2: 1, 4: 2, 8: 4, 16: 8, 32: 16, 64: 27})


@example("ext4dist", *EXT4)
class Ext4dist(Example):
    """Operations on a file of the guest's ext4."""
    metric = "ext4_latency"

    operations = dict(zip(("read", "write", "open", "sync", "getattr"), EXT4))

    def work(self):
        fd = os.open("/var/tmp/judge", os.O_RDWR | os.O_CREAT)
        for function, operation in zip(EXT4, (lambda: os.pread(fd, 10, 0), lambda: os.write(fd, b"x" * 100), lambda: None, lambda: os.fsync(fd),
                                              lambda: os.fstat(fd), lambda: os.mkdir(tempfile.mktemp(dir="/var/tmp")))):
            for _ in range(DONE[function]):
                operation()
        os.close(fd)
        os.unlink("/var/tmp/judge")
        return {}

    def check(self, test, points, facts):
        for operation, function in self.operations.items():
            inner, outer = facts["inner"][function], facts["outer"][function]
            test.assertGreaterEqual(inner, DONE[function], function)
            between(test, histogram(points, self.metric, operation=operation)[0], inner, outer, function)


class Elsewhere(Ext4dist):
    """Programs for another file system at the functions of ext4: no kernel here has it."""
    prefix, operations = "", {}

    @property
    def amends(self):
        return "".join(f"\n[program {self.prefix}_{operation}_{side}]\ntarget = {function}\n"
                       for operation, function in self.operations.items() for side in ("enter", "exit"))


@example("xfsdist", *EXT4)
class Xfsdist(Elsewhere):
    metric, prefix = "xfs_latency", "xfs_file"
    operations = dict(zip(("read", "write", "open", "sync"), EXT4))


@example("cephfs-dist", *EXT4)
class Cephfsdist(Elsewhere):
    metric, prefix = "cephfs_latency", "cephfs"
    operations = {"read": EXT4[0], "write": EXT4[1], "fsync": EXT4[3], "mkdir": EXT4[5], "unlink": EXT4[6]}


@example("cfs-throttling", "unthrottle_cfs_rq")
class CfsThrottling(Example):
    PATH = "/judge.cpu"

    def work(self):
        directory = "/sys/fs/cgroup" + self.PATH
        write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu")
        os.makedirs(directory, exist_ok=True)
        write(directory + "/cpu.max", "10000 50000")
        child = os.fork()
        if not child:
            write(directory + "/cgroup.procs", "0")
            end = time.monotonic() + 1
            while time.monotonic() < end:
                pass
            os._exit(0)
        os.waitpid(child, 0)
        return {}

    def check(self, test, points, facts):
        test.assertGreater(facts["inner"]["unthrottle_cfs_rq"], 5)
        between(test, histogram(points, "cfs_throttling", cgroup=self.PATH)[0], facts["inner"]["unthrottle_cfs_rq"], facts["outer"]["unthrottle_cfs_rq"])


@example("cgroup-rstat-flushing", "cgroup_rstat_flush_locked")
class CgroupRstat(Example):
    events = ("cgroup/cgroup_rstat_locked", "cgroup/cgroup_rstat_unlock")

    def work(self):
        directory = "/sys/fs/cgroup"
        for _ in range(3):
            directory += "/judge.stat"
            os.makedirs(directory, exist_ok=True)
            for _ in range(10):
                read(directory + "/cpu.stat")
        return {}

    def traced(self, facts, event):
        times = [at for at, _, name, _ in facts["trace"] if name == event]
        return sum(facts["begin"] <= at <= facts["end"] for at in times), len(times)

    def check(self, test, points, facts):
        inner, outer = self.traced(facts, "cgroup_rstat_locked")
        test.assertGreater(inner, 0)
        between(test, points.total("ebpf_exporter.cgroup_rstat_locked"), inner, outer, "locked")
        between(test, histogram(points, "cgroup_rstat_lock_hold")[0], *self.traced(facts, "cgroup_rstat_unlock"), "held")
        inner, outer = (facts[side]["cgroup_rstat_flush_locked"] for side in ("inner", "outer"))
        test.assertGreater(inner, 0)
        between(test, points.total("ebpf_exporter.cgroup_rstat_flush"), inner, outer, "flushed")
        between(test, histogram(points, "cgroup_rstat_flush_latency")[0], inner, outer, "timed")


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


@example("icmp-ip")
class IcmpIp(Example):
    """Each request and each reply is received, on lo."""
    COUNT = 12

    def work(self):
        for family, protocol, kind, address in ((socket.AF_INET, socket.IPPROTO_ICMP, 8, "127.0.0.1"),
                                                (socket.AF_INET6, socket.IPPROTO_ICMPV6, 128, "::1")):
            with socket.socket(family, socket.SOCK_RAW, protocol) as sender:
                for i in range(self.COUNT):
                    packet = struct.pack("!BBHHH", kind, 0, 0, 1, i)
                    packet = packet[:2] + struct.pack("!H", checksum(packet)) + packet[4:]
                    sender.sendto(packet, (address, 0))
        time.sleep(0.1)
        return {}

    def check(self, test, points, facts):
        test.assertEqual(points.total("ebpf_exporter.icmp4_received_packets", source_addr="127.0.0.1"), 2 * self.COUNT)
        test.assertEqual(points.total("ebpf_exporter.icmp6_received_packets", source_addr="::1"), 2 * self.COUNT)


@example("inet-frags")
class InetFrags(Example):
    def snapshot(self):
        return {"fragments": judge.snmp("Ip", "ReasmReqds")}

    def work(self):
        subprocess.run(["ip", "link", "set", "lo", "mtu", "1500"], check=True)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            receiver.bind(("127.0.0.1", 0))
            for _ in range(10):
                sender.sendto(b"x" * 4000, receiver.getsockname())
                receiver.recv(5000)
        subprocess.run(["ip", "link", "set", "lo", "mtu", "65536"], check=True)
        return {}

    def check(self, test, points, facts):
        test.assertEqual(facts["inner"]["fragments"], 30)
        test.assertEqual(points.total("ebpf_exporter.inet_frags", interface="lo", ip_version=4), 30)


def read_other(pages):
    """Reads another process's memory, for which the kernel visits each page by itself."""
    buffer = ctypes.create_string_buffer(4096 * pages)
    other = os.fork()
    if not other:
        time.sleep(60)
        os._exit(0)
    vector = struct.pack("QQ", ctypes.addressof(buffer), 4096 * pages)
    got = judge.LIBC.process_vm_readv(other, vector, 1, vector, 1, 0)
    os.kill(other, 9)
    os.waitpid(other, 0)
    if got != 4096 * pages:
        raise OSError(ctypes.get_errno(), "process_vm_readv")


@example("kstack", "mark_page_accessed")
class Kstack(Example):
    def work(self):
        read_other(20)
        return {}

    def check(self, test, points, facts):
        mine = [point for point in points.select("ebpf_exporter.mark_page_accessed") if "process_vm_rw" in point["attributes"]["kstack"]]
        total = sum(point["total"] for point in mine)
        test.assertGreaterEqual(total, 20)
        test.assertTrue(all(re.search(r"(?s)^\w.*\n.*entry_SYSCALL_64", point["attributes"]["kstack"]) for point in mine), mine)
        between(test, points.total("ebpf_exporter.mark_page_accessed"), facts["inner"]["mark_page_accessed"], facts["outer"]["mark_page_accessed"])


class Pages(Example):
    """Each operation next to the calls of its function, or to the kernel's trace."""
    functions = {}

    def work(self):
        read_other(20)
        device = os.open("/dev/nvme0n1", os.O_RDWR)
        last = os.lseek(device, 0, os.SEEK_END) - 8192
        for _ in range(7):
            os.pwrite(device, os.pread(device, 4096, last), last)
        os.close(device)
        with open("/var/tmp/pages", "wb") as file:
            file.write(b"x" * 4096 * 50)
        return {}

    def check(self, test, points, facts):
        seen = 0
        for function, operation in self.functions.items():
            inner, outer = facts["inner"][function], facts["outer"][function]
            seen += inner > 0
            between(test, points.total("ebpf_exporter.page_cache_ops", operation=operation), inner, outer, function)
        test.assertGreaterEqual(seen, 2)
        return seen


@example("cachestat", "mark_page_accessed", "mark_buffer_dirty", "add_to_page_cache_lru")
class Cachestat(Pages):
    functions = {"mark_page_accessed": "cache_access", "mark_buffer_dirty": "cache_writes", "add_to_page_cache_lru": "page_add_lru"}
    events = ("writeback/writeback_dirty_folio",)

    def check(self, test, points, facts):
        super().check(test, points, facts)
        times = [at for at, _, event, _ in facts["trace"] if event == "writeback_dirty_folio"]
        inner = sum(facts["begin"] <= at <= facts["end"] for at in times)
        test.assertGreaterEqual(inner, 50)
        between(test, points.total("ebpf_exporter.page_cache_ops", operation="page_mark_dirties"), inner, len(times))


@example("cachestat-pre-kernel-5.16", "mark_page_accessed", "mark_buffer_dirty", "add_to_page_cache_lru", "account_page_dirtied")
class CachestatOld(Pages):
    functions = {"mark_page_accessed": "cache_access", "mark_buffer_dirty": "cache_writes", "add_to_page_cache_lru": "page_add_lru",
                 "account_page_dirtied": "page_mark_dirties"}


@example("oomkill")
class Oomkill(Example):
    PATH, KILLS = "/judge.memory", 3

    def work(self):
        directory = "/sys/fs/cgroup" + self.PATH
        write("/sys/fs/cgroup/cgroup.subtree_control", "+memory")
        os.makedirs(directory, exist_ok=True)
        write(directory + "/memory.max", "16M")
        for _ in range(self.KILLS):
            subprocess.run([judge.harness.workload("memory"), directory, "oom", directory + "/cgroup.procs"], check=True, stdout=subprocess.DEVNULL)
        return {"kills": int(re.search(r"(?m)^oom_kill (\d+)", read(directory + "/memory.events")).group(1))}

    def check(self, test, points, facts):
        test.assertEqual(facts["work"]["kills"], self.KILLS)
        test.assertEqual(points.total("ebpf_exporter.oom_kills", cgroup_path=self.PATH), self.KILLS)


@example("pci")
class Pci(Example):
    """Names are those of a pci.ids that the guest gets."""
    DEVICE = "/sys/bus/pci/devices/0000:00:00.0/"

    def prepare(self):
        vendor, device, kind = (read(self.DEVICE + name).strip()[2:] for name in ("vendor", "device", "class"))
        os.makedirs("/usr/share/misc", exist_ok=True)
        write("/usr/share/misc/pci.ids", f"{vendor}  Some Vendor\n\t{device}  Some Bridge\nC {kind[:2]}  Bridge\n\t{kind[2:4]}  Host bridge\n")

    def work(self):
        for _ in range(5):
            with open(self.DEVICE + "config", "rb", buffering=0) as file:
                file.read(64)
        return {}

    def check(self, test, points, facts):
        names = {"pci_vendor": "Some Vendor", "pci_device": "Some Bridge", "pci_class": "Bridge", "pci_subclass": "Host bridge"}
        test.assertEqual(points.total("ebpf_exporter.pci_user_read_config_ops", **names), 5 * 64 // 4)


@example("bpf-jit")
class BpfJit(Example):
    """What the kernel's own probe reads at the same moments. x86-64 calls another function than the example's."""
    amends = "\n[program trace_change]\ntarget = bpf_int_jit_compile\n"

    def prepare(self):
        judge.add_kprobe("jit", "bpf_int_jit_compile current=@bpf_jit_current:s64")

    def work(self):
        subprocess.run([judge.harness.agent(), "once", "--config=/dev/null", "--for=1ms", "scheduler"], check=True, stdout=subprocess.DEVNULL)
        return {}

    def check(self, test, points, facts):
        seen = [int(number) for number in re.findall(r"judge_jit: .* current=(\d+)", read(os.path.join(judge.TRACING, "trace")))]
        test.assertGreater(seen[-1], seen[0])
        test.assertEqual(points.total("ebpf_exporter.bpf_jit_pages_currently_allocated"), seen[-1])


@example("shrinklat", "shrink_node")
class Shrinklat(Example):
    def work(self):
        directory = "/sys/fs/cgroup/judge.reclaim"
        write("/sys/fs/cgroup/cgroup.subtree_control", "+memory")
        os.makedirs(directory, exist_ok=True)
        child = os.fork()
        if not child:
            write(directory + "/cgroup.procs", "0")
            with open("/var/tmp/cache", "wb") as file:
                file.write(b"x" * (8 << 20))
                os.fsync(file.fileno())
            for _ in range(5):
                write(directory + "/memory.reclaim", "1M")
            os._exit(0)
        os.waitpid(child, 0)
        return {}

    def check(self, test, points, facts):
        test.assertGreaterEqual(facts["inner"]["shrink_node"], 5)
        between(test, histogram(points, "shrink_node_latency")[0], facts["inner"]["shrink_node"], facts["outer"]["shrink_node"])


@example("regexp")
class Regexp(Example):
    """Shrinkers by command, next to the kernel's trace; one command is called after kswapd."""
    events = ("vmscan/mm_shrink_slab_end",)
    NAMES = ("kswapd7", "systemd-judge", "other")

    def work(self):
        pids = {}
        for name in self.NAMES:
            pids[name] = os.fork()
            if not pids[name]:
                judge.LIBC.prctl(15, name.encode(), 0, 0, 0)
                write("/proc/sys/vm/drop_caches", "2")
                os._exit(0)
            os.waitpid(pids[name], 0)
        return pids

    def check(self, test, points, facts):
        counted = points.by("process.command", "linux.memory.shrinks")
        for name, shown in zip(self.NAMES, ("kswapd", "systemd-judge", "other")):
            traced = sum(pid == facts["work"][name] for _, pid, event, _ in facts["trace"] if event == "mm_shrink_slab_end")
            test.assertGreater(traced, 0)
            test.assertEqual(counted.get(shown), traced, name)
        test.assertNotIn("kswapd7", counted)


def filter_of(code, value):
    """A classic BPF program of one instruction."""
    instruction = ctypes.create_string_buffer(struct.pack("HBBI", code, 0, 0, value))
    return instruction, struct.pack("HxxxxxxQ", 1, ctypes.addressof(instruction))


@example("tcp-retransmit", "tcp_retransmit_skb", "tcp_send_loss_probe")
class TcpRetransmit(Example):
    """What the server's socket drops at its door is sent again."""
    def work(self):
        instruction, program = filter_of(6, 0)  # return 0: drop
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.create_server((address, judge.STEPPED), family=family) as listener:
                client = socket.create_connection((address, judge.STEPPED))
                server = listener.accept()[0]
                server.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
                client.send(b"x" * 100)
                time.sleep(0.8)
                server.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
                server.recv(100, socket.MSG_WAITALL)
                close_all([client, server])
        return {"instruction": len(instruction)}

    def check(self, test, points, facts):
        test.assertGreaterEqual(facts["inner"]["tcp_retransmit_skb"], 2)
        for kind, function in (("retransmit", "tcp_retransmit_skb"), ("tail_loss_probe", "tcp_send_loss_probe")):
            counts = [points.total(f"ebpf_exporter.tcp_retransmit_{family}_packets", type=kind, local_ip=address, peer_ip=address, main_port=judge.STEPPED)
                      for family, address in (("ipv4", "127.0.0.1"), ("ipv6", "::1"))]
            test.assertTrue(all(counts), counts)
            test.assertEqual(sum(counts), facts["inner"][function], function)


@example("tcp-window-clamps", "tcp_try_rmem_schedule")
class TcpWindowClamps(Example):
    """Each segment that a receiver with a small buffer takes."""
    def work(self):
        with listening(judge.SMALL, 1) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client = socket.create_connection(("127.0.0.1", judge.SMALL))
            server = listener.accept()[0]
            for _ in range(30):
                client.send(b"x" * 100)
                server.recv(100, socket.MSG_WAITALL)
            close_all([client, server])
        return {}

    def check(self, test, points, facts):
        between(test, points.total("ebpf_exporter.tcp_window_clamps"), 30, facts["outer"]["tcp_try_rmem_schedule"])
        test.assertEqual([point["attributes"] for point in points.select("ebpf_exporter.tcp_window_clamps")], [{}])


class Unix(Example):
    """Clients that wait for a listener of a UNIX socket: PATH."""
    COUNT, WAIT, PATH = 15, 0.05, "/var/run/docker.sock"

    def work(self):
        os.makedirs(os.path.dirname(self.PATH), exist_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.PATH)
            listener.listen(self.COUNT)
            clients = []
            for _ in range(self.COUNT):
                clients.append(socket.socket(socket.AF_UNIX))
                clients[-1].connect(self.PATH)
            time.sleep(self.WAIT)
            close_all([listener.accept()[0] for _ in clients] + clients)
        os.unlink(self.PATH)
        return {}


@example("unix-socket-backlog")
class UnixBacklog(Unix):
    def check(self, test, points, facts):
        name = {"addr": "/var/run/docker/metrics.sock"}  # the example's own name for it
        test.assertEqual(histogram(points, "unix_socket_backlog", **name), (self.COUNT, sum(range(self.COUNT)), {0: 1, 1: 1, 2: 1, 4: 2, 8: 4, 16: 6}))


@example("unix-accept-latency")
class UnixAccept(Unix):
    PATH = "/var/run/judge.sock"

    def check(self, test, points, facts):
        total = points.total("linux.unix.accept.wait", **{"server.address": self.PATH})
        test.assertEqual(total["count"], self.COUNT)
        between(test, total["sum"], self.COUNT * self.WAIT, self.COUNT * (facts["end"] - facts["begin"]))


class TestGuest(unittest.TestCase):
    maxDiff = None
    results = {}

    def test_all_run(self):
        for names, done in self.runs:
            self.assertEqual(done.returncode, 0, f"{names}\n{done.stderr}")
            print(done.stderr)


def main():
    directory, names = sys.argv[1], sys.argv[2:]
    if directory == "work":
        judge.work(names)
        return
    judge.add_kprobes(names)
    for name in names:
        getattr(judge.EXAMPLES[name], "prepare", lambda: None)()
        with open(os.path.join(directory, judge.RENAMED.get(name, name) + ".conf"), "a", encoding="utf-8") as file:
            file.write(judge.EXAMPLES[name].amends)
        setattr(TestGuest, "test_" + re.sub(r"\W", "_", name), lambda self, name=name: judge.EXAMPLES[name].check(self, *self.results[name]))
    TestGuest.runs = []
    results, done = judge.count(names, directory)
    TestGuest.results.update(results)
    TestGuest.runs.append((names, done))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(TestGuest))
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
