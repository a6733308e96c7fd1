// Package form reads JSON objects of callers field by field. It reports every fault and
// guesses at nothing: a field that occurs twice is a fault because its value is
// ambiguous, and an unknown field is a fault because it may be a misspelt one. The
// rules of a line of text and of a UUID also serve the forms of pages and the registry
// file.
package form
