"""Exactly one effect per message, in Python: the SQL functions inbox_begin and inbox_park, and the few rules around them.

    inbox = Inbox(psycopg2.connect("postgresql:///bank"), "ledger")
    verdict = inbox.process(record, handler)      # handler(cursor, record) writes in the message's own transaction

Move Kafka's offset past a record only when process() has returned. It raises where the database is away or the handler
failed: nothing was written then, and the record is offered again, attempts + 1. One thread at a time.
"""

import contextlib
import dataclasses
import hashlib
import json
import re
import uuid

import psycopg2
from psycopg2 import errorcodes

FOREIGN_IDS = uuid.UUID("bd24c7d2-ea7c-5dad-806f-9ae0570cad62")  # foreign_id_namespace; never another
TRANSIENT = {
    errorcodes.SERIALIZATION_FAILURE,
    errorcodes.DEADLOCK_DETECTED,
    errorcodes.LOCK_NOT_AVAILABLE,
}


class Malformed(Exception):
    """No identity can be read from a record's headers."""


class Reject(Exception):
    """Raised by a handler: never; a person must look at this message."""


@dataclasses.dataclass
class Record:
    topic: str
    partition: int
    offset: int
    key: "bytes | None"
    body: "bytes | None"  # None: a tombstone, which is not an empty body
    headers: "list[tuple[str, bytes | None]]"
    attempts: int = 1


def payload_sha256(body):
    return hashlib.sha256(body).digest() if body is not None else bytes(32)


def read_identity(record):
    """The msg_id, the outbox-seq or None, and the source. The first of the three presets that is there decides."""
    for name, source_name, foreign in (
        ("outbox-id", "outbox-source", False),
        ("ce_id", "ce_source", True),
        ("id", None, True),
    ):
        values = [value for header, value in record.headers if header == name]
        if values:
            source = _last(record, source_name) or b""
            msg_id = _msg_id(name, values, source if source_name else record.topic.encode(), foreign)
            scheduled = _last(record, "outbox-due-at") is not None  # its number is lower than its place in the order
            seq = _number(_last(record, "outbox-seq")) if name == "outbox-id" and not scheduled else None
            return msg_id, seq, _text(source)
    raise Malformed("no header names it: none of outbox-id, ce_id, id")


def _last(record, name):
    values = [value for header, value in record.headers if header == name]
    return values[-1] if values else None


def _number(text):
    """As the library reads it: a 64-bit number in decimal digits, or none. It informs, and never stops a message."""
    digits = re.fullmatch(rb"(-?)0*([0-9]{1,19})", text or b"")
    number = int(digits[1] + digits[2]) if digits else None
    return number if digits and -(2**63) <= number < 2**63 else None


def _text(value):
    """What PostgreSQL takes as text; two values that differ still do."""
    return value.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


def _msg_id(name, values, source, foreign):
    if any(value != values[0] for value in values):
        raise Malformed(f"header {name} is there more than once, with different values")
    if not values[0]:
        raise Malformed(f"header {name} is null or empty")
    if re.fullmatch(rb"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", values[0]):
        return uuid.UUID(values[0].decode())
    if not foreign:
        raise Malformed(f"header {name} is no uuid")
    try:
        text = values[0].decode("utf-8")
        scope = source.decode("utf-8") + "\n"
    except UnicodeDecodeError:
        raise Malformed(f"header {name} is neither a uuid nor UTF-8 text") from None
    if "\0" in scope + text or len(values[0]) > 1024 or len(source) > 1024:
        raise Malformed(f"header {name} is no text, or longer than 1,024 bytes")
    return uuid.uuid5(FOREIGN_IDS, scope + text)


def _headers_json(record):
    return json.dumps([[_value(name.encode("utf-8", "surrogateescape")), _value(value)] for name, value in record.headers])


def _value(value):
    if value is None:
        return None
    try:
        text = value.decode("utf-8")
        if "\0" not in text:
            return text
    except UnicodeDecodeError:
        pass
    import base64

    return {"base64": base64.b64encode(value).decode()}


class InDoubt(psycopg2.OperationalError):
    """Whether the transaction is where it has to be is not known: offer the record again, and move no offset."""


class Inbox:
    def __init__(self, connection, consumer, guard=False, attempts_max=10, horizon=None):
        """`horizon`: an interval, how long it must remember: longer than a message can come again (docs/consumer.md).
        None: as it is known to the database, and 30 days where it is not."""
        self.connection, self.consumer = connection, consumer
        self.guard, self.attempts_max = guard, attempts_max
        connection.set_session(isolation_level="READ COMMITTED", autocommit=False)
        with connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT inbox_register(%(consumer)s, CASE WHEN %(horizon)s::interval IS NOT NULL THEN %(horizon)s::interval"
                " WHEN known.consumer IS NULL THEN interval '30 days' ELSE known.horizon END)"
                " FROM (SELECT) one LEFT JOIN inbox_consumer known ON known.consumer = %(consumer)s",
                {"consumer": consumer, "horizon": horizon},
            )

    def maintain(self):
        """The upkeep of processed_msgs, for once an hour: makes days ahead, forgets what no consumer must remember. Of
        several at once, one works; what it could not do now it does the next time."""
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute("SELECT busy, made, dropped, purged, waiting FROM inbox_maintain()")
            return cursor.fetchone()

    def process(self, record, handler):
        """Applies a fresh record; answers its verdict, or what became of it: failed, rejected, malformed."""
        try:
            identity = read_identity(record)
        except Malformed as wrong:
            with self._transaction() as cursor:
                self._park(cursor, record, None, "malformed", str(wrong))
            return "malformed"
        while True:
            try:
                with self._transaction() as cursor:
                    verdict = self._begin(cursor, record, identity)
                    if verdict == "fresh":
                        handler(cursor, record)
                    elif verdict in ("conflict", "expired", "parked"):
                        self._park(cursor, record, identity[0], verdict, "")
                return verdict
            except InDoubt:
                raise
            except psycopg2.Error as error:
                if error.pgcode in TRANSIENT:
                    continue
                if record.attempts < self.attempts_max or self.connection.closed:
                    raise
                return self._give_up(record, identity, "failed", str(error))
            except Reject as error:
                return self._give_up(record, identity, "rejected", str(error))
            except Exception as error:
                if record.attempts < self.attempts_max:
                    raise
                return self._give_up(record, identity, "failed", str(error))

    @contextlib.contextmanager
    def _transaction(self):
        """PostgreSQL answers a COMMIT that stopped waiting for its synchronous standby with a mere warning."""
        with self.connection, self.connection.cursor() as cursor:
            yield cursor
            del self.connection.notices[:]
        if self.connection.notices:
            raise InDoubt("the COMMIT is in doubt: " + self.connection.notices[-1].strip())

    def _begin(self, cursor, record, identity):
        msg_id, seq, source = identity
        cursor.execute(
            "SELECT inbox_begin(%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (self.consumer, str(msg_id), payload_sha256(record.body), record.topic, record.partition, record.offset,
             record.key, seq if self.guard else None, source),
        )
        return cursor.fetchone()[0]

    def _give_up(self, record, identity, verdict, error):
        """In a transaction of its own, since the handler's was rolled back; another copy may have come meanwhile."""
        with self._transaction() as cursor:
            begun = self._begin(cursor, record, (identity[0], None, ""))
            if begun == "fresh":
                self._park(cursor, record, identity[0], verdict, error)
                return verdict
            if begun in ("conflict", "expired", "parked"):
                self._park(cursor, record, identity[0], begun, error)
            return begun

    def _park(self, cursor, record, msg_id, verdict, error):
        error = _text(error.encode("utf-8", "backslashreplace"))
        cursor.execute(
            "SELECT inbox_park(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (self.consumer, str(msg_id) if msg_id else None, payload_sha256(record.body), record.topic,
             record.partition, record.offset, record.key, record.body, _headers_json(record), verdict, error,
             record.attempts),
        )
