// Package bench measures the rate of creations, from POST to 201, and compares it with a
// raw consume-transform-produce echo on the same broker. The echo has the same client
// settings, partitions and size of records.
//
// # What is compared
//
// A creation goes client → ingress → command → processor → one transaction of state,
// event and reply → ingress → client. The echo goes client → record → transaction of two
// records → client. It has no HTTP, no JSON, no Avro, no decision and no local state.
// The ratio of the two shows what the service costs in addition to Kafka.
//
// Broker, service, echo and clients share the machine, and its speed drifts. Therefore
// echo and service are measured in turns (in the next round service and echo), and every
// number is the median of the rounds. Only one of them has load at a time.
//
// In the closed loop each of n clients sends its next request when the last one is
// answered. It gives the highest rate. In the open loop requests arrive at times that do
// not depend on answers: a Poisson process at a share of that rate. The latency of a
// request counts from the time at which it should have been sent, so that a stall counts
// for all requests that arrive during it (no coordinated omission).
//
// Subpackages measure other things: flood the quota, delivery the webhooks, live the
// pages, letters the receipts by e-mail, reports the queries of analysts, matching the matcher,
// salaries the payment of many people by an agency.
// They share installation, client, topics and measure.
package bench
