"""A Kafka client for tests: librdkafka through ctypes.

A JVM per command costs a second and kcat's JSON cannot carry any bytes, so the
library that duebox links anyway is called directly.  Only what tests need:
create topics, produce, read a topic to its end, follow topics while something
else runs.

A record is a dict: topic, partition, offset, key, value (bytes or None),
headers (list of (name, bytes or None), in the order on the wire), timestamp
(milliseconds, None where absent) and arrived (local time.time()).
"""

import ctypes
import functools
import threading
import time
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_ssize_t, c_void_p

from ..wait import wait_until

# From rdkafka.h.
PRODUCER, CONSUMER = 0, 1
VTYPE_TOPIC, VTYPE_PARTITION, VTYPE_VALUE, VTYPE_KEY = 1, 3, 4, 5
VTYPE_MSGFLAGS, VTYPE_HEADER = 7, 9
MSG_F_COPY = 2
PARTITION_UNASSIGNED = -1
OFFSET_BEGINNING, OFFSET_END = -2, -1
ERR_QUEUE_FULL, ERR_PARTITION_EOF = -184, -191
CONF_OK = 0
BROKERS_OWN = -1        # the replication factor that the broker's configuration says

POLL_MS = 50
BATCH = 1000


class KafkaError(RuntimeError):
    """An error of librdkafka, in its own words."""


class _Message(ctypes.Structure):
    _fields_ = [("err", c_int), ("rkt", c_void_p), ("partition", c_int32),
                ("payload", c_void_p), ("len", c_size_t),
                ("key", c_void_p), ("key_len", c_size_t),
                ("offset", c_int64), ("private", c_void_p)]


class _Memory(ctypes.Structure):
    _fields_ = [("ptr", c_void_p), ("size", c_size_t)]


class _Header(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_void_p), ("size", c_ssize_t)]


class _VuUnion(ctypes.Union):
    _fields_ = [("cstr", c_char_p), ("i", c_int), ("i32", c_int32),
                ("mem", _Memory), ("header", _Header), ("pad", ctypes.c_char * 64)]


class _Vu(ctypes.Structure):
    _fields_ = [("vtype", c_int), ("u", _VuUnion)]


class _MetadataPartition(ctypes.Structure):
    _fields_ = [("id", c_int32), ("err", c_int), ("leader", c_int32),
                ("replica_cnt", c_int), ("replicas", c_void_p),
                ("isr_cnt", c_int), ("isrs", c_void_p)]


class _MetadataTopic(ctypes.Structure):
    _fields_ = [("topic", c_char_p), ("partition_cnt", c_int),
                ("partitions", POINTER(_MetadataPartition)), ("err", c_int)]


class _Metadata(ctypes.Structure):
    _fields_ = [("broker_cnt", c_int), ("brokers", c_void_p),
                ("topic_cnt", c_int), ("topics", POINTER(_MetadataTopic)),
                ("orig_broker_id", c_int32), ("orig_broker_name", c_char_p)]


_DELIVERY_CB = ctypes.CFUNCTYPE(None, c_void_p, POINTER(_Message), c_void_p)

# Name without rd_kafka_: type of the result, types of the arguments.
_PROTOTYPES = """
conf_new: p
conf_set: i p s s p z
conf_set_dr_msg_cb: - p p
conf_destroy: - p
new: p i p p z
destroy: - p
err2str: s i
poll: i p i
flush: i p i
produceva: p p p z
error_code: i p
error_destroy: - p
error_string: s p
init_transactions: p p i
begin_transaction: p p
abort_transaction: p p i
topic_new: p p s p
topic_name: s p
topic_destroy: - p
metadata: i p i p p i
metadata_destroy: - p
queue_new: p p
queue_destroy: - p
queue_poll: p p i
queue_get_consumer: p p
event_error: i p
event_destroy: - p
NewTopic_new: p s i i p z
NewTopic_set_config: i p s s
NewTopic_destroy: - p
CreateTopics: - p p z p p
event_CreateTopics_result: p p
CreateTopics_result_topics: p p p
DeleteTopic_new: p s
DeleteTopic_destroy: - p
DeleteTopics: - p p z p p
event_DeleteTopics_result: p p
DeleteTopics_result_topics: p p p
topic_result_error: i p
topic_result_error_string: s p
topic_partition_list_new: p i
topic_partition_list_add: p p s l
topic_partition_list_set_offset: i p s l q
topic_partition_list_destroy: - p
assign: i p p
poll_set_consumer: i p
consumer_close: i p
consume_batch_queue: n p i p z
consumer_poll: m p i
message_destroy: - p
message_headers: i p p
message_timestamp: q p p
header_get_all: i p z p p p
"""

_C_TYPES = {"p": c_void_p, "s": c_char_p, "i": c_int, "l": c_int32, "q": c_int64,
            "z": c_size_t, "n": c_ssize_t, "m": POINTER(_Message), "-": None}


@functools.cache
def _library():
    library = ctypes.CDLL("librdkafka.so.1")
    for line in _PROTOTYPES.strip().splitlines():
        name, types = line.split(":")
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, *function.argtypes = [_C_TYPES[letter] for letter in types.split()]
    return library


def _check(code):
    if code:
        raise KafkaError(_library().rd_kafka_err2str(code).decode())


def _bytes(text):
    return text.encode() if isinstance(text, str) else text


class _Handle:
    """One rd_kafka_t; close() or a with statement ends it."""

    def __init__(self, kind, options, on_delivery=None):
        self._rk = _library()
        why = ctypes.create_string_buffer(512)
        conf = self._rk.rd_kafka_conf_new()
        # A broker that is down is what many tests are about: no log lines for
        # it, and no long pauses before it is tried again.
        defaults = {"log_level": "0", "reconnect.backoff.ms": "20",
                    "reconnect.backoff.max.ms": "200",
                    "topic.metadata.refresh.fast.interval.ms": "50"}
        for name, value in {**defaults, **options}.items():
            if self._rk.rd_kafka_conf_set(conf, name.encode(), str(value).encode(),
                                          why, len(why)) != CONF_OK:
                self._rk.rd_kafka_conf_destroy(conf)
                raise KafkaError(why.value.decode())
        if on_delivery:
            self._rk.rd_kafka_conf_set_dr_msg_cb(conf, on_delivery)
        self._handle = self._rk.rd_kafka_new(kind, conf, why, len(why))
        if not self._handle:
            self._rk.rd_kafka_conf_destroy(conf)
            raise KafkaError(why.value.decode())

    def close(self):
        if self._handle:
            self._rk.rd_kafka_destroy(self._handle)
            self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _metadata(self, topic=None, limit_s=20):
        """(brokers, {topic: {partition: number of the broker that leads it}}), without partitions that have none"""
        rkt = self._rk.rd_kafka_topic_new(self._handle, topic.encode(), None) if topic else None
        answer = POINTER(_Metadata)()
        try:
            _check(self._rk.rd_kafka_metadata(self._handle, 0 if topic else 1, rkt,
                                              byref(answer), int(limit_s * 1000)))
            found = answer.contents
            topics = {}
            for one in found.topics[:found.topic_cnt]:
                led = {p.id: p.leader for p in one.partitions[:one.partition_cnt] if p.leader >= 0}
                if not one.err:
                    topics[one.topic.decode()] = led
            brokers = found.broker_cnt
            self._rk.rd_kafka_metadata_destroy(answer)
            return brokers, topics
        finally:
            if rkt:
                self._rk.rd_kafka_topic_destroy(rkt)


class Client(_Handle):
    """Topics and production."""

    def __init__(self, bootstrap, **options):
        self._failures = []
        self._callback = _DELIVERY_CB(self._delivered)
        super().__init__(PRODUCER, {"bootstrap.servers": bootstrap, "linger.ms": 0,
                                    "acks": "all", **options}, self._callback)

    def brokers(self, limit_s=2):
        """Number of brokers in a metadata answer; KafkaError where there is none."""
        return self._metadata(limit_s=limit_s)[0]

    def topics(self):
        """{topic: number of partitions that have a leader}"""
        return {topic: len(led) for topic, led in self._metadata()[1].items()}

    def partitions(self, topic):
        """Number of partitions of `topic` that have a leader; 0 where there is no topic."""
        return len(self._metadata(topic)[1].get(topic, {}))

    def leader(self, topic, partition):
        """Number of the broker that leads a partition."""
        return self._metadata(topic)[1][topic][partition]

    def create_topic(self, topic, partitions=4, config=None, limit_s=30):
        """Create a topic and wait until each partition has a leader."""
        wait_until(lambda: self._create_topic(topic, partitions, config or {}, limit_s), limit_s,
                   f"a broker that takes topic {topic}")
        wait_until(lambda: self.partitions(topic) == partitions, limit_s,
                   f"{partitions} partitions of topic {topic} to have leaders", ignore=KafkaError)

    def _create_topic(self, topic, partitions, config, limit_s):
        """Whether it was created; not yet where the brokers' last sign of life is too old for the controller."""
        why = ctypes.create_string_buffer(512)
        new = self._rk.rd_kafka_NewTopic_new(topic.encode(), partitions, BROKERS_OWN, why, len(why))
        if not new:
            raise KafkaError(why.value.decode())
        for name, value in config.items():
            self._rk.rd_kafka_NewTopic_set_config(new, name.encode(), str(value).encode())
        try:
            self._administer("CreateTopics", new, self._rk.rd_kafka_NewTopic_destroy, limit_s)
        except KafkaError as error:
            if "currently fenced" not in str(error):
                raise
            return False
        return True

    def delete_topic(self, topic, limit_s=30):
        old = self._rk.rd_kafka_DeleteTopic_new(topic.encode())
        self._administer("DeleteTopics", old, self._rk.rd_kafka_DeleteTopic_destroy, limit_s)

    def produce(self, topic, key=None, value=b"", headers=(), partition=PARTITION_UNASSIGNED):
        """Produce one record and wait until the broker has confirmed it."""
        self.produce_many(topic, [(key, value, headers)], partition)

    def produce_many(self, topic, records, partition=PARTITION_UNASSIGNED, limit_s=60):
        """Produce (key, value) or (key, value, headers) tuples; wait for all confirms."""
        self._failures.clear()
        for record in records:
            while self._enqueue(topic, partition, *record) == ERR_QUEUE_FULL:
                self._rk.rd_kafka_poll(self._handle, POLL_MS)
        _check(self._rk.rd_kafka_flush(self._handle, int(limit_s * 1000)))
        if self._failures:
            raise KafkaError(f"{len(self._failures)} records of {topic} were not confirmed: "
                             + self._rk.rd_kafka_err2str(self._failures[0]).decode())

    def _enqueue(self, topic, partition, key, value, headers=()):
        # Named here, these bytes live until produceva has copied them.
        topic, key, value = topic.encode(), _bytes(key), _bytes(value)
        pairs = headers.items() if isinstance(headers, dict) else headers
        pairs = [(name.encode(), _bytes(content)) for name, content in pairs]
        words = [_Vu(VTYPE_TOPIC, _VuUnion(cstr=topic)),
                 _Vu(VTYPE_PARTITION, _VuUnion(i32=partition)),
                 _Vu(VTYPE_MSGFLAGS, _VuUnion(i=MSG_F_COPY)),
                 _Vu(VTYPE_VALUE, _VuUnion(mem=_Memory(*_span(value)))),
                 _Vu(VTYPE_KEY, _VuUnion(mem=_Memory(*_span(key))))]
        words += [_Vu(VTYPE_HEADER, _VuUnion(header=_Header(name, *_span(content))))
                  for name, content in pairs]
        error = self._rk.rd_kafka_produceva(self._handle, (_Vu * len(words))(*words), len(words))
        code = self._rk.rd_kafka_error_code(error)      # 0 for no error
        self._rk.rd_kafka_error_destroy(error)
        if code != ERR_QUEUE_FULL:
            _check(code)
        return code

    def _delivered(self, _rk, message, _opaque):
        if message.contents.err:
            self._failures.append(message.contents.err)

    def _administer(self, verb, subject, destroy, limit_s):
        queue = self._rk.rd_kafka_queue_new(self._handle)
        event = None
        try:
            getattr(self._rk, f"rd_kafka_{verb}")(
                self._handle, byref(c_void_p(subject)), 1, None, queue)
            event = self._rk.rd_kafka_queue_poll(queue, int(limit_s * 1000))
            if not event:
                raise KafkaError(f"{verb}: no answer in {limit_s} s")
            _check(self._rk.rd_kafka_event_error(event))
            result = getattr(self._rk, f"rd_kafka_event_{verb}_result")(event)
            count = c_size_t()
            outcomes = getattr(self._rk, f"rd_kafka_{verb}_result_topics")(result, byref(count))
            outcome = ctypes.cast(outcomes, POINTER(c_void_p))[0]
            if self._rk.rd_kafka_topic_result_error(outcome):
                raise KafkaError(self._rk.rd_kafka_topic_result_error_string(outcome).decode())
        finally:
            if event:
                self._rk.rd_kafka_event_destroy(event)
            self._rk.rd_kafka_queue_destroy(queue)
            destroy(subject)


class TransactionalProducer(Client):
    """A producer whose transaction is open from the start until abort() or commit(), and from begin()."""

    def __init__(self, bootstrap, name, limit_s=60):
        super().__init__(bootstrap, **{"transactional.id": name, "transaction.timeout.ms": 600000})
        self._limit_ms = limit_s * 1000
        self._do("init_transactions", self._limit_ms)
        self.begin()

    def begin(self):
        self._do("begin_transaction")

    def commit(self):
        self._do("commit_transaction", self._limit_ms)

    def abort(self):
        self._do("abort_transaction", self._limit_ms)

    def _do(self, verb, *words):
        error = getattr(self._rk, f"rd_kafka_{verb}")(self._handle, *words)
        if error:
            text = self._rk.rd_kafka_error_string(error).decode()
            self._rk.rd_kafka_error_destroy(error)
            raise KafkaError(f"{verb}: {text}")


class Consumer(_Handle):
    """Reads all partitions of some topics, outside of any consumer group."""

    def __init__(self, bootstrap, topics, *, from_beginning=True, **options):
        super().__init__(CONSUMER, {
            "bootstrap.servers": bootstrap, "group.id": "duebox-test", "enable.auto.commit": "false",
            "enable.partition.eof": "true", "fetch.wait.max.ms": 100, "fetch.error.backoff.ms": 50,
            **options})
        self._rk.rd_kafka_poll_set_consumer(self._handle)
        self._queue = self._rk.rd_kafka_queue_get_consumer(self._handle)
        self._batch = (POINTER(_Message) * BATCH)()
        self._topic_names = {}
        self.assigned = set()       # (topic, partition)
        self.at_end = set()         # those of them that were seen to end
        self._assign([topics] if isinstance(topics, str) else topics, from_beginning)

    def _assign(self, topics, from_beginning):
        offset = OFFSET_BEGINNING if from_beginning else OFFSET_END
        partitions = self._rk.rd_kafka_topic_partition_list_new(16)
        for topic in topics:
            led = wait_until(lambda: self._metadata(topic)[1].get(topic), 30,
                             f"topic {topic} to exist", ignore=KafkaError)
            for number in sorted(led):
                self.assigned.add((topic, number))
                self._rk.rd_kafka_topic_partition_list_add(partitions, topic.encode(), number)
                self._rk.rd_kafka_topic_partition_list_set_offset(
                    partitions, topic.encode(), number, offset)
        error = self._rk.rd_kafka_assign(self._handle, partitions)
        self._rk.rd_kafka_topic_partition_list_destroy(partitions)
        _check(error)

    def poll(self):
        """The records that are there, waiting at most some 50 ms for a first one."""
        first = self._rk.rd_kafka_consumer_poll(self._handle, POLL_MS)
        if not first:
            return []
        # Asked to wait, this call would wait for a whole batch: ask for what is there.
        count = self._rk.rd_kafka_consume_batch_queue(self._queue, 0, self._batch, BATCH)
        arrived = time.time()
        taken = (self._take(message, arrived) for message in [first, *self._batch[:max(count, 0)]])
        return [record for record in taken if record]

    def _take(self, pointer, arrived):
        message, record = pointer.contents, None
        if message.err == ERR_PARTITION_EOF:
            self.at_end.add((self._topic_name(message.rkt), message.partition))
        elif not message.err:           # a broker that is down is tried again
            record = self._record(pointer, message, arrived)
        self._rk.rd_kafka_message_destroy(pointer)
        return record

    def close(self):
        if self._handle:
            self._rk.rd_kafka_queue_destroy(self._queue)
            self._rk.rd_kafka_consumer_close(self._handle)
        super().close()

    def _record(self, pointer, message, arrived):
        timestamp = self._rk.rd_kafka_message_timestamp(pointer, None)
        return {"topic": self._topic_name(message.rkt),
                "partition": message.partition,
                "offset": message.offset,
                "key": _string_at(message.key, message.key_len),
                "value": _string_at(message.payload, message.len),
                "headers": self._headers(pointer),
                "timestamp": timestamp if timestamp >= 0 else None,
                "arrived": arrived}

    def _headers(self, pointer):
        headers, name, value, size = c_void_p(), c_char_p(), c_void_p(), c_size_t()
        found = []
        if self._rk.rd_kafka_message_headers(pointer, byref(headers)):
            return found
        while not self._rk.rd_kafka_header_get_all(headers, len(found), byref(name),
                                                   byref(value), byref(size)):
            found.append((name.value.decode(), _string_at(value.value, size.value)))
        return found

    def _topic_name(self, rkt):
        if rkt not in self._topic_names:
            self._topic_names[rkt] = self._rk.rd_kafka_topic_name(rkt).decode()
        return self._topic_names[rkt]


def consume_all(bootstrap, topic, limit_s=60):
    """All records of `topic`, by partition and offset, up to its present end."""
    records = []
    with Consumer(bootstrap, topic) as consumer:
        def at_end():
            while batch := consumer.poll():
                records.extend(batch)
            return consumer.at_end == consumer.assigned
        wait_until(at_end, limit_s, f"the end of topic {topic}")
    return sorted(records, key=lambda record: (record["partition"], record["offset"]))


class TailConsumer:
    """A thread that follows topics and notes when each record arrived here.

    `records` only grows, in the order of arrival, so that it may be read at any
    time.  The broker may be killed and restarted meanwhile.
    """

    def __init__(self, bootstrap, topics, *, from_beginning=True, **options):
        self.records = []
        self._consumer = Consumer(bootstrap, topics, from_beginning=from_beginning, **options)
        if not from_beginning:      # what is produced from now on must be seen
            wait_until(self._reached_end, 30, "the end of each partition to be known")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="kafka-tail", daemon=True)
        self._thread.start()

    def wait_count(self, count, limit_s):
        """Wait until at least `count` records are there; returns them all."""
        wait_until(lambda: len(self.records) >= count, limit_s, f"{count} records of Kafka",
                   detail=lambda: f"{len(self.records)} records arrived")
        return self.records

    def stop(self):
        if self._thread.is_alive():
            self._stopping.set()
            self._thread.join()
        self._consumer.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _reached_end(self):
        self.records.extend(self._consumer.poll())
        return self._consumer.at_end == self._consumer.assigned

    def _follow(self):
        while not self._stopping.is_set():
            self.records.extend(self._consumer.poll())


def _span(content):
    """Address and length of `content`, which the caller keeps alive."""
    return (None, 0) if content is None else (ctypes.cast(content, c_void_p), len(content))


def _string_at(address, size):
    return None if address is None else ctypes.string_at(address, size)
