// Package key has the commands of API keys.
package key
