#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

// Hands a copy of a record over, with the header `content-type`. Swift calls no variadic functions.
static inline rd_kafka_resp_err_t sluice_kafka_produce(
    rd_kafka_t *client, rd_kafka_topic_t *topic, const rd_kafka_message_t *record, const char *content_type) {
    return rd_kafka_producev(
        client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(record->partition), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_VALUE(record->payload, record->len), RD_KAFKA_V_KEY(record->key, record->key_len),
        RD_KAFKA_V_HEADER("content-type", content_type, -1), RD_KAFKA_V_OPAQUE(record->_private), RD_KAFKA_V_END);
}
