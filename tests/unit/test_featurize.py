"""What XLA compiles of the features; what they are is tested with the feed."""

import os
import subprocess
import sys

PARTS = """
from myxtts.runtime import import_tensorflow
tf = import_tensorflow()
from myxtts.config.load import build
from myxtts.pipeline.featurize import Featurizer
featurizer = Featurizer(build({"model.reference_frames": 32, "model.refiner_blocks": 1}))
for first in range(3):
    spans = [[60, 30, first, 0, first + row] for row in range(2)]
    featurizer(tf.zeros([2, 96 * 256], tf.int16), tf.constant(spans, tf.int64))
"""


def test_a_part_of_a_batch_is_compiled_once_wherever_it_begins(tmp_path):
    """XLA compiles a function anew for each value of what it takes for a constant; each is kept in a file."""
    places = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PARTS], env=places, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.rglob("xla_compile_cache*"))) == 1
