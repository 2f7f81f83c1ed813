"""Calls side by side."""

import threading


def in_threads(*calls):
    """Run each call in a thread of its own; when all have ended, raise the first error."""
    errors = []

    def guarded(call):
        try:
            call()
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
