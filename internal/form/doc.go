// Package form reads JSON objects that somebody else wrote: field by field, every
// fault named, and none of them guessed at. A field that an object has twice, or
// that nobody knows, is a fault: which amount counts nobody could tell, and a
// misspelt name must not be lost silently. What a line of text and a UUID are holds
// for other writing too: the forms of pages, the registry file.
package form
