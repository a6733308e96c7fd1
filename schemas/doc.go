// Package schemas is the language of Quittance's topics: which topics there
// are (Topics), which records they carry (package record, generated from
// avro/*.avsc) and how a record becomes a Kafka value and back (Codec).
//
// A value is Avro binary behind the Confluent header: a zero byte and the
// schema's id in the registry, big endian in four bytes. The subject of a
// record is its full Avro name. Schemas evolve BACKWARD only: golden bytes of
// every released version lie under testdata and must still decode.
package schemas

//go:generate go run ./gen
