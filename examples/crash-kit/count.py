#!/usr/bin/env python3
"""Tells `tagwerk chaos --check` how often each order was shipped: the keys of the jobs are the lines of the file."""
import collections, json, os, sys

lines = open(sys.argv[1]).read().split() if os.path.exists(sys.argv[1]) else []
counts = collections.Counter(lines)
json.dump({job["key"]: counts[job["key"]] for job in json.load(sys.stdin)}, sys.stdout)
