"""When to train and on what: from the ratings that are there to the version that answers.

Top to bottom: `scheduler` says when, `rounds` and `claims` say on what, `trainer` leads one run, `job`
writes it down for a child, `tries` and `child` see the child through, `going_live` ends it. The
arithmetic is not here: it runs in the child (`goodbot_training`).
"""
