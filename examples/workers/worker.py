#!/usr/bin/env python3
"""A worker in Python: claim, work, report. Nothing but the standard library."""
import http.client, json, os, time, urllib.error, urllib.request

URL = os.environ.get("TAGWERK_URL", "http://127.0.0.1:7070")

def call(path, body):
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=60))

def handle(job):  # job["verify"]: an earlier attempt may have done it, then look before you do it again
    print(f"job {job['id']} ({job['type']}): {job['payload']}", flush=True)
    if job["payload"].get("fail"): raise ValueError("asked to fail")
    return {"handled_by": "python"}

while True:
    try:
        job = call("/jobs/claim", {"worker_id": f"python-{os.getpid()}", "wait_seconds": 20})
        if job is None: continue  # nothing to do within 20 seconds
        try: verb, report = "complete", {"result": handle(job)}
        except Exception as error: verb, report = "fail", {"error": repr(error)}
        call(f"/jobs/{job['id']}/{verb}", {"lease": job["lease"], **report})
    except (OSError, http.client.HTTPException) as error:  # the server is away, or refused the call and says why
        print(error.read().decode() if isinstance(error, urllib.error.HTTPError) else error, flush=True)
        time.sleep(2)
