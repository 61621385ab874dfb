"""What schemathesis cannot read from the document, said where it can be checked.

Five things, and nothing else:

1. Waits are cut to a tenth of a second, since a claim that waits a minute tests patience and nothing else.
2. `positive_data_acceptance` is replaced by `what_the_schema_allows_is_accepted`: a refusal counts as right only for
   reasons that JSON Schema has no words for. They are listed in UNSAYABLE, each with its reason.
3. In calls with many entries each entry is judged by itself and the call is answered with 200, so
   `negative_data_rejection` does not fit. `bad_entries_are_refused` asks for a refused entry instead.
4. A stream of lines is sent as the text that was made for it. Each line is judged by itself, so here too the call is
   answered with 200 and `a_stream_ends_with_its_counts` looks at the answer.
5. A queue that is being drained answers producers with 503, which is no fault of the server's:
   `only_a_draining_queue_is_a_server_error` takes the place of `not_a_server_error` there.
"""

import re
import json

import schemathesis
from schemathesis.core.failures import Failure

# Codes of field errors, and why no schema can say them.
UNSAYABLE = {
    # Two fields that exclude each other, or a header that contradicts the body.
    "conflict",
    # The server counts bytes of UTF-8, maxLength counts characters. Judged below: only texts that are not ASCII.
    "too-long",
    # The size and the nesting of any JSON.
    "payload-too-large",
    "result-too-large",
    "checkpoint-too-large",
    "too-deep",
}

# The same for single fields, with the code that only there stands for such a reason.
UNSAYABLE_FIELDS = {
    # How far an instant may lie ahead, and whether it has passed, depends on the present.
    ("run_at", "out-of-range"),
    ("expires_at", "out-of-range"),
    # Needed only with `supersede`.
    ("subject.version", "missing"),
    # Which limits there are.
    ("limits", "unknown-value"),
    # Only a stream of lines takes it; the same path with a JSON body does not.
    ("results", "unknown-field"),
    # The encoding of a header. The tool writes some texts as Latin-1.
    ("Idempotency-Key", "bad-character"),
}

# Codes of problems of the same kind.
UNSAYABLE_PROBLEMS = {
    # The same key as before with other content.
    "idempotency-key-reused",
    # The key of the header is not that of the body.
    "idempotency-key-conflict",
    "payload-too-large",
    # Another call of the run has bounded or drained the queue.
    "queue-full",
    "queue-draining",
}

NDJSON = "application/x-ndjson"
SHORT = 0.1


@schemathesis.serializer(NDJSON)
def lines(context, value):
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def shortened(value):
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return SHORT if is_number and SHORT < value <= 60 else value


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    for claim in [body, body.get("claim")] if isinstance(body, dict) else []:
        if isinstance(claim, dict) and "wait_seconds" in claim:
            claim["wait_seconds"] = shortened(claim["wait_seconds"])
    query = case.query
    if isinstance(query, dict) and "wait_seconds" in query:
        try:
            query["wait_seconds"] = shortened(float(query["wait_seconds"]))
        except (TypeError, ValueError):
            pass


def mode_of(case):
    return case.meta.generation.mode if case.meta is not None else None


def is_unsayable(problem, case):
    errors = problem.get("errors") or []
    if not errors:
        return problem.get("code") in UNSAYABLE_PROBLEMS
    sent = repr([case.body, case.query, case.path_parameters, case.headers])
    for error in errors:
        # What is wrong with a job is as unsayable where it comes with a `complete`.
        field = re.sub(r"^enqueue\[\d+\]\.", "", error["field"])
        if (field, error["code"]) in UNSAYABLE_FIELDS:
            continue
        if error["code"] not in UNSAYABLE:
            return False
        if error["code"] == "too-long" and sent.isascii():
            return False
    return True


@schemathesis.check
def what_the_schema_allows_is_accepted(context, response, case):
    mode = mode_of(case)
    if mode is None or not mode.is_positive or response.status_code not in (400, 405, 413, 415, 422):
        return
    problem = response.json()
    if not is_unsayable(problem, case):
        raise Failure(
            operation=case.operation.label,
            title="Schema-valid request rejected",
            message=f"{problem.get('code')}: {problem.get('detail')} {problem.get('errors')}",
        )


@schemathesis.check
def a_stream_ends_with_its_counts(context, response, case):
    kind = response.headers.get("content-type", [""])[0]
    if not kind.startswith(NDJSON):
        return
    answers = [json.loads(line) for line in response.content.splitlines()]
    last = answers[-1] if answers else {}
    refused = [answer for answer in answers[:-1] if answer.get("problem")]
    if last.get("done") is not True or len(refused) != min(last["refused"], 1000):
        raise Failure(
            operation=case.operation.label,
            title="The last line does not fit the lines before it",
            message=f"{len(refused)} refused lines, then {last}",
        )


BULK = {"POST /jobs/bulk": "jobs", "POST /jobs/heartbeat/bulk": "leases", "POST /jobs/report/bulk": "reports"}


@schemathesis.check
def bad_entries_are_refused(context, response, case):
    if case.operation.label not in BULK or response.status_code != 200:
        return
    mode = mode_of(case)
    if mode is None or not mode.is_negative or case.media_type == NDJSON:
        return
    answer = response.json()
    refused = [result for result in answer["results"] if result["problem"] is not None]
    if not refused and not answer.get("claim_problem"):
        raise Failure(
            operation=case.operation.label,
            title="Schema-violating entry accepted",
            message="every entry was accepted although the body breaks the schema",
        )


@schemathesis.check
def only_a_draining_queue_is_a_server_error(context, response, case):
    if case.operation.label != "POST /jobs" or response.status_code < 500:
        return
    problem = response.json()
    if problem.get("code") != "queue-draining":
        raise Failure(
            operation=case.operation.label,
            title="Server error",
            message=f"{response.status_code}: {problem}",
        )
