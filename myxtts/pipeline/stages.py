"""The stages of the pipeline, as clocks, logs, errors and profiles call them; without TensorFlow."""

from enum import StrEnum


class Stage(StrEnum):
    """What is done with a batch, in this order, as clocks, logs and errors call it."""

    LOAD = "load"  # read from the pack, on the host
    PREPROCESS = "preprocess"  # features, on the data device
    TRANSFER = "transfer"  # to the devices that train
    TRAIN = "train"


OPEN, WAIT = "open", "wait"  # what clocks are told besides: the source opens, training waits for a batch
