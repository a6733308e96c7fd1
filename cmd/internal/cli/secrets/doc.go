// Package secrets has the commands of sealed secrets.
package secrets
