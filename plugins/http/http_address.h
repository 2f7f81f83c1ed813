/* SPDX-License-Identifier: MIT
 *
 * http_address.h - which network addresses a hook may be called at (server-side request forgery, SSRF).
 *
 * Pure: judges the binary address that the socket is about to connect to, after name resolution, so that no spelling of
 * a URL (2130706433, 0x7f.1, a name that resolves to 127.0.0.1) gets around it. Resolves nothing, opens nothing.
 */
#ifndef PLUGINS_HTTP_ADDRESS_H
#define PLUGINS_HTTP_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <duebox/option.h>

#define HTTP_ADDRESS_TEXT 64 /* room for any address as text */

enum http_address_class {
  HTTP_ADDRESS_PUBLIC = 0, /* globally reachable */
  HTTP_ADDRESS_LOOPBACK,   /* 127/8, ::1 */
  HTTP_ADDRESS_PRIVATE,    /* RFC 1918, RFC 6598 (carrier-grade NAT), RFC 4193 (unique local) */
  HTTP_ADDRESS_LINK_LOCAL, /* 169.254/16 with the clouds' metadata services, fe80::/10 */
  HTTP_ADDRESS_SPECIAL,    /* multicast, documentation, translation, reserved and everything unallocated */
};

enum http_address_verdict {
  HTTP_ADDRESS_ALLOWED = 0,
  HTTP_ADDRESS_DENIED,    /* not a public address, and not allowed by the policy */
  HTTP_ADDRESS_PLAINTEXT, /* an address of another host over http:// without allow_plaintext */
};

/* An address as 16 bytes; an IPv4 address in its mapped form ::ffff:a.b.c.d, so that a mapped one is the same. */
struct http_address {
  uint8_t bytes[16];
};

struct http_network {
  struct http_address base;
  unsigned bits; /* of the 128; an IPv4 prefix /n counts as /(96 + n) */
};

struct http_address_policy {
  bool allow_private;                  /* loopback and private, never link-local or special */
  bool allow_plaintext;                /* http:// to addresses that are not loopback */
  const struct http_network *networks; /* explicitly allowed, whatever their class */
  size_t network_count;
};

/* Takes the address out of a socket address; false for a family other than IPv4 and IPv6. */
__attribute__((warn_unused_result)) bool http_address_of(const struct sockaddr *from, struct http_address *out);

/* Reads "10.0.0.1" or "2001:db8::1" (no brackets, no zone, no port). */
__attribute__((warn_unused_result)) bool http_address_parse(const char *text, struct http_address *out);

/* Reads "10.1.0.0/16", "fd00::/8" or a single address. Host bits must be zero. */
__attribute__((warn_unused_result)) bool http_network_parse(const char *text, struct http_network *out);

/* Writes the address as text, IPv4 in dotted form. */
void http_address_print(const struct http_address *address, char out[HTTP_ADDRESS_TEXT]);

enum http_address_class http_address_classify(const struct http_address *address);
const char *http_address_class_name(enum http_address_class cls);

/* plain: the URL's scheme is http. */
enum http_address_verdict http_address_judge(const struct http_address_policy *policy,
                                             const struct http_address *address, bool plain);

#endif
