// Package link has the commands of links between taxpayers and references.
package link
