#!/bin/sh
# A worker in shell and curl: claim, work, report. The job comes as JSON, on stdin of the command that is given as arguments:
#     worker.sh php handle-job.php
url=${TAGWERK_URL:-http://127.0.0.1:7070}
call() { curl -sS --fail-with-body --max-time 60 -H 'Content-Type: application/json' -d "$2" "$url$1"; }

while :; do
    job=$(call /jobs/claim "{\"worker_id\": \"shell-$$\", \"wait_seconds\": 20}") || { sleep 2; continue; }
    [ "$job" = null ] && continue # nothing to do within 20 seconds
    id=${job#*'"id":'} id=${id%%,*}
    lease=${job##*'"lease":"'} lease=${lease%%'"'*}
    # "verify": true in the job means that an earlier attempt may have done it: then look before you do it again.
    if printf '%s' "$job" | "$@"; then
        call "/jobs/$id/complete" "{\"lease\": \"$lease\"}"
    else
        call "/jobs/$id/fail" "{\"lease\": \"$lease\", \"error\": \"exit code $?\"}"
    fi >/dev/null || echo "job $id could not be reported" >&2
done
