// Package replay has the commands that replay topics and rebuild derived data.
package replay
