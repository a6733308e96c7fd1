// Package render has the text and JSON that commands print.
package render
