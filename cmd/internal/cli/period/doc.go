// Package period has the commands of closed periods and chains of proof.
package period
