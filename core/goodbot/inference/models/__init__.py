# SPDX-License-Identifier: Apache-2.0
"""What answers: finding a model on this machine, choosing one, and bringing its weights here.

This module is light and reads only the disk. What chooses and downloads lies beside it, prints
nothing and asks nothing; `goodbot model`, `goodbot model switch` and `goodbot init` do that::

    from goodbot.inference.models.choose import choose, propose, settle
    proposal = propose(home, backends)          # `auto`: the largest that fits; GoodbotError if none
    proposal = choose(wanted, home, backend)    # NAME, PATH, SERVER: what it costs; downloads nothing

    from goodbot.inference.models.obtain import obtain
    got = obtain(proposal.source, home, progress=show)   # downloads what is not here, verifies it
    settle(file, proposal, got)                 # a ConfigFile: the model, and what training needs

`backend` is the name of a training backend (`mlx`, `torch`), `backends` the names of all that may be
used (`goodbot.cli.model.backends` knows them). `progress` takes the mappings that
`goodbot.api.progress.progress_line` shows. `got.reference` is what `[model] path` holds and what
`resolve` takes: a directory, or `owner/name@commit`. All of them raise GoodbotError.
"""

from __future__ import annotations

from goodbot.inference.models.directory import check, resolve

__all__ = ["check", "resolve"]
