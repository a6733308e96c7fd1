// Package bench measures how fast a session is created, from POST to 201, beside
// the floor that the broker sets: a raw consume-transform-produce echo with the
// same client settings, the same partitions and records of the same size.
//
// # What is compared
//
// A creation goes client → ingress → command → processor → one transaction of
// state, event and reply → ingress → client. The echo goes client → record →
// transaction of two records → client: no HTTP, no JSON, no Avro, no decision,
// no local state. Their ratio is what the service costs on top of Kafka.
//
// Broker, service, echo and clients share the machine, and its speed drifts. So
// the two are measured in turns (echo, service; in the next round service, echo)
// and every number is the median of the rounds. While the one is measured the
// other stands idle.
//
// Closed loop: each of n clients sends its next request when the last one is
// answered; it gives the highest rate. Open loop: requests arrive at times that
// do not depend on answers (a Poisson process at a share of that rate), and each
// one's latency counts from the time at which it should have been sent, so that
// a stall is felt by all that arrive during it (no coordinated omission).
package bench
