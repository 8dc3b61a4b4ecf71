# SPDX-License-Identifier: Apache-2.0
"""The questions that pages for newcomers show are accepted and answered, where the kernel has their hooks."""
import os
import re
import shlex
import subprocess
import unittest

import harness
from test_hooks import mount_tracefs

PAGES = ('README.md', 'docs/bcc.md', 'docs/first-commands.md')
ROOT = os.path.join(harness.HERE, '..', '..')
# In blocks, after a prompt or not, perhaps over several lines; and in the column of a table.
LINE = re.compile(r'^(?:\$ )?sudo bpfpush (once\b(?:.*\\\n)*.*|events\b(?:.*\\\n)*.*)$', re.MULTILINE)
ROW = re.compile(r'^\| .* \| ((?:`[^`]+`(?:, )?)+) \|', re.MULTILINE)
LACKS = re.compile(r'this kernel has no kprobes|this kernel lets nobody attach to functions|this machine cannot count that')


def commands(page):
    with open(os.path.join(ROOT, page), encoding='utf-8') as file:
        text = file.read()
    found = LINE.findall(text)
    for heading, command in (('The tools', 'once'), ('I want to know', 'once'), ('A line for each event', 'events')):
        for cell in ROW.findall(text.partition(f'\n## {heading}\n')[2].partition('\n## ')[0]):
            for words in re.findall('`([^`]+)`', cell.replace('FUNCTION', 'vfs_read')):
                found.append(words.removeprefix('bpfpush ') if words.startswith('bpfpush ') else f'{command} {words}')
    return [shlex.split(words.replace('\\\n', ' '), comments=True) for words in found]


class PagesTest(unittest.TestCase):
    def test_each_command_is_answered(self):
        n = {}
        for page in PAGES:
            for words in commands(page):
                if '--' in words:  # a command to be counted, which is anything
                    continue
                n[page] = n.get(page, 0) + 1
                with self.subTest(page, words=words):
                    done = subprocess.run([harness.agent(), *words, '--config=/dev/null', '--for=10ms'], stdin=subprocess.DEVNULL,
                                          capture_output=True, text=True, timeout=harness.PATIENCE_S, check=False,
                                          preexec_fn=mount_tracefs)
                    if done.returncode != 69 or not LACKS.search(done.stderr):
                        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(n['docs/bcc.md'], 50)
        self.assertEqual(len(n), len(PAGES))


if __name__ == '__main__':
    if not os.path.exists(os.path.join(ROOT, 'docs')):
        print('skipped: needs the pages')
        raise SystemExit(harness.SKIP_STATUS)
    harness.main()
