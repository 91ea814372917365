"""run_cases.py URI CASES: runs the shared cases through the Python example; prints the verdicts and effects as JSON."""

import base64
import json
import pathlib
import sys

import psycopg2

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples" / "python"))

from outbox_inbox import Inbox, Record, Reject  # noqa: E402


def to_bytes(value):
    if isinstance(value, dict) and "times" in value:
        return (value["repeat"] * value["times"] + value["then"]).encode()
    if isinstance(value, dict):
        return base64.b64decode(value["base64"])
    return None if value is None else value.encode()


def to_record(step):
    headers = [(name, to_bytes(value)) for name, value in step["headers"]]
    return Record(step.get("topic", "t"), step.get("partition", 0), step.get("offset", 0), to_bytes(step["key"]),
                  to_bytes(step["body"]), headers, attempts=10)


def handler_of(step, consumer):
    def handler(cursor, _record):
        cursor.execute("INSERT INTO case_effect VALUES (%s)", (consumer,))
        if step.get("handler") == "fail":
            raise RuntimeError("no account")
        if step.get("handler") == "reject":
            raise Reject("never")

    return handler


def run(connection, consumer, case):
    inbox = Inbox(connection, consumer, guard=case.get("guard", False))
    verdicts = []
    for step in case["steps"]:
        if step.get("do") == "raise the mark":
            with connection, connection.cursor() as cursor:
                cursor.execute("UPDATE inbox_consumer SET low_water = '2030-01-01' WHERE consumer = %s", (consumer,))
        else:
            verdicts.append(inbox.process(to_record(step), handler_of(step, consumer)))
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM case_effect WHERE consumer = %s", (consumer,))
        return {"verdicts": verdicts, "effects": cursor.fetchone()[0]}


def main(uri, file):
    connection = psycopg2.connect(uri)
    cases = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
    print(json.dumps([run(connection, f"python case {n}", case) for n, case in enumerate(cases)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
