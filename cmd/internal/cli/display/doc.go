// Package display shows deliveries and cases for commands of several nouns.
package display
