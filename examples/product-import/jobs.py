#!/usr/bin/env -S python3 -IS
"""Makes a job of each row of a CSV file, one a line, for `tagwerk enqueue --bulk`.

    jobs.py products.csv > jobs.ndjson

The key says which business operation the job is: importing this product. However often the file is enqueued, each product
is imported once. Another list next week would get other keys, such as product-P-00001-2026-07-08.
"""

import csv
import json
import sys


def main():
    with open(sys.argv[1], newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            job = {
                "type": "import-product",
                "payload": row,
                "idempotency_key": f"product-{row['sku']}",
                "subject": {"kind": "product", "id": row["sku"]},
                "retry": {"base_seconds": 1},
            }
            print(json.dumps(job, separators=(",", ":")))


if __name__ == "__main__":
    main()
