#!/usr/bin/env -S python3 -IS
"""Writes the price list of a supplier as CSV: the same rows each time, some of them bad, as such lists are.

    products.py [ROWS] > products.csv        3,000 rows unless another number is given
"""

import csv
import sys

MATERIALS = ["Oak", "Beech", "Walnut", "Steel", "Glass", "Linen", "Cotton", "Marble"]
THINGS = ["table", "chair", "shelf", "lamp", "mirror", "bench", "stool", "curtain", "bowl"]


def ean(number):
    """A valid EAN-13: twelve digits and their check digit."""
    digits = f"400638{number:06d}"
    weighted = sum(int(digit) * (3 if index % 2 else 1) for index, digit in enumerate(digits))
    return digits + str(-weighted % 10)


def row(number):
    name = f"{MATERIALS[number % len(MATERIALS)]} {THINGS[number % len(THINGS)]} {number}"
    price = f"{5 + number * 37 % 500}.{number * 7 % 100:02d}"
    code = ean(number)
    if number % 300 == 150:
        price = ""  # forgotten by somebody
    if number % 500 == 333:
        code = code[:-1] + str((int(code[-1]) + 1) % 10)  # mistyped by somebody
    return [f"P-{number:05d}", code, name, price, number * 13 % 90]


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["sku", "ean", "name", "price", "stock"])
    out.writerows(row(number) for number in range(1, rows + 1))


if __name__ == "__main__":
    main()
