#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All that may go wrong between counting and a receiver, at random, for a while: test_chaos.py [SECONDS [SEED [SETTING...]]]

The installed service counts workloads that count themselves, and pushes to chaos_receiver.py in three ways: deltas that are
repeated when in doubt and spooled, deltas that are not, totals. Agent, receiver, name, clock and disk are disturbed. When all works
again and everything has been sent, each series is compared: what was delivered adds up to what was counted. SETTINGs
("KEY = VALUE") are added to each of the three exporters. Prints the seed, a line for each fault, and figures. Exits with 1
if a figure is not as it must be.
"""

import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import ledger
from chaos_receiver import CHANNELS, FATES, KINDS
from container import Unavailable
from counting import BUILD, CALL, METRIC, UNIT, WORKLOADS, Work
from machine import PATIENCE_S, Machine

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.append(os.path.join(HERE, "..", "peers"))
from collector import free_ports

# What metrics of bpfpush itself are called.
POINTS, VALUES_IN_DOUBT = "otel.sdk.exporter.metric_data_point.exported", "bpfpush.exporter.in_doubt.values"
EXPORTER, FATE = "otel.component.name", "error.type"
# What becomes of what was pushed, in the status.
STATUS = ("delivered", "rejected", "queue_full", "too_large", "not_sent", "connection_refused", "unsupported", "in_doubt", "waiting")

# Of faults, which come at random, one in about two seconds.
SECONDS = 120
NAME, ADDRESSES = "receiver.test", ("127.88.0.1", "127.88.0.2")
HOURS = 5
# It has 27 MiB after a start, most of it pages of files. What may come to that are three queues of eight requests, which are
# unpacked when they are merged, and what is saved of them.
MEMORY_BYTES = 64 << 20
QUIET = {"ok": 1}

SERVICE = """\
[Service]
RestartSec=100ms
Environment=LD_PRELOAD=/chaos/clock.so CLOCK_AHEAD=/chaos/ahead
"""

CONFIG = """\
[agent]
interval = 1s
shutdown_timeout = 3s
include_units = {units} bpfpush.service dbus.service systemd-*.service
[exporter file]
type = json
path = /var/log/bpfpush/small/lines.json
"""

EXPORTER_CONFIG = """\
[exporter {name}]
type = otlp
endpoint = http://{host}:{port}/{name}
timeout = 2s
retry_initial = 200ms
retry_max = 1s
queue_requests = 8
{more}
"""
MORE = {"repeat": "temporality = delta\nspool = 8MiB\nspool_age = 20s", "skip": "temporality = delta\nwhen_in_doubt = skip", "totals": "temporality = cumulative"}

INSTALL = """
tar -C /stage -c . | tar -C / -x --keep-directory-symlink
ldconfig; systemd-sysusers; systemctl daemon-reload
mkdir -p /etc/bpfpush /etc/systemd/system/bpfpush.service.d /var/log/bpfpush/small
cat >/etc/systemd/system/bpfpush.service.d/chaos.conf <<'END'
{service}END
cat >/etc/bpfpush/bpfpush.conf <<'END'
{config}END
mkdir -p /var/lib/bpfpush
mount -t tmpfs -o size=1M tmpfs /var/log/bpfpush/small
mount -t tmpfs -o size=8M tmpfs /var/lib/bpfpush
chown -R bpfpush: /var/log/bpfpush
systemctl daemon-reload
systemctl start bpfpush
"""


class Receiver:
    def __init__(self, directory, random_):
        self.directory, self.random, self.port = directory, random_, free_ports(1)[0]
        self.address, self.process = ADDRESSES[0], None

    def start(self):
        if not self.process:
            self.process = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "chaos_receiver.py"), self.directory, self.address,
                                             str(self.port), str(self.random.getrandbits(32))], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            if self.process.stdout.readline() != b"ready\n":
                raise RuntimeError("the receiver does not start")

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
        self.process = None

    def signal(self, number):
        if self.process:
            self.process.send_signal(number)

    def set_weather(self, kinds):
        replace(os.path.join(self.directory, "weather"), json.dumps(kinds))


def replace(path, text):
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(text)
    os.rename(path + ".new", path)


class Chaos:
    def __init__(self, machine, receiver, directory, random_):
        self.machine, self.receiver, self.directory, self.random = machine, receiver, directory, random_
        self.started = time.monotonic()
        self.peak = collections.Counter()  # of the agent's memory
        self.wrong = []
        self.n_faults, self.n_balances = collections.Counter(), 0
        self.hours = 0  # by which the clock is ahead

    def say(self, text):
        print(f"{time.monotonic() - self.started:7.1f} s  {text}", flush=True)

    # What it does. Each returns what there is to say about it.

    def signal_agent(self, name):
        self.machine.run(f"systemctl kill --kill-whom=main --signal={name} bpfpush", check=False)

    def kill_agent(self):
        times = self.random.choice((1, 1, 1, 2, 3))
        for _ in range(times):
            self.signal_agent("KILL")
            if times > 1:
                time.sleep(self.random.uniform(0.05, 0.6))
        return f"{times} x"

    def stop_agent(self):
        seconds = self.random.uniform(0.5, 4)
        self.signal_agent("STOP")
        time.sleep(seconds)
        self.signal_agent("CONT")
        return f"{seconds:.1f} s"

    def restart(self):
        self.machine.run("systemctl restart bpfpush", check=False)

    def reload(self):
        self.machine.run("systemctl reload bpfpush", check=False)

    def reload_changed(self):
        seconds = self.random.choice((1, 2))
        self.machine.run(f"mkdir -p /etc/bpfpush/bpfpush.conf.d; printf '[agent]\\ninterval = {seconds}s\\n' >/etc/bpfpush/bpfpush.conf.d/50-chaos.conf; "
                         "systemctl reload bpfpush", check=False)
        return f"interval {seconds} s"

    def kill_receiver(self):
        self.receiver.kill()
        time.sleep(self.random.choice((0, 0, 0.5, 3)))
        self.receiver.start()

    def stop_receiver(self):
        seconds = self.random.uniform(0.5, 5)
        self.receiver.signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.receiver.signal(signal.SIGCONT)
        return f"{seconds:.1f} s"

    def move_receiver(self):
        self.receiver.kill()
        self.receiver.address = next(address for address in ADDRESSES if address != self.receiver.address)
        self.lead_name()
        self.receiver.start()
        return self.receiver.address

    def lead_name(self):
        self.machine.run(f"printf '127.0.0.1 localhost\\n{self.receiver.address} {NAME}\\n' >/etc/hosts")

    def set_clock(self):
        hours = self.random.choice([hours for hours in (-HOURS, 0, HOURS) if hours != self.hours])
        self.hours = hours
        replace(os.path.join(self.directory, "ahead"), str(hours * 3600))
        return f"{hours:+d} h"

    def fill_disk(self):
        self.machine.run("cat /dev/zero >/var/log/bpfpush/small/filler; cat /dev/zero >/var/lib/bpfpush/filler", check=False)

    def empty_disk(self):
        self.machine.run("rm -f /var/log/bpfpush/small/filler /var/lib/bpfpush/filler; truncate --size=0 /var/log/bpfpush/small/lines.json", check=False)

    def change_weather(self):
        """Often one trouble alone, else all of them, with more or less that works."""
        if self.random.random() < 0.4:
            kinds = {self.random.choice(KINDS[1:]): 4, "ok": self.random.choice((0, 1, 4))}
        else:
            kinds = {**dict.fromkeys(KINDS, 1), "ok": self.random.choice((4, 10, 20))}
        self.receiver.set_weather(kinds)
        return " ".join(f"{kind}:{weight}" for kind, weight in kinds.items() if weight)

    FAULTS = {change_weather: 8, kill_agent: 6, stop_agent: 2, restart: 1, reload: 2, reload_changed: 1, kill_receiver: 3, stop_receiver: 2,
              move_receiver: 1, set_clock: 4, fill_disk: 1, empty_disk: 1}

    def run(self, seconds):
        self.change_weather()
        end, faults = time.monotonic() + seconds, list(self.FAULTS)
        while time.monotonic() < end:
            time.sleep(self.random.uniform(0, 2))
            (fault,) = self.random.choices(faults, list(self.FAULTS.values()))
            self.n_faults[fault.__name__] += 1
            self.say(f"{fault.__name__.replace('_', ' ')} {fault(self) or ''}")
            self.look()

    # What is true all the time.

    def status(self):
        """None: it does not run now."""
        done = self.machine.run("bpfpush status --json", check=False)
        return json.loads(done.stdout) if done.returncode in (0, 1) and done.stdout.startswith("{") else None

    def look(self):
        """Memory, and that no point is missing from the accounts."""
        status = self.status()
        if not status:
            return None
        for exporter in status["exporters"]:
            fates = {name: exporter[name] for name in STATUS}
            self.n_balances += 1
            if exporter["pushed"] != sum(fates.values()):
                self.wrong.append(f"exporter {exporter['name']}: pushed {exporter['pushed']} are not {fates}")
        text = self.machine.run(f"cat /proc/{status['pid']}/status", check=False).stdout
        for line in text.split("\n"):
            if line.startswith(("VmHWM", "RssAnon", "RssShmem")):
                name, value = line.split(":")
                self.peak[name] = max(self.peak[name], int(value.split()[0]) * 1024)
        return status

    def calm_down(self):
        """All works again."""
        self.receiver.set_weather(QUIET)
        self.receiver.start()
        self.empty_disk()
        self.say("calm")

    def wait_sent(self):
        """Until nothing waits, in two collections."""
        deadline, n_seen = time.monotonic() + PATIENCE_S, 0
        while n_seen < 2:
            status = self.look()
            own = [exporter for exporter in (status or {"exporters": []})["exporters"] if exporter["name"] in CHANNELS]
            if own and all(exporter["state"] == "delivered" and not exporter["waiting"] for exporter in own):
                n_seen += 1
                time.sleep(1.2)
            elif time.monotonic() > deadline:
                raise AssertionError(f"not all is sent within {PATIENCE_S} s: {own}")
            else:
                time.sleep(0.1)


def differences(name, have, want):
    """As texts, of sums that are not the same. What never grew may be in one of them alone."""
    wrong = [(series, have.get(series, ()), want.get(series, ())) for series in {*have, *want}]
    return [f"{name}: {series}: {a[:3]}, not {b[:3]}" for series, a, b in wrong if not ledger.is_close(a, b) and any(a + b)]


def excesses(name, have, limits):
    return [f"{name}: {series}: {values[:3]}, not {limits.get(series, ())[:3]}" for series, values in have.items()
            if any(a > b and not ledger.is_close((a,), (b,)) for a, b in zip(values, limits.get(series, (0,) * len(values))))]


def count_of(sums):
    """Whole sums, and how many values histograms have, as in the agent's own figure."""
    return sum(values[0] for values in sums.values() if isinstance(values[0], int))


def workload_differences(way, sums, made):
    told = collections.Counter()
    for (name, attributes), values in sums.items():
        if name == METRIC:
            named = dict(attributes)
            told[named.get(UNIT), named.get(CALL)] += values[0]
    return [f"{way}: {unit} made {n} calls of {call}, told are {told[unit, call]}" for (unit, call), n in made.items() if told[unit, call] != n]


def judge(found, made):
    """(figures as texts, what is wrong)."""
    repeat, skip, totals = (found[channel] for channel in CHANNELS)
    truth, n_refused = totals.sums()
    told, told_skipping = (deltas.total("acked", "doubted", "lost") for deltas in (repeat, skip))

    def own(metric, exporter):
        """{what became of them: how many}, of the agent's own figures. They are of the moment of the last collection."""
        return {dict(attributes).get(FATE, "delivered"): values[0] for (name, attributes), values in told.items()
                if name == metric and (EXPORTER, exporter) in attributes and values[0]}

    wrong = [f"a total fell: {text}" for text in totals.fallen]
    wrong += workload_differences("deltas", told, made) + workload_differences("totals", truth, made)
    wrong += differences("deltas, repeated in doubt, are not the totals", told, truth)
    # What was given up and never came whole is in no ledger. But nothing is there twice, and what is missing is in doubt.
    wrong += excesses("deltas, given up in doubt, are more than the totals", told_skipping, truth)
    missing, doubted = count_of(truth) - count_of(told_skipping), own(VALUES_IN_DOUBT, "skip").get("delivered", 0)
    if missing > doubted:
        wrong.append(f"{missing} values are missing where doubts are not repeated, and only {doubted} are in doubt")
    settled, n_points = own(POINTS, "repeat"), sum(n for time_ns, n in repeat.n_points.items() if time_ns != repeat.last_ns)
    # The request before the last may still have been on its way then.
    n_inflight = sum(n for (_, attributes), (time_ns, n) in repeat.inflight.items() if (EXPORTER, "repeat") in attributes and time_ns == repeat.last_ns)
    if sum(settled.values()) + n_inflight != n_points or settled.keys() - {"delivered", "in_doubt"}:
        wrong.append(f"the agent's accounts {settled} and {n_inflight} on their way are not the {n_points} points that came")
    return [f"series           {len(truth)} with {sum(len({*totals.taken[s], *totals.refused[s]}) for s in truth)} starts; workloads made "
            f"{sum(made.values())} calls, told in {len(made)} of them",
            f"totals           of {n_refused} starts, the last was refused",
            f"repeat           {dict(repeat.n_bodies)} requests, {settled} points, values in doubt {count_of(repeat.doubted) + count_of(repeat.lost)}",
            f"skip             {dict(skip.n_bodies)} requests, {own(POINTS, 'skip')} points, values missing {missing} of {count_of(truth)}, "
            f"in doubt {doubted}"], wrong


def install(machine, receiver, work, settings):
    exporters = "".join(EXPORTER_CONFIG.format(name=name, host=NAME, port=receiver.port, more="\n".join([MORE[name], *settings])) for name in CHANNELS)
    machine.run(INSTALL.format(service=SERVICE, config=CONFIG.format(units=work.units) + exporters))


def test(seconds, seed, settings):
    random_ = random.Random(seed)
    print(f"seed {seed}, {seconds} s", flush=True)
    with tempfile.TemporaryDirectory(prefix="bpfpush-chaos.") as directory:
        stage, counts, shared = (os.path.join(directory, name) for name in ("stage", "counts", "shared"))
        for path in (stage, counts, shared):
            os.mkdir(path)
            os.chmod(path, 0o755)
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", stage], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cp", os.path.join(WORKLOADS, "clock.so"), shared], check=True)
        replace(os.path.join(shared, "ahead"), "0")
        receiver = Receiver(directory, random_)
        receiver.set_weather(QUIET)
        receiver.start()
        try:
            with Work() as work, Machine([(stage, "/stage"), (WORKLOADS, "/workloads"), (counts, "/counts"), (shared, "/chaos")]) as machine:
                chaos = Chaos(machine, receiver, shared, random_)
                figures = disturb(chaos, work, counts, seconds, settings)
                made = {key: n for key, n in work.made().items() if n}
        finally:
            receiver.kill()
        chaos.say("all has ended; reading what was delivered")
        found, requests = ledger.read(directory)
    more, wrong = judge(found, made)
    wrong += chaos.wrong
    came = {channel: " ".join(f"{n} {FATES[fate]}" for (of, fate), n in sorted(requests.items()) if of == channel) for channel in CHANNELS}
    print(*figures, *(f"{channel:16} {text}" for channel, text in came.items()), *more, f"wrong            {len(wrong)}", *wrong[:20], sep="\n")
    return bool(wrong)


def disturb(chaos, work, counts, seconds, settings):
    chaos.lead_name()
    install(chaos.machine, chaos.receiver, work, settings)
    work.start(chaos.machine, counts)
    chaos.wait_sent()
    before = dict(chaos.peak)
    chaos.say("it begins")
    chaos.run(seconds)
    chaos.calm_down()
    chaos.wait_sent()
    chaos.say("all is sent")
    work.end()
    chaos.wait_sent()
    chaos.machine.run("systemctl stop bpfpush")
    memory = ", ".join(f"{name} {before[name] / 2**20:.1f} {peak / 2**20:.1f} MiB" for name, peak in chaos.peak.items())
    if chaos.peak["VmHWM"] > MEMORY_BYTES:
        chaos.wrong.append(f"memory: {chaos.peak}")
    if chaos.wrong:
        print(chaos.machine.run("journalctl --no-pager --unit=bpfpush --priority=warning | tail -n 40").stdout)
    return [f"faults           {sum(chaos.n_faults.values())}: {dict(chaos.n_faults)}", f"accounts         balanced {chaos.n_balances} times",
            f"memory           before, at most: {memory}"]


if __name__ == "__main__":
    try:
        sys.exit(test(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS,
                      int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().getrandbits(32), sys.argv[3:]))
    except Unavailable as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
