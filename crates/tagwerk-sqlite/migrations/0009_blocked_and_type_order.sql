-- Jobs that wait for their turn in the order of an ordering key: counted with the others from now on. `blocked` is a part of
-- `pending`.
ALTER TABLE ledger ADD COLUMN blocked INTEGER NOT NULL DEFAULT 0;
UPDATE ledger SET blocked = b.jobs
  FROM (SELECT coalesce(s.class, j.lane) AS class, count(*) AS jobs
          FROM job_order o
         CROSS JOIN job j ON j.id = o.job
          LEFT JOIN special_lane s ON s.id = j.lane
         WHERE o.open = 0 AND j.state = 2
         GROUP BY 1) AS b
 WHERE b.class = ledger.lane;

-- Defaults of types for order and capacity. `limits` holds them as jobs name them, in which there is no line break, with line
-- breaks between them.
ALTER TABLE type ADD COLUMN limits TEXT;
ALTER TABLE type ADD COLUMN fair_key TEXT;
ALTER TABLE type ADD COLUMN ordering_key TEXT;
ALTER TABLE type ADD COLUMN on_head_failure INTEGER;
