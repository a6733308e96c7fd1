// Package session has the commands of sessions.
package session
