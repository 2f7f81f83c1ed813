/* SPDX-License-Identifier: MIT
 *
 * admin/minder.c - one thread that sleeps until the earliest deadline of any connection.
 *
 * The mutex guards the list and is never held while libmicrohttpd is called. A watch lives from the moment a connection
 * is accepted until just before its socket is closed, so the descriptor in it is never another's.
 */
#include "admin/minder.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log_repeat.h"

enum { CROWDED_US = 20 * 1000 }; /* how often to look for room while there is none */

struct watch {
  LIST_ENTRY(watch) link;
  int fd;
  struct in6_addr address; /* of the client; IPv4 as mapped */
  bool pushed;             /* out: it is being closed */
  bool in_way;             /* while room is made: it may have to go ... */
  size_t alike;            /* ... of so many of its address */
  bool begun;              /* the head of its request is here */
  int64_t turn_us;         /* when the client's turn began */
  int64_t close_us;        /* 0 = none */
  int64_t resume_us;       /* 0 = not delayed */
  struct MHD_Connection *delayed;
};

LIST_HEAD(watches, watch);

struct minder {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct watches watches; /* the newest first */
  int64_t wake_us;        /* when the thread looks again by itself; 0 = not before it is told */
  size_t crowd;           /* so many connections are none */
  size_t count, pushed;   /* connections, and how many of them are being closed to make room */
  uint64_t pushed_ever;
  bool releasing, stopping;
  pthread_t thread;
};

static void nearer(int64_t *next, int64_t at) {
  if (at != 0 && (*next == 0 || at < *next))
    *next = at;
}

/* Does what is due in one watch. Returns a connection to resume, or NULL. */
static struct MHD_Connection *mind(struct minder *minder, struct watch *watch, int64_t now) {
  if (watch->close_us != 0 && watch->close_us <= now) {
    shutdown(watch->fd, SHUT_RDWR);
    watch->close_us = 0;
  }
  if (watch->resume_us == 0 || (watch->resume_us > now && !minder->releasing))
    return NULL;
  watch->resume_us = 0;
  return watch->delayed;
}

/* Looks through all watches; *next is the earliest deadline left. Returns the first connection to resume. */
static struct MHD_Connection *mind_all(struct minder *minder, int64_t now, int64_t *next) {
  struct watch *watch;
  struct MHD_Connection *resume = NULL;
  *next = 0;
  LIST_FOREACH(watch, &minder->watches, link) {
    if (!resume)
      resume = mind(minder, watch, now);
    nearer(next, watch->close_us);
    nearer(next, watch->resume_us);
  }
  return resume;
}

static void sleep_until(struct minder *minder, int64_t at_us) {
  struct timespec until = {.tv_sec = (time_t)(at_us / 1000000), .tv_nsec = (long)(at_us % 1000000) * 1000};
  minder->wake_us = at_us;
  if (at_us == 0)
    pthread_cond_wait(&minder->changed, &minder->lock);
  else
    pthread_cond_timedwait(&minder->changed, &minder->lock, &until);
}

/* Tells the thread of a new deadline, if it would oversleep it. */
static void wake_for(struct minder *minder, int64_t at_us) {
  if (at_us != 0 && (minder->wake_us == 0 || at_us < minder->wake_us))
    pthread_cond_signal(&minder->changed);
}

/* A client's turn: it has still to send, or to read, or a guess of its is to be answered late. */
static bool is_idle(const struct watch *watch) { return watch->close_us != 0 || watch->resume_us != 0; }

/* Whether it keeps us waiting. What it has sent and nobody has read yet is no fault of its. */
static bool is_in_the_way(const struct watch *watch, int64_t now) {
  int unread = 0;
  int64_t patience_us = (watch->begun ? MINDER_BEGUN_MS : MINDER_QUIET_MS) * INT64_C(1000);
  if (watch->pushed || !is_idle(watch))
    return false;
  return watch->resume_us != 0 ||
         (now - watch->turn_us >= patience_us && (ioctl(watch->fd, FIONREAD, &unread) != 0 || unread == 0));
}

static bool is_alike(const struct watch *a, const struct watch *b) {
  return memcmp(&a->address, &b->address, sizeof(a->address)) == 0;
}

static bool is_crowded(const struct minder *minder) { return minder->count - minder->pushed > minder->crowd; }

/* Marks who is in the way, with how many there are of the same address. */
static void find_room(struct minder *minder, int64_t now) {
  struct watch *watch;
  const struct watch *other;
  LIST_FOREACH(watch, &minder->watches, link) {
    watch->in_way = is_in_the_way(watch, now);
    watch->alike = 0;
    if (watch->in_way)
      LIST_FOREACH(other, &minder->watches, link)
    watch->alike += !other->pushed && is_alike(watch, other);
  }
}

static void push_out(struct minder *minder, struct watch *victim) {
  struct watch *watch;
  victim->pushed = true;
  victim->in_way = false;
  minder->pushed++;
  minder->pushed_ever++;
  shutdown(victim->fd, SHUT_RDWR);
  if (victim->resume_us != 0)
    victim->resume_us = 1;
  LIST_FOREACH(watch, &minder->watches, link)
  watch->alike -= watch->in_way && is_alike(watch, victim);
}

/* Of the address with the most connections, the one that has been in the way longest. */
static bool push_one_out(struct minder *minder) {
  struct watch *watch, *victim = NULL;
  LIST_FOREACH(watch, &minder->watches, link)
  if (watch->in_way && (!victim || watch->alike >= victim->alike))
    victim = watch;
  if (victim)
    push_out(minder, victim);
  return victim != NULL;
}

/* As long as there are too many: those that were in nobody's way when the last one came may be by now. */
static int64_t make_room(struct minder *minder, int64_t now, int64_t next) {
  if (!is_crowded(minder))
    return next;
  find_room(minder, now);
  while (is_crowded(minder) && push_one_out(minder))
    ;
  nearer(&next, now + CROWDED_US);
  return next;
}

/* Without the lock while it writes: then (true) all is to be looked at anew, or a stop meanwhile would be slept over.
 */
static bool tell(struct minder *minder, uint64_t *told, struct log_repeat *repeat) {
  if (*told == minder->pushed_ever)
    return false;
  *told = minder->pushed_ever;
  pthread_mutex_unlock(&minder->lock);
  log_repeated(repeat, LOG_LEVEL_WARN, "DUEBOX-ADMIN-CROWD",
               "more than %zu connections are open; those that keep it waiting are closed to make room", minder->crowd);
  pthread_mutex_lock(&minder->lock);
  return true;
}

static void *run(void *arg) {
  struct minder *minder = arg;
  struct log_repeat repeat = {0};
  uint64_t told = 0;
  pthread_mutex_lock(&minder->lock);
  while (!minder->stopping) {
    int64_t next, now = clock_mono_us();
    if (tell(minder, &told, &repeat))
      continue;
    struct MHD_Connection *resume = mind_all(minder, now, &next);
    if (!resume) {
      sleep_until(minder, make_room(minder, now, next));
      continue;
    }
    pthread_mutex_unlock(&minder->lock);
    MHD_resume_connection(resume); /* suspended, so it cannot have gone meanwhile */
    pthread_mutex_lock(&minder->lock);
  }
  pthread_mutex_unlock(&minder->lock);
  return NULL;
}

bool minder_start(size_t crowd, struct minder **out, struct err *err) {
  struct minder *minder = calloc(1, sizeof(*minder));
  *out = NULL;
  if (!minder)
    return err_set(err, 0, "admin: out of memory");
  minder->crowd = crowd;
  LIST_INIT(&minder->watches);
  pthread_mutex_init(&minder->lock, NULL);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&minder->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  int rc = pthread_create(&minder->thread, NULL, run, minder);
  if (rc == 0) {
    *out = minder;
    return true;
  }
  pthread_cond_destroy(&minder->changed);
  pthread_mutex_destroy(&minder->lock);
  free(minder);
  return err_set(err, rc, "admin: cannot start a thread: %s; raise the limit of tasks (TasksMax, ulimit -u)",
                 strerror(rc));
}

void minder_release(struct minder *minder) {
  pthread_mutex_lock(&minder->lock);
  minder->releasing = true;
  pthread_cond_signal(&minder->changed);
  pthread_mutex_unlock(&minder->lock);
}

void minder_stop(struct minder **minder) {
  struct minder *m = *minder;
  if (!m)
    return;
  pthread_mutex_lock(&m->lock);
  m->stopping = true;
  pthread_cond_signal(&m->changed);
  pthread_mutex_unlock(&m->lock);
  pthread_join(m->thread, NULL);
  pthread_cond_destroy(&m->changed);
  pthread_mutex_destroy(&m->lock);
  free(m);
  *minder = NULL;
}

struct in6_addr minder_address(const struct sockaddr *address) {
  struct in6_addr out = IN6ADDR_ANY_INIT;
  if (address && address->sa_family == AF_INET6) {
    out = ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
  } else if (address && address->sa_family == AF_INET) {
    out.s6_addr[10] = out.s6_addr[11] = 0xff;
    memcpy(&out.s6_addr[12], &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
  }
  return out;
}

struct watch *minder_watch(struct minder *minder, int fd, const struct sockaddr *address) {
  struct watch *watch = calloc(1, sizeof(*watch));
  if (!watch)
    return NULL;
  watch->fd = fd;
  watch->address = minder_address(address);
  pthread_mutex_lock(&minder->lock);
  minder->count++;
  LIST_INSERT_HEAD(&minder->watches, watch, link);
  if (is_crowded(minder))
    pthread_cond_signal(&minder->changed);
  pthread_mutex_unlock(&minder->lock);
  return watch;
}

void minder_unwatch(struct minder *minder, struct watch *watch) {
  if (!watch)
    return;
  pthread_mutex_lock(&minder->lock);
  LIST_REMOVE(watch, link);
  minder->count--;
  minder->pushed -= watch->pushed;
  pthread_mutex_unlock(&minder->lock);
  free(watch);
}

void minder_arm(struct minder *minder, struct watch *watch, int64_t at_us) {
  if (!watch)
    return;
  pthread_mutex_lock(&minder->lock);
  watch->close_us = at_us;
  watch->turn_us = clock_mono_us();
  wake_for(minder, at_us);
  pthread_mutex_unlock(&minder->lock);
}

void minder_begun(struct minder *minder, struct watch *watch, bool begun) {
  if (!watch)
    return;
  pthread_mutex_lock(&minder->lock);
  watch->begun = begun;
  watch->turn_us = clock_mono_us();
  pthread_mutex_unlock(&minder->lock);
}

bool minder_is_crowded(struct minder *minder) {
  pthread_mutex_lock(&minder->lock);
  bool crowded = is_crowded(minder);
  pthread_mutex_unlock(&minder->lock);
  return crowded;
}

bool minder_delay(struct minder *minder, struct watch *watch, struct MHD_Connection *connection, int64_t at_us) {
  if (!watch)
    return false;
  pthread_mutex_lock(&minder->lock);
  bool taken = !minder->releasing;
  if (taken) {
    watch->delayed = connection;
    watch->resume_us = at_us;
    wake_for(minder, at_us);
  }
  pthread_mutex_unlock(&minder->lock);
  return taken;
}
