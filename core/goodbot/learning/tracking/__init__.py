# SPDX-License-Identifier: Apache-2.0
"""Experiment trackers: the curves of each run, in TensorBoard and the like.

`goodbot.api.tracker` is what a plugin offers, `observer` hears the training hooks in the daemon,
`child` is the process in which a tracker lives for one run. Numbers and settings go there, and no words.
"""
