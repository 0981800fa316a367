# SPDX-License-Identifier: Apache-2.0
"""When to train and on what: from the ratings that are there to the version that answers.

Top to bottom: `scheduler` says when, `batch` and `claims` say on what, `trainer` leads one run, `job_spec`
writes it down for a child, `attempts` and `goodbot.learning.worker_process` see the child through,
`publish` ends it. The arithmetic is not here: it runs in the child (`goodbot_training`).
"""
