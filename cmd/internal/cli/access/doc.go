// Package access opens what commands of several nouns need of an installation.
package access
