// Package program puts the commands of both programs together.
package program
