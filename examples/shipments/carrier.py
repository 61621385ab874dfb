#!/usr/bin/env python3
"""A carrier to practise with: a small HTTP server with a database of its own, which ships things and sends the bill.

POST /shipments {"order": …, "reference": …}   ships, and answers with a number. Twice is twice, unless the server was started
                                               with --keys and both have the same header Idempotency-Key.
GET  /shipments[?reference=…]                  what was shipped

  carrier.py [--keys] [--port 8099] [--database carrier.db]      prints "listening on http://…" when it is ready
"""
import argparse, json, sqlite3, urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

options = argparse.ArgumentParser()
options.add_argument("--keys", action="store_true", help="honour the header Idempotency-Key")
options.add_argument("--port", type=int, default=8099)
options.add_argument("--database", default="carrier.db")
options = options.parse_args()


def database():
    opened = sqlite3.connect(options.database, timeout=30)
    opened.execute("""CREATE TABLE IF NOT EXISTS shipment (
        number INTEGER PRIMARY KEY, "order" TEXT NOT NULL, reference TEXT NOT NULL, key TEXT UNIQUE)""")
    return opened


class Carrier(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        key = self.headers.get("Idempotency-Key") if options.keys else None
        with database() as shipments:  # one transaction, durable before the answer
            shipments.execute(
                'INSERT INTO shipment ("order", reference, key) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING',
                (asked["order"], asked["reference"], key),
            )
            number = shipments.execute(
                "SELECT number FROM shipment WHERE key = ?" if key else "SELECT last_insert_rowid()", (key,) if key else ()
            ).fetchone()[0]
        self.answer({"number": number})

    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        reference = query.get("reference", [None])[0]
        rows = database().execute(
            'SELECT number, "order", reference FROM shipment WHERE reference = coalesce(?, reference) ORDER BY number', (reference,)
        )
        self.answer([{"number": number, "order": order, "reference": known} for number, order, known in rows])

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", options.port), Carrier)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
