"""Django's models; see tests/clients/test_clients.py."""
from datetime import timedelta

from options import CONNECTION, ROUTES, main
import django
from django.conf import settings

# [settings]
DATABASES = {"default": {"ENGINE": "django.db.backends.mysql", "HOST": CONNECTION["host"], "PORT": CONNECTION["port"],
                         "USER": CONNECTION["user"], "PASSWORD": CONNECTION["password"], "NAME": CONNECTION["database"]}}
USE_TZ = True       # Django then stores UTC, whatever TIME_ZONE is
# [end]
settings.configure(DATABASES=DATABASES, USE_TZ=USE_TZ, TIME_ZONE="Asia/Tokyo", INSTALLED_APPS=[])
django.setup()

from django.db import connection, models  # noqa: E402
from django.utils import timezone  # noqa: E402


# [due_at]
class Task(models.Model):
    id = models.BigAutoField(primary_key=True)
    route = models.CharField(max_length=64)
    task_key = models.CharField(max_length=255, default="")
    payload = models.BinaryField()
    delay_ms = models.PositiveBigIntegerField(default=0)
    due_at = models.DateTimeField(null=True)        # None: due after delay_ms

    class Meta:
        managed = False
        db_table = "outbox"
        # [end]
        app_label = "clients"


class Row(models.Model):
    """The columns that only a statement names, not an insert."""
    id = models.BigAutoField(primary_key=True)
    route = models.CharField(max_length=64)
    task_key = models.CharField(max_length=255)
    state = models.CharField(max_length=16)
    due_at = models.DateTimeField(null=True)
    first_due_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "outbox"
        app_label = "clients"


def insert(key):
    if CONNECTION["user"] == "app":
        # [insert only]
        connection.features.can_return_columns_from_insert = False  # the id comes from LAST_INSERT_ID(), without a right
        # [end]
    # [delay]
    task = Task.objects.create(route=ROUTES.delay, task_key=key, payload=b'{"order": 17}', delay_ms=30 * 60 * 1000)
    # [use due_at]
    at = Task.objects.create(route=ROUTES.at, task_key=key, payload=b'{"order": 17}',
                             due_at=timezone.now() + timedelta(minutes=30))
    # [end]
    null = Task.objects.create(route=ROUTES.null, task_key=key, payload=b"{}", delay_ms=1800000, due_at=None)
    return [task.pk, at.pk, null.pk]


def cancel(key):
    cancelled = Row.objects.filter(task_key=key, route=ROUTES.delay, state="scheduled").delete()[0]
    moved = Row.objects.filter(task_key=key, route=ROUTES.at, state="scheduled").update(
        due_at=timezone.now() + timedelta(minutes=40), first_due_at=None)
    return [cancelled, moved]


main(insert, cancel)
