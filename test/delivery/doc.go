// Package delivery lets the program deliver webhooks to receivers that are quick,
// slow, ill, gone or many, kills parts of it meanwhile, and counts what is lost or
// doubled.
package delivery
