-- What the jobs of a type may ask for. `queues` holds names, in which there is no comma, with commas between them.
ALTER TABLE type ADD COLUMN queues TEXT;
ALTER TABLE type ADD COLUMN prio_ceiling INTEGER;
ALTER TABLE type ADD COLUMN payload_max_bytes INTEGER;
