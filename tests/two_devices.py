"""Two parts of the CPU as devices for the tests of this process; set before TensorFlow starts."""

import os

from myxtts.config.config import DataConfig
from myxtts.devices import POLICY, plan_devices

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ[POLICY] = "explicit"  # an accidental copy between devices fails a test

PLAN = plan_devices(DataConfig(virtual_devices=2, data_gpu=0, model_gpu=1))
