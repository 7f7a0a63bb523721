#!/usr/bin/env python3
"""Writes asymmetric objects straight into Kafka, for a gateway to take into their table.

    pip install confluent-kafka protobuf
    produce.py --brokers localhost:9092 --topic shop.ingest.Reading --format json|protobuf < objects.ndjson

Each line of standard input is one object; its `_id` is the record's key, so that all that is written under one key stays in
order. `row_pb2.py` and `ingest_pb2.py` are made from Sources/SluiceWire/Protos:

    protoc --proto_path=Sources/SluiceWire/Protos --python_out=Examples/Ingest row.proto ingest.proto
"""

import argparse
import json
import sys

from confluent_kafka import Producer


def protobuf(document):
    from ingest_pb2 import IngestObject

    def fill(value, plain):
        if plain is None:
            value.null = True
        elif isinstance(plain, bool):
            value.bool = plain
        elif isinstance(plain, int):
            value.int = plain
        elif isinstance(plain, float):
            value.double = plain
        elif isinstance(plain, str):
            value.string = plain
        elif isinstance(plain, list):
            value.list.SetInParent()
            for element in plain:
                fill(value.list.elements.add(), element)
        else:
            value.dictionary.SetInParent()
            for key, element in plain.items():
                fill(value.dictionary.entries[key], element)

    message = IngestObject()
    for name, plain in document.items():
        fill(message.properties[name], plain)
    return message.SerializeToString()


def main():
    arguments = argparse.ArgumentParser(description="Writes objects, one JSON line each, to a topic of a Sluice gateway.")
    arguments.add_argument("--brokers", required=True)
    arguments.add_argument("--topic", required=True, help="<app>.ingest.<Type>")
    arguments.add_argument("--format", choices=["json", "protobuf"], default="json")
    options = arguments.parse_args()

    # Without idempotence a lost answer writes a record twice; that is harmless here, as an object lands once by its key.
    producer = Producer({
        "bootstrap.servers": options.brokers,
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
    })
    failures = []

    def delivered(error, message):
        if error is not None:
            failures.append(f"{message.key()}: {error}")

    count = 0
    for line in sys.stdin:
        if not line.strip():
            continue
        document = json.loads(line)
        value = line.strip().encode() if options.format == "json" else protobuf(document)
        while True:
            try:
                producer.produce(
                    options.topic, key=str(document["_id"]), value=value, on_delivery=delivered,
                    headers={"content-type": f"application/{options.format}"})
                break
            except BufferError:
                producer.poll(0.1)  # The queue is full: wait for the brokers.
        producer.poll(0)
        count += 1
    producer.flush()
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{count - len(failures)} of {count} written", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
