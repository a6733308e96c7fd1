// Package acl has the command that lists the rights at Kafka.
package acl
