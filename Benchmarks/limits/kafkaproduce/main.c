// Writes objects as records to a topic by librdkafka alone: idempotent, acks=all, lz4, as the gateway's producer is configured.
//
//   limit-kafkaproduce BROKERS TOPIC FIRST COUNT
//
// Each record is a JSON object of about 200 bytes, its key the object's. Prints the seconds from the first record to the last
// acknowledgement, without connecting.
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long failed;

static void delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    if (message->err) failed++;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char reason[256];
    if (rd_kafka_conf_set(conf, name, value, reason, sizeof reason) != RD_KAFKA_CONF_OK) {
        fprintf(stderr, "%s: %s\n", name, reason);
        exit(1);
    }
}

// Makes the topic; one that is there stays as it is.
static void create(rd_kafka_t *client, const char *name) {
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, 16, 1, NULL, 0);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_CreateTopics(client, &topic, 1, NULL, queue);
    rd_kafka_event_t *answer = rd_kafka_queue_poll(queue, 10000);
    if (answer) rd_kafka_event_destroy(answer);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy(topic);
}

int main(int argc, char **argv) {
    if (argc != 5) return fprintf(stderr, "limit-kafkaproduce BROKERS TOPIC FIRST COUNT\n"), 2;
    long first = atol(argv[3]), count = atol(argv[4]);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", argv[1]);
    set(conf, "enable.idempotence", "true");
    set(conf, "compression.type", "lz4");
    set(conf, "linger.ms", "1");
    set(conf, "partitioner", "murmur2_random");
    set(conf, "queue.buffering.max.messages", "100000");
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    char reason[256];
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof reason);
    if (!client) return fprintf(stderr, "%s\n", reason), 1;
    create(client, argv[2]);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, argv[2], NULL);
    const struct rd_kafka_metadata *metadata;
    if (rd_kafka_metadata(client, 0, topic, &metadata, 10000)) return fprintf(stderr, "no metadata\n"), 1;
    rd_kafka_metadata_destroy(metadata);
    char note[81];
    memset(note, 'n', 80), note[80] = 0;
    double begin = now();
    for (long i = first; i < first + count; i++) {
        char key[24], value[512];
        int keyBytes = snprintf(key, sizeof key, "%ld", i);
        int bytes = snprintf(value, sizeof value,
            "{\"_id\":%ld,\"store\":%ld,\"quantity\":%ld,\"price\":%ld.25,\"name\":\"item %010ld\",\"note\":\"%s\",\"updated\":\"2023-11-14T22:13:20Z\"}",
            i, i % 100, i % 1000, i % 5000, i, note);
        while (rd_kafka_produce(topic, -1, RD_KAFKA_MSG_F_COPY, value, bytes, key, keyBytes, NULL)) {
            if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL) return fprintf(stderr, "not taken\n"), 1;
            rd_kafka_poll(client, 10);
        }
        if (i % 256 == 0) rd_kafka_poll(client, 0);
    }
    if (rd_kafka_flush(client, 120000) || failed) return fprintf(stderr, "%ld failed\n", failed), 1;
    printf("%f\n", now() - begin);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
    return 0;
}
