-- The view of jobs for people shows what orders and limits a job as well: its limits as JSON, its ordering key, whether it
-- waits for another job of that key, and the job with a newer version that took its place. It is written out again, as views must be.
-- No syntax that is newer than the tables': whoever reads the file with an older `sqlite3` has to parse it.
DROP VIEW tagwerk_jobs;
CREATE VIEW tagwerk_jobs AS
SELECT j.id,
       t.name AS type,
       q.name AS queue,
       s.name AS status,
       j.prio AS priority,
       j.version,
       j.attempt,
       j.retry_count,
       j.max_retries,
       j.lease_losses,
       j.max_lease_losses,
       j.release_count,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.due / 1000.0, 'unixepoch') AS available_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.expires / 1000.0, 'unixepoch') AS expires_at,
       j.worker AS worker_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.claimed / 1000.0, 'unixepoch') AS claimed_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.lease_expires / 1000.0, 'unixepoch') AS held_until,
       fc.name AS failure_class,
       fr.name AS failure_reason,
       fz.name AS failure_cause,
       n.error,
       d.key AS idempotency_key,
       d.subject_kind,
       d.subject_id,
       d.subject_version,
       d.correlation_id,
       j.payload_bytes,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.created / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.updated / 1000.0, 'unixepoch') AS updated_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.finished / 1000.0, 'unixepoch') AS finished_at,
       nullif(x.fair, '') AS fair_key,
       nullif((SELECT json_group_array(m.name) FROM (
           SELECT name || CASE partition WHEN '' THEN '' ELSE ':' || partition END AS name
           FROM lim WHERE id IN (x.first, x.second) ORDER BY 1) m), '[]') AS limits,
       substr(d.ordering, 2) AS ordering_key,
       j.state = 2 AS blocked,
       n.superseded_by
FROM job j
LEFT JOIN special_lane x ON x.id = j.lane
LEFT JOIN lane l ON l.id = coalesce(x.class, j.lane)
LEFT JOIN queue q ON q.id = l.queue
LEFT JOIN type t ON t.id = l.type
LEFT JOIN detail d ON d.job = j.id
LEFT JOIN note n ON n.job = j.id
LEFT JOIN code_name s ON s.what = 'status' AND s.code = j.state
LEFT JOIN code_name fc ON fc.what = 'class' AND fc.code = j.failure % 10
LEFT JOIN code_name fr ON fr.what = 'reason' AND fr.code = j.failure / 10 % 10
LEFT JOIN code_name fz ON fz.what = 'cause' AND fz.code = j.failure / 100;
