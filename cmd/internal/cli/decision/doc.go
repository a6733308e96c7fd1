// Package decision has the commands of decisions that a passkey has signed.
package decision
