/* SPDX-License-Identifier: MIT
 *
 * amqp_encode.h - a frame as the bytes that go over the wire (AMQP 0-9-1, section 4.2.3).
 *
 * rabbitmq-c sends each frame by a system call of its own, three for a message. Frames that are encoded here can be
 * gathered and sent by one. Pure; belongs to the driver's thread.
 */
#ifndef AMQP_ENCODE_H
#define AMQP_ENCODE_H

#include <stddef.h>

#include "amqp_vendor.h"

/* Writes a method, header or body frame to out; its length, or 0 when it takes more than cap bytes or cannot be put
 * into AMQP. */
size_t amqp_encode_frame(const amqp_frame_t *frame, char *out, size_t cap);

#endif
