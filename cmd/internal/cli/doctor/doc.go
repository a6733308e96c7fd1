// Package doctor has the command that checks the parts of an installation.
package doctor
