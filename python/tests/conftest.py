"""Tests compile what they run: the cache on disk is off, but where a test turns it on."""

import os

os.environ["FP4_CACHE"] = "0"
