"""Everything that happens to real deployments, done on purpose to real workers and a real broker.

    python -m tests.kafka.chaos --list
    python -m tests.kafka.chaos sigkill --count 50 --seed 7

A scenario is a function that does its worst to a `Stage` and then asks for what must be true
(`verdict`). Its name, seed and count are all it takes to run it again.
"""
