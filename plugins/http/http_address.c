/* SPDX-License-Identifier: MIT */
#include "http_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define V4(a, b, c, d, n)                                                                                              \
  { {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}}, 96 + (n) }
#define V6(a, b, c, d, n)                                                                                              \
  { {{(a) >> 8, (a)&0xff, (b) >> 8, (b)&0xff, (c) >> 8, (c)&0xff, (d) >> 8, (d)&0xff}}, n }

/* First match wins. From the IANA special-purpose registries for IPv4 and IPv6 (RFC 6890 and its updates); for IPv6 the
 * rule is turned round: outside 2000::/3 nothing is globally reachable today, so nothing else is public. */
static const struct {
  struct http_network net;
  enum http_address_class cls;
} registry[] = {
    {V4(127, 0, 0, 0, 8), HTTP_ADDRESS_LOOPBACK},
    {V4(10, 0, 0, 0, 8), HTTP_ADDRESS_PRIVATE},
    {V4(100, 64, 0, 0, 10), HTTP_ADDRESS_PRIVATE}, /* carrier-grade NAT, RFC 6598 */
    {V4(172, 16, 0, 0, 12), HTTP_ADDRESS_PRIVATE},
    {V4(192, 168, 0, 0, 16), HTTP_ADDRESS_PRIVATE},
    {V4(169, 254, 0, 0, 16), HTTP_ADDRESS_LINK_LOCAL},
    {V4(0, 0, 0, 0, 8), HTTP_ADDRESS_SPECIAL},      /* "this network": Linux connects 0.0.0.0 to itself */
    {V4(192, 0, 0, 0, 24), HTTP_ADDRESS_SPECIAL},   /* IETF protocol assignments */
    {V4(192, 0, 2, 0, 24), HTTP_ADDRESS_SPECIAL},   /* documentation */
    {V4(192, 88, 99, 0, 24), HTTP_ADDRESS_SPECIAL}, /* 6to4 relay anycast */
    {V4(198, 18, 0, 0, 15), HTTP_ADDRESS_SPECIAL},  /* benchmarking */
    {V4(198, 51, 100, 0, 24), HTTP_ADDRESS_SPECIAL},
    {V4(203, 0, 113, 0, 24), HTTP_ADDRESS_SPECIAL},
    {V4(224, 0, 0, 0, 4), HTTP_ADDRESS_SPECIAL}, /* multicast */
    {V4(240, 0, 0, 0, 4), HTTP_ADDRESS_SPECIAL}, /* reserved, and broadcast */
    {V4(0, 0, 0, 0, 0), HTTP_ADDRESS_PUBLIC},
    {{{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, 128}, HTTP_ADDRESS_LOOPBACK},
    {V6(0xfc00, 0, 0, 0, 7), HTTP_ADDRESS_PRIVATE},
    {V6(0xfe80, 0, 0, 0, 10), HTTP_ADDRESS_LINK_LOCAL},
    {V6(0x2001, 0, 0, 0, 23), HTTP_ADDRESS_SPECIAL}, /* protocol assignments: Teredo, benchmarking, ORCHID */
    {V6(0x2001, 0xdb8, 0, 0, 32), HTTP_ADDRESS_SPECIAL},
    {V6(0x2002, 0, 0, 0, 16), HTTP_ADDRESS_SPECIAL}, /* 6to4: holds any IPv4 address */
    {V6(0x3fff, 0, 0, 0, 20), HTTP_ADDRESS_SPECIAL}, /* documentation, RFC 9637 */
    {V6(0x2000, 0, 0, 0, 3), HTTP_ADDRESS_PUBLIC},
};

static bool contains(const struct http_network *net, const struct http_address *address) {
  unsigned whole = net->bits / 8, rest = net->bits % 8;
  if (memcmp(net->base.bytes, address->bytes, whole) != 0)
    return false;
  return rest == 0 || ((net->base.bytes[whole] ^ address->bytes[whole]) >> (8 - rest)) == 0;
}

static void map_v4(const void *four, struct http_address *out) {
  memset(out->bytes, 0, 10);
  memset(out->bytes + 10, 0xff, 2);
  memcpy(out->bytes + 12, four, 4);
}

static bool is_v4(const struct http_address *address) {
  static const struct http_network mapped = V4(0, 0, 0, 0, 0);
  return contains(&mapped, address);
}

bool http_address_of(const struct sockaddr *from, struct http_address *out) {
  switch (from->sa_family) {
  case AF_INET:
    map_v4(&((const struct sockaddr_in *)from)->sin_addr, out);
    return true;
  case AF_INET6:
    memcpy(out->bytes, &((const struct sockaddr_in6 *)from)->sin6_addr, sizeof(out->bytes));
    return true;
  default:
    return false;
  }
}

bool http_address_parse(const char *text, struct http_address *out) {
  struct in_addr four;
  if (inet_pton(AF_INET, text, &four) == 1) {
    map_v4(&four, out);
    return true;
  }
  return inet_pton(AF_INET6, text, out->bytes) == 1;
}

/* Whether every bit after the prefix is zero: "10.1.2.3/8" is a mistake that would allow more than it seems to say. */
static bool host_bits_clear(const struct http_network *net) {
  for (unsigned bit = net->bits; bit < 128; bit++)
    if (net->base.bytes[bit / 8] & (0x80u >> (bit % 8)))
      return false;
  return true;
}

bool http_network_parse(const char *text, struct http_network *out) {
  char address[HTTP_ADDRESS_TEXT];
  const char *slash = strchr(text, '/');
  size_t len = slash ? (size_t)(slash - text) : strlen(text);
  if (len >= sizeof(address))
    return false;
  memcpy(address, text, len);
  address[len] = '\0';
  if (!http_address_parse(address, &out->base))
    return false;
  bool dotted = strchr(address, ':') == NULL;
  unsigned long most = dotted ? 32 : 128, bits = most;
  if (slash) {
    char *end;
    if (slash[1] < '0' || slash[1] > '9')
      return false;
    bits = strtoul(slash + 1, &end, 10);
    if (*end != '\0' || bits > most)
      return false;
  }
  out->bits = (unsigned)bits + (dotted ? 96 : 0);
  return host_bits_clear(out);
}

void http_address_print(const struct http_address *address, char out[HTTP_ADDRESS_TEXT]) {
  if (is_v4(address))
    inet_ntop(AF_INET, address->bytes + 12, out, HTTP_ADDRESS_TEXT);
  else
    inet_ntop(AF_INET6, address->bytes, out, HTTP_ADDRESS_TEXT);
}

enum http_address_class http_address_classify(const struct http_address *address) {
  for (size_t i = 0; i < sizeof(registry) / sizeof(registry[0]); i++)
    if (contains(&registry[i].net, address))
      return registry[i].cls;
  return HTTP_ADDRESS_SPECIAL;
}

const char *http_address_class_name(enum http_address_class cls) {
  switch (cls) {
  case HTTP_ADDRESS_PUBLIC:
    return "public";
  case HTTP_ADDRESS_LOOPBACK:
    return "loopback";
  case HTTP_ADDRESS_PRIVATE:
    return "private";
  case HTTP_ADDRESS_LINK_LOCAL:
    return "link-local";
  case HTTP_ADDRESS_SPECIAL:
    break;
  }
  return "special-purpose";
}

static bool may_call(const struct http_address_policy *policy, const struct http_address *address,
                     enum http_address_class cls) {
  for (size_t i = 0; i < policy->network_count; i++)
    if (contains(&policy->networks[i], address))
      return true;
  bool inside = cls == HTTP_ADDRESS_LOOPBACK || cls == HTTP_ADDRESS_PRIVATE;
  return cls == HTTP_ADDRESS_PUBLIC || (inside && policy->allow_private);
}

enum http_address_verdict http_address_judge(const struct http_address_policy *policy,
                                             const struct http_address *address, bool plain) {
  enum http_address_class cls = http_address_classify(address);
  if (!may_call(policy, address, cls))
    return HTTP_ADDRESS_DENIED;
  bool readable = plain && cls != HTTP_ADDRESS_LOOPBACK && !policy->allow_plaintext;
  return readable ? HTTP_ADDRESS_PLAINTEXT : HTTP_ADDRESS_ALLOWED;
}
