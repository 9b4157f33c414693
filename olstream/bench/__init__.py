"""What olstream costs, in parts: each is a module of this folder with a `measure`, and a section of one table."""

from __future__ import annotations

from typing import Final

# What each part's rows mean. Text only: `olstream bench --help` shows it and loads none of them.
PARTS: Final = {
    "loop": "The service end to end, against a bare loop: the same client and settings consume the same records and "
    "produce records of a prediction's size in transactions, and nothing is decoded or learnt. Ratio: share of the "
    "bare loop's rate. Stages: where the time of one record goes. Quix Streams + River: the same on the same records.",
    "learner": "Learning alone, by CPU time, one pass over at most 50,000 rows in memory: of 20 numbers, and of 20 of "
    "2^18 named features. Every algorithm, binary with its defaults, and some more forms; fewer rows of what is slow. "
    "Wrong: predictions that were made before their own label was used. Ratio: rate against our AROW kernel.",
    "svm": "The batch solver alone, by CPU time, to a share above the least objective. liblinear's own tolerance is "
    "tightened until it is as near. Wrong: of the rows it was given. Ratio: rate against ours.",
    "drift": "Detectors with their defaults over 20,000 errors, 0 or 1, a fifth of them 1; from row 10,000 on twice as "
    "many, at once (abrupt) or over 2,000 rows (gradual). Found: in how many of 20 streams there was a drift within "
    "5,000 rows of the change, and after how many rows (the median): where false alarms are many, some of it is luck. "
    "False alarms: drifts in streams without a change.",
    "latency": "From a record's timestamp to its prediction in the hands of a read_committed reader, at half of the "
    "rate that the service reaches. Added: what remains when the same of a bare loop with the same commit interval is "
    "taken off.",
    "recovery": "Learning the committed records again after a crash, against how fast they were learnt live.",
    "checkpoint": "With 2^20 features: how long the loop stands still for the copy, and what is left of its rate while "
    "a thread writes the copy.",
    "memory": "A binary AROW by number of features: resident memory above the empty process, its peak while a "
    "checkpoint is written included in the second number.",
    "workers": "Two workers, two slots, two partitions against one on one: what a second process adds on this machine, "
    "for the service and for the bare loop. They share its cores with the broker, which limits both on a small one.",
}
NEED_NO_KAFKA: Final = {"drift", "learner", "memory", "svm"}
