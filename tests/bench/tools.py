"""The C programs of tools/ as processes of a measurement."""

import contextlib
import json
import queue
import subprocess
import threading

from .scenario import BenchError, tool

READY_LIMIT_S = 30


class Receiver:
    """`receive`: a consumer that keeps a book. Use it in a with; end() returns the book."""

    def __init__(self, *words, first, count):
        argv = [tool("receive"), *words, "--first", first, "--count", count]
        self._process = subprocess.Popen([str(word) for word in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self._expect("ready", READY_LIMIT_S)

    def wait_complete(self, limit_s):
        """Wait until every expected task has arrived once."""
        self._expect("complete", limit_s)

    def end(self):
        """What was received so far."""
        self._process.stdin.close()
        line = self._line(READY_LIMIT_S)
        while line == "complete":
            line = self._line(READY_LIMIT_S)
        self._process.wait()
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(line.strip())
        self._lines.put(None)

    def _line(self, limit_s):
        try:
            line = self._lines.get(timeout=limit_s)
        except queue.Empty:
            raise BenchError(f"the receiver said nothing for {limit_s} s") from None
        if line is None:
            raise BenchError(f"the receiver ended with {self._process.wait()}")
        return line

    def _expect(self, word, limit_s):
        line = self._line(limit_s)
        if line != word:
            raise BenchError(f"the receiver said {line[:200]!r} instead of {word}")


def run_json(*argv):
    """A tool's JSON output."""
    done = subprocess.run([str(word) for word in argv], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{argv[0]} ended with {done.returncode}")
    return json.loads(done.stdout)


@contextlib.contextmanager
def background(*argv):
    """A tool beside what runs in the with; yields a function that waits for its end and returns its JSON output."""
    process = subprocess.Popen([str(word) for word in argv], stdout=subprocess.PIPE, text=True)

    def result():
        text = process.communicate()[0]
        if process.returncode:
            raise BenchError(f"{argv[0]} ended with {process.returncode}")
        return json.loads(text)
    try:
        yield result
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def judge(book, who):
    """Raise when the ledger does not come out even."""
    count = book["expected"]
    wrong = [text for bad, text in (
        (book["distinct"] != count, f"{count - book['distinct']} of {count} tasks never arrived"),
        (book["arrivals"] != book["distinct"], f"{book['arrivals'] - book['distinct']} copies too many"),
        (book["strangers"], f"{book['strangers']} messages that nobody sent"),
        (book["early"], f"{book['early']} tasks came early")) if bad]
    if wrong:
        raise BenchError(f"{who}: {'; '.join(wrong)}")
    return book
