# SPDX-License-Identifier: Apache-2.0
"""The page cache: a known number of pages written, read and mapped, in the cache and not."""
import contextlib
import sys
import tempfile
import unittest

import harness
from harness import Cgroup, check_counted, once, remembered

PAGES = 1024
TURNS = [(work, temperature) for work, *temperatures in (
    ('write', 'cold', 'clean'), ('read', 'cold', 'warm'), ('random', 'cold'), ('across', 'warm'), ('touch', 'cold', 'warm'))
    for temperature in temperatures]
# Enters the cgroup of a turn when all of its own code has run, and leaves it before it ends: only the second time is counted.
WORKLOAD = """
import json, mmap, os, resource, sys
BEFORE, PLACE, PAGES, PAGE = sys.argv[1], sys.argv[2], int(sys.argv[3]), mmap.PAGESIZE

def forget(fd):
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)

def write(fd, memory):
    os.pwrite(fd, memory, 0)

def read(fd, memory):
    for at in range(0, PAGES, 16):
        os.preadv(fd, [memory[:16 * PAGE]], at * PAGE)

def read_random(fd, memory):
    for at in range(0, PAGES, 64):
        os.preadv(fd, [memory[:2]], at * PAGE + 1)

def read_across(fd, memory):
    for at in range(1, PAGES, 64):
        os.preadv(fd, [memory[:2]], at * PAGE - 1)

def touch(fd, memory):
    with mmap.mmap(fd, PAGES * PAGE, mmap.MAP_SHARED, mmap.PROT_READ) as pages:
        pages.madvise(mmap.MADV_RANDOM)
        before = resource.getrusage(resource.RUSAGE_SELF)
        for at in range(0, PAGES, 64):
            pages[at * PAGE]
        after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt

def move(procs):
    with open(procs, 'w') as file:
        file.write('0')

WORKS = {'write': write, 'read': read, 'random': read_random, 'across': read_across, 'touch': touch}

def run(path, work, temperature, enter):
    memory = memoryview(bytearray(b'x' * PAGES * PAGE))
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(fd, memory, 0)
    if temperature == 'cold':
        forget(fd)
    elif temperature == 'clean':
        os.fsync(fd)
    if work == 'random':
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    do = WORKS[work]
    move(enter)
    faults = do(fd, memory)
    move(BEFORE)
    os.close(fd)
    os.unlink(path)
    return faults or 0

for turn, procs in zip(sys.argv[4::2], sys.argv[5::2]):
    run(PLACE + '/first', *turn.split(), BEFORE)
    print(json.dumps({turn: run(PLACE + '/second', *turn.split(), procs)}))
"""


def counts(seen):
    """{(metric, cause): pages}, of those that are not 0"""
    found = {}
    for point in seen:
        key = (point['name'].rpartition('.')[2], point['attributes'].get('bpfpush.page_cache.cause'))
        found[key] = found.get(key, 0) + point['total']
    return {key: pages for key, pages in found.items() if pages}


class PageCacheTest(unittest.TestCase):
    @remembered
    def count_all(self):
        """{turn: (what was counted in its cgroup, its faults)}, and all that was counted."""
        with contextlib.ExitStack() as stack:
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix='bpfpush-test-', dir='/var/tmp'))
            before = stack.enter_context(Cgroup('before'))
            cgroups = {' '.join(turn): stack.enter_context(Cgroup('-'.join(turn))) for turn in TURNS}
            words = [word for turn, cgroup in cgroups.items() for word in (turn, cgroup.procs)]
            seen = once(['pagecache'], [sys.executable, '-c', WORKLOAD, before.procs, place, PAGES, *words])
            return {turn: (counts(seen.of(cgroup)), seen.expected[turn]) for turn, cgroup in cgroups.items()}, seen

    def count(self, *turn):
        turns, self.seen = self.count_all()
        found, self.faults = turns[' '.join(turn)]
        return dict(found)

    def expect(self, found, **looked_for):
        """Where the kernel refuses fexit, only what is added and made dirty is known."""
        for (name, cause), pages in {tuple((key + '_').split('_')[:2]): pages for key, pages in looked_for.items()}.items():
            with self.subTest(name, cause=cause):
                if not cause:
                    self.assertEqual(found.pop((name, None), 0), pages)
                elif 'partial' not in self.seen.stderr:
                    check_counted(self, found.pop((name, cause), 0), pages, self.seen, 'pagecache', each=pages)
        self.assertEqual(found, {})

    def test_pages_that_are_written_are_added_and_dirtied(self):
        self.expect(self.count('write', 'cold'), added=PAGES, dirtied=PAGES)

    def test_pages_that_are_there_are_only_dirtied(self):
        self.expect(self.count('write', 'clean'), dirtied=PAGES)

    def test_a_read_of_what_is_not_there_misses(self):
        self.expect(self.count('read', 'cold'), added=PAGES, accesses_read=PAGES, misses_read=PAGES)

    def test_a_read_of_what_is_there_does_not_miss(self):
        self.expect(self.count('read', 'warm'), accesses_read=PAGES)

    def test_a_read_counts_the_pages_that_it_touches(self):
        self.expect(self.count('random', 'cold'), added=PAGES // 64, accesses_read=PAGES // 64, misses_read=PAGES // 64)
        self.expect(self.count('across', 'warm'), accesses_read=2 * PAGES // 64)

    def test_a_fault_looks_for_one_page(self):
        self.expect(self.count('touch', 'cold'), added=PAGES // 64, accesses_fault=PAGES // 64, misses_fault=PAGES // 64)
        found = self.count('touch', 'warm')  # a fault maps a whole huge folio, and then the next page needs none
        self.expect(found, accesses_fault=self.faults)
        self.assertTrue(0 < self.faults <= PAGES // 64)


if __name__ == '__main__':
    harness.main()
