// Package schemas defines the topics of Quittance (Topics), the encoding of their records
// (Codec) and the records of poison topics (Poison). Package record has the records
// themselves, generated from avro/*.avsc.
//
// A value is the Confluent header and Avro binary. The header is a zero byte and the id of
// the schema in the registry, big endian in four bytes. The subject of a record is its
// full Avro name. Schemas evolve BACKWARD only: golden bytes of every released version
// are under testdata and must still decode.
package schemas

//go:generate go run ./gen
