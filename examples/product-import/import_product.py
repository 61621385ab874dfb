#!/usr/bin/env -S python3 -IS
"""Imports one product: checks it and writes it as a file. The command of `tagwerk work`, run once for each job.

    tagwerk work --type import-product -- import_product.py FOLDER

The payload comes on stdin, what is known about the job in TAGWERK_JOB_… variables. The exit code says how it went:
0 done, 65 the data is bad, 75 try again later, 70 nobody knows. The last line of stdout is the result, stderr the error.
"""

import json
import os
import re
import signal
import sys

DONE, BAD_DATA, NOBODY_KNOWS, TRY_LATER = 0, 65, 70, 75


class Problem(Exception):
    """Ends the run with an exit code and a sentence."""

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


def check(product):
    """What is wrong with the data stays wrong: a person must look at it."""
    sku, code, price = product["sku"], product["ean"], product["price"]
    if not re.fullmatch(r"P-\d{5}", sku):
        raise Problem(BAD_DATA, f"the article number {sku!r} is none")
    if not re.fullmatch(r"\d+\.\d\d", price):
        raise Problem(BAD_DATA, f"{sku} has no price: {price!r}")
    digits = [int(digit) for digit in code if digit.isdecimal()]
    if len(digits) != 13 or sum(digits[0::2] + 3 * digits[1::2]) % 10 != 0:
        raise Problem(BAD_DATA, f"{sku} has a mistyped EAN: {code}")
    return {"sku": sku, "ean": code, "name": product["name"], "price": price, "stock": int(product["stock"])}


def write_once(path, product):
    """The effect. The file is there whole or not at all, and never replaces another."""
    draft = f"{path}.{os.getpid()}.draft"
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(product, file)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        raise Problem(BAD_DATA, f"{path} is there already, and nobody said that it might be") from None
    finally:
        os.unlink(draft)


def trouble(product, when):
    """Trouble that a real import has now and then comes here on schedule, on first attempts only."""
    if os.environ["TAGWERK_JOB_ATTEMPT"] != "1":
        return
    number = int(product["sku"][2:])
    if when == "before" and number % 50 == 7:
        raise Problem(TRY_LATER, "the image server is busy")
    if when == "before" and number % 100 == 66:
        raise Problem(NOBODY_KNOWS, "the connection to the shop broke, perhaps after it had taken the product")
    if when == "after" and number % 100 == 44:
        os.kill(os.getpid(), signal.SIGKILL)  # out of memory, say: done, and nobody was told


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    product = check(json.load(sys.stdin))
    path = os.path.join(folder, f"{product['sku']}.json")
    # An earlier attempt may have done it and not have lived to say so: look first.
    if os.environ["TAGWERK_JOB_VERIFY"] == "true" and os.path.exists(path):
        return {"file": path, "done_by": "an earlier attempt"}
    trouble(product, "before")
    write_once(path, product)
    trouble(product, "after")
    return {"file": path, "done_by": f"attempt {os.environ['TAGWERK_JOB_ATTEMPT']}"}


if __name__ == "__main__":
    try:
        print(json.dumps(main()))
    except Problem as problem:
        print(problem, file=sys.stderr)
        sys.exit(problem.code)
