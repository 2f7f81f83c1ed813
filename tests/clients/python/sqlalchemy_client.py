"""SQLAlchemy's mapper; see tests/clients/test_clients.py."""
from datetime import datetime, timedelta, timezone

from options import CONNECTION, ROUTES, main
import sqlalchemy
from sqlalchemy import BigInteger, Column, Integer, LargeBinary, String, column, create_engine, delete, update
from sqlalchemy.dialects.mysql import DATETIME
from sqlalchemy.engine import URL
from sqlalchemy.orm import Session, declarative_base
from sqlalchemy.types import TypeDecorator

Base = declarative_base()


# [due_at]
class UtcDateTime(TypeDecorator):
    """Aware times in the application, UTC without a zone in the table."""
    impl = DATETIME(fsp=6)
    cache_ok = True

    def process_bind_param(self, value, dialect):
        return value and value.astimezone(timezone.utc).replace(tzinfo=None)

    def process_result_value(self, value, dialect):
        return value and value.replace(tzinfo=timezone.utc)


class Task(Base):
    __tablename__ = "outbox"
    id = Column(BigInteger, primary_key=True)
    route = Column(String(64), nullable=False)
    task_key = Column(String(255), nullable=False, default="")
    payload = Column(LargeBinary, nullable=False)
    delay_ms = Column(BigInteger, nullable=False, default=0)
    due_at = Column(UtcDateTime)        # None: due after delay_ms
    priority = Column(Integer, nullable=False, default=5)
# [end]


DRIVER = "mysql+pymysql" if sqlalchemy.__version__.startswith("1.") else "mariadb+pymysql"
engine = create_engine(URL.create(DRIVER, CONNECTION["user"], CONNECTION["password"], CONNECTION["host"],
                                  CONNECTION["port"], CONNECTION["database"]))


def insert(key):
    if CONNECTION["user"] == "app":
        # [insert only]
        Task.__table__.implicit_returning = False     # the id comes from LAST_INSERT_ID(), which needs no right
        # [end]
    with Session(engine) as session:
        # [delay]
        task = Task(route=ROUTES.delay, task_key=key, payload=b'{"order": 17}', delay_ms=30 * 60 * 1000)
        session.add(task)
        # [use due_at]
        at = Task(route=ROUTES.at, task_key=key, payload=b'{"order": 17}',
                  due_at=datetime.now(timezone.utc) + timedelta(minutes=30))
        session.add(at)
        # [end]
        null = Task(route=ROUTES.null, task_key=key, payload=b"{}", delay_ms=1800000, due_at=None)
        session.add(null)
        session.flush()
        ids = [task.id, at.id, null.id]
        session.commit()
    return ids


def cancel(key):
    waiting = column("state") == "scheduled"        # no column of Task, so that an insert does not name it
    with Session(engine) as session:
        # [cancel]
        done = session.execute(delete(Task).where(Task.task_key == key, Task.route == ROUTES.delay, waiting)
                               .execution_options(synchronize_session=False))
        # [end]
        moved = session.execute(update(Task).where(Task.task_key == key, Task.route == ROUTES.at, waiting)
                                .values(due_at=datetime.now(timezone.utc) + timedelta(minutes=40))
                                .execution_options(synchronize_session=False))
        session.commit()
    return [done.rowcount, moved.rowcount]


main(insert, cancel)
