#!/usr/bin/env python3
"""A ledger kept from messages, in Python: ledger.py POSTGRES-URI KAFKA TOPIC [GROUP]

Table: CREATE TABLE ledger (account text PRIMARY KEY, cents bigint NOT NULL). Ends on SIGTERM, after the message at work.
"""

import json
import signal
import sys
import time

import psycopg2
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from outbox_inbox import Inbox, Record


def apply(cursor, record):
    transfer = json.loads(record.body)
    cursor.execute(
        "INSERT INTO ledger VALUES (%s, %s) ON CONFLICT (account) DO UPDATE SET cents = ledger.cents + excluded.cents",
        (transfer["account"], transfer["cents"]),
    )


def to_record(message):
    return Record(message.topic(), message.partition(), message.offset(), message.key(), message.value(),
                  message.headers() or [])


def settle(inbox, record, running):
    """Tries a record in place until it is settled. A real service pauses the partition and polls on meanwhile."""
    while running():
        try:
            inbox.process(record, apply)
            return True
        except psycopg2.OperationalError:
            raise  # the database is away: end, and let a supervisor start us again
        except Exception as error:  # the handler's
            print(f"{record.topic}-{record.partition}@{record.offset}: {error}", file=sys.stderr)
            record.attempts += 1
            time.sleep(min(10, 0.1 * 2 ** record.attempts))
    return False


def start(consumer, partitions):
    """At the committed offset; at the beginning where nothing was ever committed. What Kafka has deleted unread is an error."""
    for partition in consumer.committed(partitions, timeout=30):
        if partition.error:
            raise KafkaException(partition.error)
        if partition.offset < 0:
            partition.offset = OFFSET_BEGINNING
        consumer.incremental_assign([partition])


def judge(error):
    """Ends the program where a person must look: its supervisor shows that, and nothing is passed over meanwhile."""
    if error.fatal() or error.code() == KafkaError._AUTO_OFFSET_RESET:
        raise KafkaException(error)
    print(f"kafka: {error}", file=sys.stderr)


def maintain(inbox):
    try:
        inbox.maintain()
    except psycopg2.Error as error:
        if inbox.connection.closed:
            raise
        print(f"upkeep: {error}", file=sys.stderr)  # tried again in an hour


def main(uri, kafka, topic, group="ledger"):
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    inbox = Inbox(psycopg2.connect(uri), group)
    consumer = Consumer({
        "bootstrap.servers": kafka, "group.id": group, "enable.auto.commit": False, "enable.auto.offset.store": False,
        "isolation.level": "read_committed", "auto.offset.reset": "error",
        "partition.assignment.strategy": "cooperative-sticky",
    })
    consumer.subscribe([topic], on_assign=start)
    upkeep_at = time.monotonic()
    while not stop:
        if time.monotonic() >= upkeep_at:
            maintain(inbox)
            upkeep_at = time.monotonic() + 3600
        message = consumer.poll(0.2)
        if message is None:
            continue
        if message.error():
            judge(message.error())
            continue
        if settle(inbox, to_record(message), lambda: not stop):  # committed in the database: now the offset may move
            consumer.commit(offsets=[TopicPartition(message.topic(), message.partition(), message.offset() + 1)],
                            asynchronous=True)
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
