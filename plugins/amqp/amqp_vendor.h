/* SPDX-License-Identifier: MIT
 *
 * amqp_vendor.h - the headers of rabbitmq-c, which moved into a folder of their own with version 0.12.
 */
#ifndef AMQP_VENDOR_H
#define AMQP_VENDOR_H

#if __has_include(<rabbitmq-c/amqp.h>)
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/framing.h>
#include <rabbitmq-c/ssl_socket.h>
#include <rabbitmq-c/tcp_socket.h>
#else
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#endif

#endif
