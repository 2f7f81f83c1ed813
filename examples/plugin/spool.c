/* SPDX-License-Identifier: MIT
 *
 * spool.c - a sink that writes each task into a file of its own: <folder>/<message id>.<attempt>.
 *
 * A file appears under its name only when it is complete and on the disk, so whoever reads the folder never sees half a
 * task, and "delivered" means what it says. Applications choose message ids, and one may begin with a dot or end like
 * the name of another file: whatever else lies in the folder needs a name that no id can lead to.
 */
#include <duebox/plugin.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { SPOOL_OPEN = 64 };

struct spool_options {
  const char *folder;
};

struct spool {
  const struct duebox_host *host;
  const struct spool_options *options;
  const struct duebox_task *open[SPOOL_OPEN]; /* accepted, not completed: the host keeps them valid */
  size_t count;
  int wake; /* eventfd: ends a poll() that waits */
  bool closed;
};

static bool spool_create(void *inst, const struct duebox_instance_config *config, const struct duebox_host *host,
                         struct duebox_error *err) {
  struct spool *s = inst;
  s->host = host;
  s->options = config->options;
  s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (s->wake < 0)
    snprintf(err->text, sizeof(err->text), "cannot make an eventfd: %s; raise the limit of open files",
             strerror(errno));
  return s->wake >= 0;
}

static bool spool_start(void *inst, struct duebox_error *err) {
  const struct spool *s = inst;
  s->host->health(s->host->ctx, true, NULL); /* a folder needs no connection */
  return true;
}

static size_t spool_submit(void *inst, const struct duebox_task *const *tasks, size_t n) {
  struct spool *s = inst;
  size_t taken = 0;
  while (taken < n && s->count < SPOOL_OPEN && !s->closed)
    s->open[s->count++] = tasks[taken++];
  return taken;
}

static void write_headers(FILE *file, const struct duebox_task *task) {
  char due[32];
  time_t seconds = (time_t)(task->due_us / 1000000);
  struct tm tm;
  strftime(due, sizeof(due), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
  fprintf(file, "duebox-id: %s\nduebox-attempt: %u\nduebox-route: %s\nduebox-due: %s.%06dZ\n", task->message_id,
          task->attempt, task->route, due, (int)(task->due_us % 1000000));
  fprintf(file, "duebox-checkpoint: %.*s\n", (int)task->checkpoint.len, task->checkpoint.data);
  for (size_t i = 0; i < task->header_count; i++) {
    const struct duebox_header *header = &task->headers[i];
    fprintf(file, "%s: %.*s\n", header->name, (int)header->value.len, header->value.data);
  }
  fputc('\n', file);
}

/* True when the task is on the disk under its name; otherwise nothing of it can be seen, and errno says why. */
static bool write_task(const struct spool *s, const struct duebox_task *task) {
  char name[4096], part[4096 + 8];
  snprintf(name, sizeof(name), "%s/%s.%u", s->options->folder, task->message_id, task->attempt);
  snprintf(part, sizeof(part), "%s.part", name); /* not the name of any task: those end in a number */
  FILE *file = fopen(part, "we");
  if (!file)
    return false;
  write_headers(file, task);
  fwrite(task->payload.data, 1, task->payload.len, file);
  bool written = fflush(file) == 0 && !ferror(file) && fsync(fileno(file)) == 0;
  if (fclose(file) == 0 && written && rename(part, name) == 0)
    return true;
  remove(part);
  return false;
}

static void complete(struct spool *s, const struct duebox_task *task) {
  struct duebox_outcome outcome = DUEBOX_OUTCOME(.cls = DUEBOX_DELIVERED);
  if (strchr(task->message_id, '/'))
    outcome = DUEBOX_OUTCOME(.cls = DUEBOX_REJECTED, .error_class = "spool.name",
                             .message = "a message id with a slash cannot name a file");
  else if (!write_task(s, task))
    outcome = DUEBOX_OUTCOME(.cls = DUEBOX_UNAVAILABLE, .scope = DUEBOX_SCOPE_INSTANCE, .error_class = "spool.write",
                             .message = strerror(errno));
  s->host->health(s->host->ctx, outcome.cls != DUEBOX_UNAVAILABLE, outcome.message);
  s->host->complete(s->host->ctx, task->token, &outcome);
}

static void spool_poll(void *inst, int timeout_ms) {
  struct spool *s = inst;
  struct pollfd wake = {.fd = s->wake, .events = POLLIN};
  eventfd_t ignored;
  if (s->count == 0 && poll(&wake, 1, timeout_ms) > 0)
    eventfd_read(s->wake, &ignored);
  for (size_t i = 0; i < s->count; i++)
    complete(s, s->open[i]);
  s->count = 0;
}

static void spool_wakeup(void *inst) { eventfd_write(((struct spool *)inst)->wake, 1); }

static void spool_close(void *inst) { ((struct spool *)inst)->closed = true; }

static void spool_stop(void *inst, int deadline_ms) {
  struct spool *s = inst;
  const struct duebox_outcome unsent = DUEBOX_OUTCOME(.cls = DUEBOX_UNAVAILABLE, .error_class = "spool.stopped",
                                                      .message = "stopped before it was written");
  for (size_t i = 0; i < s->count; i++)
    s->host->complete(s->host->ctx, s->open[i]->token, &unsent);
  s->count = 0;
}

static void spool_destroy(void *inst) {
  const struct spool *s = inst;
  if (s->wake >= 0)
    close(s->wake);
}

static const struct duebox_option options[] = {
    {"folder", DUEBOX_OPT_STRING, NULL, 0, 0, DUEBOX_OPT_REQUIRED, offsetof(struct spool_options, folder), NULL,
     "where the files go; it must exist"},
    {.name = NULL},
};

static const struct duebox_sink_ops sink = {.struct_size = sizeof(sink), .submit = spool_submit};

DUEBOX_EXPORT extern const struct duebox_plugin duebox_plugin_v1;
const struct duebox_plugin duebox_plugin_v1 = {
    DUEBOX_PLUGIN_PREFIX,
    .capabilities = DUEBOX_CAP_SINK,
    .name = "spool",
    .version = "1.0.0",
    .summary = "writes each task into a file of its own",
    .options = options,
    .options_size = sizeof(struct spool_options),
    .instance_size = sizeof(struct spool),
    .create = spool_create,
    .start = spool_start,
    .poll = spool_poll,
    .wakeup = spool_wakeup,
    .close = spool_close,
    .stop = spool_stop,
    .destroy = spool_destroy,
    .sink = &sink,
};
