"""Two parts of the CPU as devices for the tests of this process, and a cache folder of their own.

Both are set before TensorFlow starts: what it compiles for a test lies outside of the user's home, in one folder for
all processes of a session, so that what one of them has compiled or prepared is found by the others.
"""

import atexit
import os
import shutil
import tempfile

from myxtts.compiled import FLAGS
from myxtts.config.config import DataConfig
from myxtts.devices import POLICY, plan_devices

CACHE = "MYXTTS_TESTS_CACHE"  # inherited by the workers of a session, whose controller made the folder

if CACHE not in os.environ:
    os.environ[CACHE] = tempfile.mkdtemp(prefix="myxtts-tests-")
    atexit.register(shutil.rmtree, os.environ[CACHE], ignore_errors=True)
os.environ["XDG_CACHE_HOME"] = os.environ[CACHE]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ[POLICY] = "explicit"  # an accidental copy between devices fails a test

_users_flags = os.environ.get(FLAGS)
PLAN = plan_devices(DataConfig(virtual_devices=2, data_gpu=0, model_gpu=1))

# TensorFlow has read its flags by now. Commands that tests start are to find their own, as they do for a user.
os.environ.pop(FLAGS, None)
if _users_flags is not None:
    os.environ[FLAGS] = _users_flags
