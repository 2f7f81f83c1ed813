"""PyMySQL; see tests/clients/test_clients.py."""
from datetime import datetime, timedelta, timezone

from options import CONNECTION, ROUTES, main
import pymysql


def insert(key):
    connection = pymysql.connect(**CONNECTION)
    with connection.cursor() as cursor:
        # [delay]
        cursor.execute("INSERT INTO outbox (route, task_key, payload, delay_ms) VALUES (%s, %s, %s, %s)",
                       (ROUTES.delay, key, b'{"order": 17}', 30 * 60 * 1000))
        # [due_at]
        due_at = datetime.now(timezone.utc) + timedelta(minutes=30)
        cursor.execute("INSERT INTO outbox (route, task_key, payload, due_at) VALUES (%s, %s, %s, %s)",
                       (ROUTES.at, key, b'{"order": 17}', due_at.astimezone(timezone.utc).replace(tzinfo=None)))
        # [end]
        cursor.execute("INSERT INTO outbox (route, task_key, payload, due_at, delay_ms) VALUES (%s, %s, %s, NULL, 1800000)",
                       (ROUTES.null, key, b"{}"))
    connection.commit()
    return []


def cancel(key):
    connection = pymysql.connect(**CONNECTION)
    with connection.cursor() as cursor:
        cancelled = cursor.execute("DELETE FROM outbox WHERE task_key = %s AND route = %s AND state = 'scheduled'",
                                   (key, ROUTES.delay))
        moved = cursor.execute("UPDATE outbox SET due_at = due_at + INTERVAL 10 MINUTE, first_due_at = NULL"
                               " WHERE task_key = %s AND route = %s AND state = 'scheduled'", (key, ROUTES.at))
    connection.commit()
    return [cancelled, moved]


main(insert, cancel)
