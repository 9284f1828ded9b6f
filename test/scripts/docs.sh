#!/usr/bin/env bash
# The documents quote tests and link to files that exist.
exec python3 utils/check_docs.py
