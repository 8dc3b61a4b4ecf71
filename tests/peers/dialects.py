# SPDX-License-Identifier: Apache-2.0
"""What each receiver makes of each dialect, as data: test_receivers.py compares it with the receivers, and docs/statsd.md with it.

The series sent are c (a counter, 3 and 4), g (a gauge, 7, then 5), t (a time of 20 ms, once and once at a rate of 0.1) and, in
DogStatsD's dialect, d (a distribution's 20, once and once at a rate of 0.1). Their names begin with the dialect's.
"""

TAGS = {"host.name": "vm1", "unit": "ssh.service"}
VALUES_SENT = [("c", "3|c"), ("c", "4|c"), ("g", "7|g"), ("g", "5|g"), ("t", "20|ms"), ("t", "20|ms|@0.1")]
DISTRIBUTION = [("d", "20|d"), ("d", "20|d|@0.1")]

LINES = {
    "plain": [f"vm1.ssh_service.plain_{name}:{value}" for name, value in VALUES_SENT],
    "graphite": [f"graphite_{name};host.name=vm1;unit=ssh.service:{value}" for name, value in VALUES_SENT],
    "dogstatsd": [f"dogstatsd_{name}:{value}|#host.name:vm1,unit:ssh.service" for name, value in VALUES_SENT + DISTRIBUTION],
    "influx": [f"influx_{name},host.name=vm1,unit=ssh.service:{value}" for name, value in VALUES_SENT],
}

RECEIVERS = ["statsd", "statsd_exporter", "collector", "collectd"]
BAD = None  # the receiver says that the line is bad
KEPT = tuple(sorted(TAGS.items()))
ESCAPED = (("host_name", "vm1"), ("unit", "ssh.service"))

# What becomes of the name NAME and the two tags: name, tags.
NAMES = {
    ("plain", "statsd"): ("vm1.ssh_service.NAME", ()),
    ("plain", "statsd_exporter"): ("vm1_ssh_service_NAME", ()),
    ("plain", "collector"): ("vm1.ssh_service.NAME", ()),
    ("plain", "collectd"): ("vm1.ssh_service.NAME", ()),
    ("graphite", "statsd"): ("NAME", KEPT),
    ("graphite", "statsd_exporter"): ("NAME_host_name_vm1_unit_ssh_service", ()),
    ("graphite", "collector"): ("NAME;host.name=vm1;unit=ssh.service", ()),
    ("graphite", "collectd"): ("NAME;host.name=vm1;unit=ssh.service", ()),
    ("dogstatsd", "statsd"): ("NAME", KEPT),
    ("dogstatsd", "statsd_exporter"): ("NAME", ESCAPED),
    ("dogstatsd", "collector"): ("NAME", KEPT),
    ("dogstatsd", "collectd"): BAD,
    ("influx", "statsd"): ("NAMEhost.name=vm1unit=ssh.service", ()),
    ("influx", "statsd_exporter"): ("NAME", ESCAPED),
    ("influx", "collector"): ("NAME,host.name=vm1,unit=ssh.service", ()),
    ("influx", "collectd"): ("NAME,host.name=vm1,unit=ssh.service", ()),
}

# What becomes of the values: {what is added to the name: value}. A time is in ms or s, as the receiver has it.
VALUES = {
    "statsd": {"c": {"": 7}, "g": {"": 5}, "t": {":count": 11, ":sum": 40}, "d": {"": 220}},
    "statsd_exporter": {"c": {"": 7}, "g": {"": 5}, "t": {"_count": 11, "_sum": 0.22}, "d": {"_count": 11, "_sum": 220}},
    "collector": {"c": {"": 7}, "g": {"": 5}, "t": {":count": 11, ":sum": 220}, "d": {":count": 11, ":sum": 220}},
    "collectd": {"c": {"": 7}, "g": {"": 5}, "t": {":count": 2, ":sum": 0.22}},
}

# Lines at which receivers differ, or which all must take: name, what is sent of it, and for each of RECEIVERS what arrives.
ODD = [
    ("fraction", ["1.7|c"], [1.7, 1.7, 1, 2]),
    ("many", ["9007199254740992|c"], [2**53, 2**53, 2**53, 2**53]),
    ("exponent", ["1e3|c"], [1000, 1000, 1000, 1000]),
    ("below", ["5|g", "-3|g"], [2, 2, 2, 2]),
    ("above", ["5|g", "+3|g"], [8, 8, 8, 8]),
    ("part", ["2.5|g"], [2.5, 2.5, 2.5, 2.5]),
    ("packed", ["1:2|c"], [2, BAD, BAD, {"packed:1": 2}]),
    ("stamped", ["1|c|T1700000000"], [BAD, 1, 1, BAD]),
    ("histogram", ["4|h"], [4, {"histogram_count": 1, "histogram_sum": 4}, {"histogram:count": 1, "histogram:sum": 4}, BAD]),
]


def expected_odd(receiver):
    """{series: value} of all that arrives of ODD."""
    column = RECEIVERS.index(receiver)
    found = {}
    for name, _, outcomes in ODD:
        outcome = outcomes[column]
        if outcome is not BAD:
            found.update(outcome if isinstance(outcome, dict) else {name: outcome})
    return {(name, ()): value for name, value in found.items()}


def expected(dialect, receiver):
    """{series: value} of all that arrives."""
    if NAMES[dialect, receiver] is BAD:
        return {}
    name, tags = NAMES[dialect, receiver]
    kinds = ["c", "g", "t"] + (["d"] if dialect == "dogstatsd" else [])
    return {(name.replace("NAME", f"{dialect}_{kind}") + added, tags): value
            for kind in kinds for added, value in VALUES[receiver][kind].items()}


def name_rows():
    """The table of names in docs/statsd.md, row by row."""
    for (dialect, receiver), named in NAMES.items():
        if named is BAD:
            yield f"| {dialect} | {receiver} | a bad line | |"
        else:
            tags = " ".join(f"`{key}={value}`" for key, value in named[1])
            yield f"| {dialect} | {receiver} | `{named[0]}` | {tags + ' ' if tags else ''}|"


def outcome_text(outcome):
    if outcome is BAD:
        return "a bad line"
    return ", ".join(f"{name} {value}".strip() for name, value in outcome.items()) if isinstance(outcome, dict) else str(outcome)


def value_rows():
    """The tables of values: what is sent, in a table's notation, and what arrives."""
    for what, kind, sent in (("counter", "c", VALUES_SENT), ("gauge", "g", VALUES_SENT), ("time", "t", VALUES_SENT),
                             ("distribution", "d", DISTRIBUTION)):
        lines = ", ".join("`" + value.replace("|", "\\|") + "`" for name, value in sent if name == kind)
        yield f"| {what}: {lines} | " + " | ".join(outcome_text(VALUES[receiver].get(kind, BAD)) for receiver in RECEIVERS) + " |"
    for _, values, outcomes in ODD:
        lines = ", ".join("`" + value.replace("|", "\\|") + "`" for value in values)
        yield f"| {lines} | " + " | ".join(map(outcome_text, outcomes)) + " |"
