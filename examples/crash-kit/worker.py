#!/usr/bin/env python3
"""A worker whose effect can be counted: it ships orders by adding a line to a file. `tagwerk chaos` tests it.

    worker.py FILE              looks before it ships, and repeats its reports
    worker.py FILE careless     ships in each attempt, without a look: doubles
    worker.py FILE early        reports first and ships then: loses
    worker.py FILE forgetful    ships and never reports: never finishes
"""
import http.client, json, os, sys, time, urllib.error, urllib.request

URL = os.environ.get("TAGWERK_URL", "http://127.0.0.1:7070")
FILE, MANNER = sys.argv[1], (sys.argv[2:] or ["careful"])[0]


def call(path, body):
    """Repeated until it is answered. `None` if the answer is no: then this attempt counts no more."""
    while True:
        request = urllib.request.Request(URL + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            return json.load(urllib.request.urlopen(request, timeout=60))
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503):
                return None
            time.sleep(float(error.headers.get("Retry-After", 1)))
        except (OSError, http.client.HTTPException):
            time.sleep(0.2)


def shipped(order):
    with open(FILE, "a+") as lines:
        lines.seek(0)
        return order + "\n" in lines


def ship(order):
    with open(FILE, "a") as lines:
        lines.write(order + "\n")


number = 0
while True:
    # The same request_id gets the same answer again, so a claim whose answer was lost costs no attempt.
    number += 1
    claim = {"worker_id": f"shipper-{os.getpid()}", "wait_seconds": 20, "request_id": f"{os.getpid()}-{number}"}
    job = call("/jobs/claim", claim)
    if job is None:
        continue
    order, report = job["payload"]["order"], (f"/jobs/{job['id']}/complete", {"lease": job["lease"]})
    if MANNER == "early":
        call(*report)
    if MANNER == "careless" or not shipped(order):
        ship(order)
    if MANNER in ("careful", "careless"):
        call(*report)
