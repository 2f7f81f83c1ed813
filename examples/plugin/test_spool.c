/* SPDX-License-Identifier: MIT
 *
 * test_spool.c - the conformance kit against spool.so. The destination is a folder: it is taken off the network by
 * renaming it, and what has arrived is read back from its files.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/contract/sink_contract.h"

enum { HEADERS = 32, MESSAGES = 2000 };

struct spool_options { /* as in spool.c: what its option rows fill */
  const char *folder;
};

struct arrived {
  char *text; /* the file; names and values below point into it */
  struct duebox_header headers[HEADERS];
};

struct fixture {
  char folder[64], away[80];
  struct spool_options options;
  struct contract_message messages[MESSAGES];
  struct arrived arrived[MESSAGES];
  size_t count;
};

static void *open_fixture(void) {
  struct fixture *f = calloc(1, sizeof(*f));
  if (!f)
    return NULL;
  snprintf(f->folder, sizeof(f->folder), "/tmp/spool-XXXXXX");
  if (!mkdtemp(f->folder)) {
    free(f);
    return NULL;
  }
  snprintf(f->away, sizeof(f->away), "%s.away", f->folder);
  f->options.folder = f->folder;
  return f;
}

static void forget(struct fixture *f) {
  while (f->count > 0)
    free(f->arrived[--f->count].text);
}

/* "duebox-id: x\n...\n\nbody" to a message. */
static void parse(struct fixture *f, char *text, size_t len) {
  struct arrived *arrived = &f->arrived[f->count];
  struct contract_message *message = &f->messages[f->count++];
  *arrived = (struct arrived){.text = text};
  *message = (struct contract_message){.headers = arrived->headers};
  char *line = text;
  while (*line != '\n' && message->header_count < HEADERS) {
    char *end = strchr(line, '\n'), *value = strstr(line, ": ");
    *value = *end = '\0';
    value += 2;
    arrived->headers[message->header_count++] = (struct duebox_header){line, {value, (size_t)(end - value)}};
    if (strcmp(line, "duebox-id") == 0)
      message->id = value;
    if (strcmp(line, "duebox-attempt") == 0)
      message->attempt = (uint32_t)strtoul(value, NULL, 10);
    line = end + 1;
  }
  message->body = (struct duebox_bytes){line + 1, len - (size_t)(line + 1 - text)};
}

static void read_file(struct fixture *f, const char *folder, const char *name) {
  char path[512];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE *file = fopen(path, "re");
  char *text = NULL;
  size_t len = 0;
  FILE *copy = open_memstream(&text, &len);
  for (int c; (c = fgetc(file)) != EOF;)
    fputc(c, copy);
  fclose(file);
  fclose(copy);
  parse(f, text, len);
}

/* The folder itself and the one above end in no digit either. */
static bool is_complete(const char *name) { return isdigit((unsigned char)name[strlen(name) - 1]); }

static const struct contract_message *received(void *fixture, size_t *count) {
  struct fixture *f = fixture;
  struct dirent **entries;
  const char *folder = access(f->folder, F_OK) == 0 ? f->folder : f->away;
  int n = scandir(folder, &entries, NULL, alphasort);
  forget(f);
  for (int i = 0; i < n; i++) {
    if (is_complete(entries[i]->d_name) && f->count < MESSAGES)
      read_file(f, folder, entries[i]->d_name);
    free(entries[i]);
  }
  free(entries);
  *count = f->count;
  return f->messages;
}

static void reachable(void *fixture, bool up) {
  const struct fixture *f = fixture;
  if ((up ? rename(f->away, f->folder) : rename(f->folder, f->away)) != 0)
    perror("spool folder");
}

static void close_fixture(void *fixture) {
  struct fixture *f = fixture;
  struct dirent **entries;
  int n = scandir(f->folder, &entries, NULL, NULL);
  for (int i = 0; i < n; i++) {
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", f->folder, entries[i]->d_name);
    if (strcmp(entries[i]->d_name, ".") != 0 && strcmp(entries[i]->d_name, "..") != 0)
      remove(path);
    free(entries[i]);
  }
  free(entries);
  rmdir(f->folder);
  forget(f);
  free(f);
}

static const void *options(void *fixture) { return &((struct fixture *)fixture)->options; }
static const void *route(void *fixture) { return NULL; } /* it has no route options */

int main(void) {
  const struct sink_contract contract = {
      .module = PLUGIN_MODULE,
      .max_payload = 1 << 20,
      .unavailable_ms = 2000,
      .open = open_fixture,
      .close = close_fixture,
      .options = options,
      .route = route,
      .reachable = reachable,
      .received = received,
  };
  return sink_contract_run("spool", &contract);
}
