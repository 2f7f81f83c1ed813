/* SPDX-License-Identifier: MIT */
#include "cli/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/way.h"

enum { LISTENS = 10, LINE_MAX_BYTES = 512 }; /* TCP_LISTEN, and more than a line of these files has */

struct address {
  struct in6_addr ip; /* IPv4 as ::ffff:a.b.c.d */
  unsigned port;
};

struct entry {
  struct address local, remote;
  unsigned state, uid;
};

static bool is_v4(const struct address *at) { return IN6_IS_ADDR_V4MAPPED(&at->ip); }

static void map_v4(struct address *at, uint32_t v4) {
  at->ip = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
  memcpy(&at->ip.s6_addr[12], &v4, sizeof v4);
}

static bool parse_end(struct listener_end end, struct address *out) {
  struct in_addr v4;
  out->port = end.port;
  if (inet_pton(AF_INET6, end.ip, &out->ip) == 1)
    return true;
  if (inet_pton(AF_INET, end.ip, &v4) != 1)
    return false;
  map_v4(out, v4.s_addr);
  return true;
}

static bool is_loopback(const struct address *at) {
  return is_v4(at) ? at->ip.s6_addr[12] == 127 : IN6_IS_ADDR_LOOPBACK(&at->ip);
}

/* Words of the address as this machine reads them from memory. */
static bool parse_hex(const char *hex, struct address *out) {
  enum { V4 = 8, V6 = 32, WORD = 8 };
  size_t len = strlen(hex);
  uint32_t words[4] = {0};
  if (len != V4 && len != V6)
    return false;
  for (size_t i = 0; i < len / WORD; i++) {
    char word[WORD + 1], *end;
    memcpy(word, hex + i * WORD, WORD);
    word[WORD] = '\0';
    words[i] = (uint32_t)strtoul(word, &end, 16);
    if (end != word + WORD)
      return false;
  }
  if (len == V4)
    map_v4(out, words[0]);
  else
    memcpy(&out->ip, words, sizeof out->ip);
  return true;
}

/* "sl: local:port remote:port state tx:rx tr:when retransmits uid ..", as proc(5) has it. */
static bool parse_line(char *line, struct entry *out) {
  enum { SLOT, LOCAL, LOCAL_PORT, REMOTE, REMOTE_PORT, STATE, UID = 11, FIELDS };
  char *field[FIELDS], *rest = NULL;
  size_t n = 0;
  for (char *p = strtok_r(line, " :", &rest); p && n < FIELDS; p = strtok_r(NULL, " :", &rest))
    field[n++] = p;
  if (n < FIELDS || !parse_hex(field[LOCAL], &out->local) || !parse_hex(field[REMOTE], &out->remote))
    return false;
  out->local.port = (unsigned)strtoul(field[LOCAL_PORT], NULL, 16);
  out->remote.port = (unsigned)strtoul(field[REMOTE_PORT], NULL, 16);
  out->state = (unsigned)strtoul(field[STATE], NULL, 16);
  out->uid = (unsigned)strtoul(field[UID], NULL, 10);
  return true;
}

static bool is_same(const struct address *a, const struct address *b) {
  return a->port == b->port && memcmp(&a->ip, &b->ip, sizeof a->ip) == 0;
}

enum fit { FITS_NOT, FITS_ALL, FITS_ALL_OF_V4, FITS };

/* The kernel gives a connection to the listener that fits best: :: takes what comes to any address, 0.0.0.0 to IPv4. */
static enum fit fit(const struct address *at, const struct address *peer) {
  struct address v4 = *at;
  map_v4(&v4, INADDR_ANY);
  if (at->port != peer->port)
    return FITS_NOT;
  if (is_same(at, peer))
    return FITS;
  if (IN6_IS_ADDR_UNSPECIFIED(&at->ip))
    return FITS_ALL;
  return is_v4(peer) && is_same(at, &v4) ? FITS_ALL_OF_V4 : FITS_NOT;
}

struct search {
  struct address peer, self;
  uid_t accepted, listens; /* root while nobody is found */
  enum fit best;
};

/* A connection that is not accepted yet is in the file as root's, so that whoever listens counts as well. */
static void judge(struct search *search, const struct entry *entry) {
  if (entry->state != LISTENS) {
    if (is_same(&entry->local, &search->peer) && is_same(&entry->remote, &search->self))
      search->accepted = entry->uid;
  } else if (fit(&entry->local, &search->peer) > search->best) {
    search->best = fit(&entry->local, &search->peer);
    search->listens = entry->uid;
  }
}

static void read_entries(const char *file, struct search *search) {
  char line[LINE_MAX_BYTES];
  struct entry entry;
  FILE *in = fopen(file, "re");
  while (in && fgets(line, sizeof line, in))
    if (parse_line(line, &entry))
      judge(search, &entry);
  if (in)
    fclose(in);
}

bool listener_is_strange(struct listener_end peer, struct listener_end self, uid_t owner, uid_t *stranger) {
  struct search search = {0};
  if (!parse_end(peer, &search.peer) || !is_loopback(&search.peer) || !parse_end(self, &search.self))
    return false;
  read_entries("/proc/net/tcp", &search);
  read_entries("/proc/net/tcp6", &search);
  bool strange = !way_is_ours(search.accepted) && search.accepted != owner;
  *stranger = strange ? search.accepted : search.listens;
  return strange || (!way_is_ours(search.listens) && search.listens != owner);
}
