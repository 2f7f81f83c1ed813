"""What receives tasks in a test: each copy becomes an Arrival in the ledger.

KafkaArrivals and AmqpArrivals are threads, HttpArrivals listens to an HttpReceiver.
Each may be given `answer`, a function of the Arrival that plays the consumer: what it
returns (a dict: a result record without id and attempt) is sent where the message
says that answers go.  None: no answer.
"""

import http.client
import json
import logging
import queue
import threading
import time
import urllib.parse

import pika
import pika.exceptions

from .ledger import Arrival, now_us
from .servers.http_receiver import Answer
from .servers.kafka_client import Client, Consumer, consume_all
from .wait import wait_until

# A broker that is down is what many tests are about: no stack trace for each try.
logging.getLogger("pika").setLevel(logging.CRITICAL)

AMQP_WINDOW = 500
CALLBACK_TRIES = 3
CALLBACK_THREADS = 4


def record_for(arrival, answer):
    """The result record of the contract, as bytes."""
    return json.dumps({"id": arrival.message_id, "attempt": arrival.attempt, **answer}).encode()


class _Thread:
    def __init__(self, name):
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.error = None           # what ended the thread too early

    def _run(self):
        try:
            self._follow()
        except BaseException as error:
            self.error = error
            raise

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        self._stopping.set()
        self._thread.join()
        if self.error:
            raise AssertionError(f"the consumer {self._thread.name} broke") from self.error

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


class KafkaArrivals(_Thread):
    """Follows topics from their beginning, over restarts of the broker."""

    def __init__(self, bootstrap, topics, ledger, answer=None):
        super().__init__(f"kafka arrivals of {', '.join(topics)}")
        self.records = []           # as they came, for tests that look at more
        self._ledger = ledger
        self._answer = answer
        self._bootstrap = bootstrap
        self._topics = topics
        self._consumer = Consumer(bootstrap, topics)
        self._producer = Client(bootstrap) if answer else None

    def drain(self, limit_s=60):
        """Wait until all that is in the topics has been taken.  Nothing produces any more."""
        total = sum(len(consume_all(self._bootstrap, topic)) for topic in self._topics)
        wait_until(lambda: self.error or len(self.records) >= total, limit_s, f"{total} records of Kafka",
                   detail=lambda: f"{len(self.records)} arrived")

    def _follow(self):
        while not self._stopping.is_set():
            batch = self._consumer.poll()
            answers = [self._take(record) for record in batch]
            self.records.extend(batch)
            self._send([answer for answer in answers if answer])
        self._consumer.close()
        if self._producer:
            self._producer.close()

    def _take(self, record):
        headers = {name.lower(): value.decode("latin-1") for name, value in record["headers"]}
        arrival = Arrival(headers.get("duebox-id", ""), int(headers.get("duebox-attempt", "0")),
                          record["value"], int(record["arrived"] * 1e6),
                          headers.get("duebox-route", ""), headers)
        self._ledger.arrive(arrival)
        answer = self._answer(arrival) if self._answer else None
        return answer and (headers["duebox-reply-to"], arrival.message_id, record_for(arrival, answer))

    def _send(self, answers):
        for topic in {topic for topic, _, _ in answers}:
            self._producer.produce_many(topic, [(key, value) for to, key, value in answers if to == topic])


class AmqpArrivals(_Thread):
    """Consumes queues, acknowledging by hand, over restarts of the broker.

    What the broker delivers a second time because our acknowledgement was lost is no
    copy of duebox's: it is told by the flag `redelivered` and left out."""

    def __init__(self, rabbitmq, queues, ledger, answer=None):
        super().__init__(f"amqp arrivals of {', '.join(queues)}")
        self._rabbitmq = rabbitmq
        self._queues = queues
        self._ledger = ledger
        self._answer = answer
        self._taken = set()         # (message id, attempt)

    def drain(self, limit_s=60):
        """Take all that is in the queues and stop.  Nothing publishes any more."""
        def empty():
            return self.error or not any(map(self._rabbitmq.queue_depth, self._queues))
        wait_until(empty, limit_s, f"empty queues {', '.join(self._queues)}")
        self.stop()                 # what was delivered and not acknowledged goes back
        for name in self._queues:
            for message in self._rabbitmq.get_all(name):
                self._note(message["properties"], message["body"], message["redelivered"])

    def _follow(self):
        while not self._stopping.is_set():
            try:
                self._consume()
            except (pika.exceptions.AMQPError, OSError):
                time.sleep(0.1)     # the broker is down: a pause between two tries, no result rests on it

    def _consume(self):
        with self._rabbitmq.connect() as connection:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=AMQP_WINDOW)
            for name in self._queues:
                channel.basic_consume(name, self._take)
            while not self._stopping.is_set():
                connection.process_data_events(time_limit=0.05)

    def _note(self, properties, body, redelivered):
        headers = {name.lower(): str(value) for name, value in (properties.headers or {}).items()}
        arrival = Arrival(properties.message_id or "", int(headers.get("duebox-attempt", 0)), body,
                          now_us(), headers.get("duebox-route", ""), headers)
        known = (arrival.message_id, arrival.attempt)
        if not (redelivered and known in self._taken):
            self._taken.add(known)
            self._ledger.arrive(arrival)
        return arrival

    def _take(self, channel, method, properties, body):
        arrival = self._note(properties, body, method.redelivered)
        answer = self._answer(arrival) if self._answer else None
        if answer:
            channel.basic_publish("", properties.reply_to, record_for(arrival, answer),
                                  pika.BasicProperties(correlation_id=properties.correlation_id,
                                                       delivery_mode=2))
        channel.basic_ack(method.delivery_tag)


class HttpArrivals:
    """Listens to a receiver.  The test's own rules say what is answered; callback() makes
    one that answers 202 and later posts the result to the task's callback URL."""

    def __init__(self, receiver, ledger):
        self.receiver = receiver
        self.refused = []           # (status, text) of callbacks that were not taken
        self._callbacks = queue.SimpleQueue()
        self._threads = []
        receiver.subscribe(lambda request: ledger.arrive(arrival_of(request)))

    def json(self, path, answer):
        """Answer requests below `path` with 200 and a result record in the body."""
        def respond(request):
            arrival = arrival_of(request)
            return Answer(200, record_for(arrival, answer(arrival)), {"Content-Type": "application/json"})
        self.receiver.on(path, respond)

    def callback(self, path, answer):
        """Answer requests below `path` with 202, and tell the result by callback."""
        def respond(request):
            arrival = arrival_of(request)
            self._callbacks.put((request.headers["duebox-callback"], record_for(arrival, answer(arrival))))
            return Answer(202)
        self.receiver.on(path, respond)
        while len(self._threads) < CALLBACK_THREADS:
            thread = threading.Thread(target=self._call_back, name="callbacks", daemon=True)
            thread.start()
            self._threads.append(thread)

    def drain(self):
        """Every request was noted when it came; callbacks that wait are made."""
        self.stop()

    def stop(self):
        for _ in self._threads:
            self._callbacks.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _call_back(self):
        connections = {}
        while (item := self._callbacks.get()) is not None:
            url, body = item
            # As CONSUMERS.md asks of everybody: a callback without an answer is repeated. A kept connection may be over.
            for _ in range(CALLBACK_TRIES):
                status, text = self._post(connections, urllib.parse.urlsplit(url), body)
                if status != 0:
                    break
            if status != 200:
                self.refused.append((status, text))
        for connection in connections.values():
            connection.close()

    @staticmethod
    def _post(connections, parts, body):
        """(status, text); 0 and the error if there was no answer."""
        connection = connections.setdefault(parts.netloc, http.client.HTTPConnection(parts.netloc, timeout=120))
        try:
            connection.request("POST", parts.path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            connections.pop(parts.netloc).close()
            return 0, repr(error)


def arrival_of(request):
    """The Arrival that an HTTP request of duebox is."""
    headers = request.headers
    return Arrival(headers.get("webhook-id", ""), int(headers.get("duebox-attempt", "0")), request.body,
                   int(request.arrived * 1e6), headers.get("duebox-route", ""), headers)
