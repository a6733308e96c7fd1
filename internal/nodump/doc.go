// Package nodump keeps the memory of a process, which has secrets in clear, out of files and out
// of the reach of other processes.
package nodump
