#!/usr/bin/env python3
"""Ships each order once, however often this program dies in between.

  worker.py key        the carrier honours idempotency keys: ask again with the same key
  worker.py look-up    it does not, but can be asked what it has shipped: look before you ship again
  worker.py careless   without the effect journal: ships again what nobody knows to be shipped
"""
import http.client, json, os, sys, time, urllib.error, urllib.request

TAGWERK = os.environ.get("TAGWERK_URL", "http://127.0.0.1:7070")
CARRIER = os.environ.get("CARRIER_URL", "http://127.0.0.1:8099")
MODE = sys.argv[1]


def call(method, url, body=None, **headers):
    """One call, repeated while nobody answers. Every call to Tagwerk here may be: it has its lease or its request_id."""
    data = None if body is None else json.dumps(body).encode()
    while True:
        request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            if refused.code not in (429, 503):
                raise
        except (OSError, http.client.HTTPException) as away:  # nobody there, or half an answer
            print(f"{url}: {away}", file=sys.stderr, flush=True)
        time.sleep(0.2)


def effect(job, name, act, look_up):
    """A side effect that happens once over all attempts of the job."""
    path, lease = f"{TAGWERK}/jobs/{job['id']}/effects/{name}", job["lease"]
    begun = call("POST", f"{path}/begin", {"lease": lease})
    if begun["state"] == "done" and begun["result"] is not None:
        return begun["result"]
    # In doubt: an earlier attempt began it and died. (Done without a result: a person has said that it happened.)
    known = None if begun["state"] == "new" else look_up(begun["key"])
    result = known or act(begun["key"])
    call("POST", f"{path}/finish", {"lease": lease, "result": result})
    return result


def ship(order):
    def act(key):
        headers = {"Idempotency-Key": key} if MODE == "key" else {}
        return call("POST", f"{CARRIER}/shipments", {"order": order, "reference": key}, **headers)

    return act


def shipped(key):
    if MODE == "key":
        return None  # asking again with the same key does no harm
    found = call("GET", f"{CARRIER}/shipments?reference={key}")
    return {"number": found[0]["number"]} if found else None


claims = 0
while True:
    claims += 1
    claim = {
        "worker_id": f"shipper-{os.getpid()}",
        "request_id": f"{os.getpid()}-{time.time_ns()}-{claims}",
        "handles_verify": MODE != "careless",
        "lease_seconds": float(os.environ.get("LEASE", "60")),
        "wait_seconds": 20,
    }
    job = call("POST", f"{TAGWERK}/jobs/claim", claim)
    if job is None:
        continue
    order = job["payload"]["order"]
    try:
        if MODE == "careless":
            result = ship(order)("none")
        else:
            result = effect(job, "create-shipment", ship(order), shipped)
        call("POST", f"{TAGWERK}/jobs/{job['id']}/complete", {"lease": job["lease"], "result": result})
    except urllib.error.HTTPError as refused:  # 409: the job is somebody else's by now, or a person's
        print(f"job {job['id']}: {refused.read().decode()}", file=sys.stderr, flush=True)
