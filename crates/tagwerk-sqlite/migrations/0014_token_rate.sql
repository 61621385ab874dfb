-- How many requests an API token allows within how many milliseconds. NULL: what the server's settings say.
ALTER TABLE token ADD COLUMN rate_count INTEGER CHECK (rate_count > 0);
ALTER TABLE token ADD COLUMN rate_per_ms INTEGER CHECK (rate_per_ms > 0);
