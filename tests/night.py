# SPDX-License-Identifier: Apache-2.0
"""Some tests do more by night, with BPFPUSH_TEST_NIGHT=1: what takes long and is not new with each change."""

import os

IS_NIGHT = bool(os.environ.get("BPFPUSH_TEST_NIGHT"))
