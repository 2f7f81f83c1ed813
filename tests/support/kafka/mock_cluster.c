/* SPDX-License-Identifier: MIT
 *
 * A stand-in for a Kafka broker, for machines that cannot have a real one:
 * the mock cluster of librdkafka, reachable by any client on this host.
 *
 * Prints one line, "bootstrap.servers=<host:port>", then obeys standard input
 * line by line until it closes:
 *
 *     topic <name> <partitions>       create a topic; answers with the same line
 *
 * Data lives in memory and dies with the process.  One thread reads commands;
 * librdkafka runs the cluster in its own.
 */
#include <stdio.h>
#include <stdlib.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

static void obey(rd_kafka_mock_cluster_t *cluster, const char *line) {
  char name[256];
  int partitions;

  if (sscanf(line, "topic %255s %d", name, &partitions) != 2) {
    printf("error not understood: %s", line);
    return;
  }
  rd_kafka_resp_err_t err = rd_kafka_mock_topic_create(cluster, name, partitions, 1);
  if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
    printf("error %s: %s\n", name, rd_kafka_err2str(err));
  else
    printf("topic %s %d\n", name, partitions);
}

int main(void) {
  char why[512];
  char line[512];

  rd_kafka_t *client = rd_kafka_new(RD_KAFKA_PRODUCER, NULL, why, sizeof why);
  if (!client) {
    fprintf(stderr, "mock_cluster: %s\n", why);
    return EXIT_FAILURE;
  }
  rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(client, 1);
  if (!cluster) {
    fprintf(stderr, "mock_cluster: librdkafka refused to make a mock cluster\n");
    rd_kafka_destroy(client);
    return EXIT_FAILURE;
  }

  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("bootstrap.servers=%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
  while (fgets(line, sizeof line, stdin))
    obey(cluster, line);

  rd_kafka_mock_cluster_destroy(cluster);
  rd_kafka_destroy(client);
  return EXIT_SUCCESS;
}
